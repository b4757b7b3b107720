"""`python -m pyserini_repbert.rerank`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('rerank')
