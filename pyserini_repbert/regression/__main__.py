"""`python -m pyserini_repbert.regression`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.regression import main

if __name__ == '__main__':
    start(main)
