"""`python -m pyserini_repbert.doctor`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('doctor')
