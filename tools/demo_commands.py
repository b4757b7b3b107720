"""Runs commands of the package, for the tools that make the demo checkpoints."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from pyserini_repbert.errors import PyseriniRepbertError


class CommandFailed(PyseriniRepbertError):
    """A command of the package ended with an error."""


def package_command(words: Sequence[str]) -> None:
    """Run `python -m pyserini_repbert.WORDS`; what it prints goes to stderr.

    Raises CommandFailed.
    """
    print('$ python -m pyserini_repbert.' + ' '.join(words), file=sys.stderr, flush=True)
    process = subprocess.run(
        [sys.executable, '-m', f'pyserini_repbert.{words[0]}', *words[1:]], stdout=sys.stderr
    )
    if process.returncode:
        raise CommandFailed(
            f'`{words[0]}` failed with status {process.returncode}: its message is on stderr'
        )
