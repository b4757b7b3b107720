"""`python -m pyserini_repbert.index`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('index')
