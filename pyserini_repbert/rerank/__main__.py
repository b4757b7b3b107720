"""`python -m pyserini_repbert.rerank`."""

from pyserini_repbert.commands import start
from pyserini_repbert.commands.rerank import main

if __name__ == '__main__':
    start(main)
