"""`WritePart`: what an extension does in `index sync` and `index add`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyserini_repbert.commands.parts import CommandPart

if TYPE_CHECKING:
    from pyserini_repbert.collection.syncing import Changes


class WritePart(CommandPart):
    """What an extension does in a command that writes; its flags stand among the command's."""

    def begin(self, options: argparse.Namespace) -> Callable[[Changes], int] | None:
        """What follows the write, begun before it; None where nothing is asked of it.

        It is called with what was written, and returns the exit status. Raises InputError for
        flags that the collection cannot serve.
        """
        return None
