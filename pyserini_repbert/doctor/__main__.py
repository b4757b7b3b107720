"""`python -m pyserini_repbert.doctor`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.doctor import main

if __name__ == '__main__':
    start(main)
