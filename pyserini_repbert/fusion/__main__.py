"""`python -m pyserini_repbert.fusion`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.fusion import main

if __name__ == '__main__':
    start(main)
