"""`python -m pyserini_repbert.publish`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.publish import main

if __name__ == '__main__':
    start(main)
