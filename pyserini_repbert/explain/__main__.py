"""`python -m pyserini_repbert.explain`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.explain import main

if __name__ == '__main__':
    start(main)
