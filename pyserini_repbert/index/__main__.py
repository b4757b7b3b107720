"""`python -m pyserini_repbert.index`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.index import main

if __name__ == '__main__':
    start(main)
