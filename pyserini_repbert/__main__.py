"""`python -m pyserini_repbert COMMAND …`."""

from pyserini_repbert.commands import start


def main() -> None:
    """Run the command that the first argument names; the console script `pyserini-repbert` calls
    it.
    """
    start('dispatcher')


if __name__ == '__main__':
    main()
