"""`python -m pyserini_repbert.train`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('train')
