"""What an extension does in commands of collections: `WritePart` and `JudgmentsPart`."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pyserini_repbert.commands.parts import CommandPart

if TYPE_CHECKING:
    from pyserini_repbert.collection.syncing import Changes


class WritePart(CommandPart):
    """What an extension adds to a command that writes. Its flags become the command's."""

    def begin(self, options: argparse.Namespace) -> Callable[[Changes], int] | None:
        """What follows the write, begun before it; None if nothing is asked of it.

        It is called with what was written, and returns the exit status. Raises InputError for
        flags that the collection cannot serve.
        """
        return None


class JudgmentsPart(CommandPart, ABC):
    """A judge that an extension adds to `index judgments`, beside people.

    Attributes
    ----------
    judge : the name that `--judge` gives it
    """

    judge: ClassVar[str]

    @abstractmethod
    def grade(self, options: argparse.Namespace, folder: Path) -> None:
        """Let it judge, and print the results; `--judge` names it.

        Parameters
        ----------
        options : the flags, which `check` let pass
        folder : of the collection, which has the questions of the flags
        """
