"""What the help of `search` says of several collections."""

from __future__ import annotations

import argparse

from pyserini_repbert.commands.parts import CommandPart


class SeveralInSearch(CommandPart):
    """Says that --index may be given several times."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument_group(
            'several collections',
            'Give --index once for each collection: all are searched together, and a docid begins '
            'with the name of its collection: NAME/DOCID.',
        )


IN_SEARCH = SeveralInSearch()
