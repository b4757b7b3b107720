"""`python -m pyserini_repbert.evaluate`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.evaluate import main

if __name__ == '__main__':
    start(main)
