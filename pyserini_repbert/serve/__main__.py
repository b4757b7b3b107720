"""`python -m pyserini_repbert.serve`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.serve import main

if __name__ == '__main__':
    start(main)
