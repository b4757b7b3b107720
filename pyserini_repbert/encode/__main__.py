"""`python -m pyserini_repbert.encode`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.encode import main

if __name__ == '__main__':
    start(main)
