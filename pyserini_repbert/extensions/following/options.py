"""The flag of `index sync`: --follow."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from pyserini_repbert.collection.commands.parts import WritePart
from pyserini_repbert.commands import command
from pyserini_repbert.commands.console import printable
from pyserini_repbert.processes import expect_to_go_on

# What a sync after the first one is not asked again.
_ONCE = ('rebuild', 'delete_most')


class FollowingOfSync(WritePart):
    """Syncs again whenever the folder has changed and is quiet."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--follow',
            action='store_true',
            help='run until Ctrl-C, and sync again one second after files have changed',
        )

    def run(self, options: argparse.Namespace) -> bool:
        """Sync, and follow the corpus on request.

        Raises the errors of the first sync.
        """
        if not options.follow:
            return False
        from pyserini_repbert.collection.commands.actions import run_sync
        from pyserini_repbert.extensions.following.loop import follow
        from pyserini_repbert.extensions.following.moments import QuietMoments

        expect_to_go_on()
        # What changes while the first sync reads is synced after it.
        moments = QuietMoments(Path(options.corpus))
        once = argparse.Namespace(**vars(options))
        once.follow = False
        run_sync(once)
        if not options.quiet:
            print(f'following {printable(options.corpus)}: Ctrl-C ends it', file=sys.stderr)
        for name in _ONCE:
            setattr(once, name, False)
        with contextlib.suppress(KeyboardInterrupt):
            follow(moments, lambda: run_sync(once), _say)
        return True


def _say(error: Exception) -> None:
    """Print an error as a command does."""
    print(f'error: {printable(command.error_message(error))}', file=sys.stderr)


IN_SYNC = FollowingOfSync()
