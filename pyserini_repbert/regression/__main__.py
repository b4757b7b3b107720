"""`python -m pyserini_repbert.regression`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('regression')
