"""`python -m pyserini_repbert.train`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.train import main

if __name__ == '__main__':
    start(main)
