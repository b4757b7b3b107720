"""`python -m pyserini_repbert.search`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.search import main

if __name__ == '__main__':
    start(main)
