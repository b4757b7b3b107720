"""`python -m pyserini_repbert.fusion`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('fusion')
