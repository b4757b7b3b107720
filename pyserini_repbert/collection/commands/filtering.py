"""Flags of `search` and `explain` that say which documents of a collection count."""

from __future__ import annotations

import argparse

from pyserini_repbert.commands.command import refuse
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.commands.parts import CommandPart


class FilterOfSearch(CommandPart):
    """A filter, and lists of docids."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        documents = parser.add_argument_group('which documents of a collection')
        add_flags(documents, 'filter', 'only_ids', 'not_ids')


class FilterOfExplain(CommandPart):
    """A filter of the hits that are explained."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        documents = parser.add_argument_group('which documents of a collection')
        add_flags(documents, 'filter', help='with --hits: search only the documents that match')

    def check(self, options: argparse.Namespace) -> None:
        refuse(
            options.filter is not None and options.hits is None,
            '--filter is for --hits, which searches: leave it out with --docid',
        )


IN_SEARCH = FilterOfSearch()
IN_EXPLAIN = FilterOfExplain()
