"""`python -m pyserini_repbert.search`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('search')
