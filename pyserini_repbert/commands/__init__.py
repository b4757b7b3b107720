"""The commands: the only layer that knows flags and the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable


def start(main: Callable[[list[str]], int | None]) -> None:
    """Run a command and exit with its status."""
    from pyserini_repbert.commands.command import run

    sys.exit(run(main))
