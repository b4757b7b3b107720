"""`python -m pyserini_repbert.serve`."""

from pyserini_repbert.commands import start

if __name__ == '__main__':
    start('serve', f'{__package__}.command')
