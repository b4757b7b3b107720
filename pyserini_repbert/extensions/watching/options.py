"""The flags of `index sync` that ask the judged questions before and after."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyserini_repbert.collection.commands.parts import WritePart
from pyserini_repbert.commands import command

if TYPE_CHECKING:
    from pyserini_repbert.collection.syncing import Changes

# A loss that fails a sync, unless the user names another.
_LOSS = 0.01


class WatchedSync(WritePart):
    """Asks the judged questions before and after `index sync`."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add(
            '--watch',
            action='store_true',
            help='ask the judged questions before and after the sync, and print what moved',
        )
        add(
            '--fail-if-worse',
            nargs='?',
            type=command.finite_number,
            const=_LOSS,
            metavar='LOSS',
            help='like --watch, and end with status 4 if nDCG@10 of the judged documents falls by '
            f'more than LOSS; without a number: {_LOSS}',
        )

    def begin(self, options: argparse.Namespace) -> Callable[[Changes], int] | None:
        if not options.watch and options.fail_if_worse is None:
            return None
        from pyserini_repbert.extensions.watching.command import measure_before, status_after

        measure_before(options)
        return lambda changes: status_after(options, changes)


IN_SYNC = WatchedSync()
