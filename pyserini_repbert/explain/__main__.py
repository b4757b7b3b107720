"""`python -m pyserini_repbert.explain`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('explain')
