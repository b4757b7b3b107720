"""The commands: the only floor that knows flags and the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable


def start(main: Callable[[list[str]], int | None]) -> None:
    """Run a command as this process: its exit status is the process's."""
    from pyserini_repbert.commands.command import run

    sys.exit(run(main))
