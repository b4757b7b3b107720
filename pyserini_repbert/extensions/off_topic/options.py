"""What `search` says of a question that is not about the collection: a line above its hits."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pyserini_repbert.commands.parts import CommandPart, FollowedHits, SearchFollower
from pyserini_repbert.extensions.off_topic.file import FILE
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.collection.searching import CollectionSearcher
    from pyserini_repbert.pipeline.pipeline import Pipeline
    from pyserini_repbert.pipeline.resolving import ResolvedSearch


class OffTopicInSearch(CommandPart):
    """Says of each question whether the collection seems to be about it."""

    def follow(
        self, options: argparse.Namespace, resolved: ResolvedSearch, pipeline: Pipeline
    ) -> SearchFollower | None:
        index = resolved.index
        is_asked = options.topics is None and not options.like and pipeline.rewriting is None
        if not is_asked or index is None or not index.kind.is_writable:
            return None
        from pyserini_repbert.collection.rankings import CollectionRanking
        from pyserini_repbert.collection.searching import CollectionSearcher

        searcher = pipeline.first
        if not isinstance(searcher, CollectionSearcher):
            return None
        if not (searcher.generation.folder / FILE).is_file():
            return None
        # The claim is based on the question's vector.
        if CollectionRanking.DENSE not in searcher.searched:
            return None
        return _OffTopicLine(searcher)


class _OffTopicLine(SearchFollower):
    """A line of each question that is not about the collection that `searcher` searches."""

    def __init__(self, searcher: CollectionSearcher) -> None:
        self._searcher = searcher

    def follow(self, topic: Query, ranking: Ranking, notes: Notes) -> FollowedHits:
        from pyserini_repbert.extensions.off_topic.claims import LINE, is_off_topic

        if not ranking:
            # It is the filter that leaves none.
            return FollowedHits()
        is_told = is_off_topic(self._searcher, topic, notes.parts['search'])
        return FollowedHits(line=LINE if is_told else '')


IN_SEARCH = OffTopicInSearch()
