"""`python -m pyserini_repbert.evaluate`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('evaluate')
