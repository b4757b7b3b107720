"""`python -m pyserini_repbert.encode`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('encode')
