"""`python -m pyserini_repbert.adapt`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('adapt')
