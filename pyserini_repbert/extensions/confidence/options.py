"""Flags of `search`: --confidence and --min-confidence."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import OutputFile
from pyserini_repbert.commands.parts import CommandPart, FollowedHits, SearchFollower
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import atomic_file
from pyserini_repbert.ranking import Query, Ranking, Run
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.extensions.confidence.estimating import (
        AnswerConfidence,
        ConfidenceEstimator,
    )
    from pyserini_repbert.pipeline.pipeline import Pipeline
    from pyserini_repbert.pipeline.resolving import ResolvedSearch
    from pyserini_repbert.rerank.base import Reranker


class ConfidenceOfSearch(CommandPart):
    """Shows probabilities beside hits, or writes them for a run."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument_group('how reliable the hits of a collection are').add_argument
        add(
            '--confidence',
            nargs='?',
            const=True,
            type=OutputFile,
            metavar='FILE.tsv',
            help='show how likely it is that the question is answered, and that each hit is '
            'relevant; with --topics, write qid, docid, rank and both probabilities to FILE.tsv',
        )
        add(
            '--min-confidence',
            type=command.probability,
            metavar='P',
            help='leave out hits whose P(relevant) is below P, from 0 to 1',
        )

    def check(self, options: argparse.Namespace) -> None:
        asks = options.topics is None
        names_no_file = options.confidence is True
        command.refuse(
            options.confidence is not None and asks != names_no_file,
            '--confidence names a file with --topics, and none with a question',
        )
        command.refuse(
            options.confidence is not None and bool(options.like),
            '--confidence does not work with --like: leave one out',
        )
        command.refuse(
            options.min_confidence is not None and bool(options.topics or options.like),
            '--min-confidence is for questions: runs keep their hits',
        )

    def depth(self, options: argparse.Namespace) -> int:
        if not _is_asked(options):
            return 0
        from pyserini_repbert.collection.noted_rankings import KNOWN_HITS

        return KNOWN_HITS

    def follow(
        self, options: argparse.Namespace, resolved: ResolvedSearch, pipeline: Pipeline
    ) -> SearchFollower | None:
        """As in `CommandPart`. Raises InputError for an index that is not a collection, or has no
        model to estimate by.
        """
        if not _is_asked(options):
            return None
        from pyserini_repbert.commands.search_answers import last_reranker
        from pyserini_repbert.extensions.confidence.estimating import ConfidenceEstimator

        index = resolved.index
        if index is None or resolved.spec.sparse or not index.kind.is_writable:
            raise InputError(
                'confidence is of the search of a collection alone: name one as the index',
                parameters=('index',),
            )
        if pipeline.rewriting is not None:
            raise InputError(
                'confidence is of the question as it was asked, and a rewritten one finds other '
                'hits: leave one out',
                parameters=('rewrite',),
            )
        stages = tuple(map(str, resolved.spec.stages))
        reranker = last_reranker(pipeline)
        if stages and reranker is None:
            raise InputError(
                'confidence reads what the last reranker says, which runs in other processes: '
                'rerank on one device',
                parameters=('devices',),
            )
        first: Any = pipeline.first
        estimator = ConfidenceEstimator.of(first, stages=stages)
        path = None if options.topics is None else options.confidence
        return _Probabilities(
            estimator, pipeline, reranker, least=options.min_confidence, path=path
        )


def _is_asked(options: argparse.Namespace) -> bool:
    return options.confidence is not None or options.min_confidence is not None


class _Probabilities(SearchFollower):
    """P(relevant) beside each hit, P(answered) below its question.

    Parameters
    ----------
    estimator : of this search
    pipeline : which is open
    reranker : its last one; None without one
    least : the least P(relevant) of a hit that is shown; None: any
    path : of the file for a run; None: of questions
    """

    def __init__(
        self,
        estimator: ConfidenceEstimator,
        pipeline: Pipeline,
        reranker: Reranker | None,
        *,
        least: float | None,
        path: str | None,
    ) -> None:
        from pyserini_repbert.extensions.confidence.models import TOP

        # So many decide whether a question is answered.
        self.n_hits = TOP
        self._estimator = estimator
        self._first: Any = pipeline.first
        self._reranker = reranker
        self._least = least
        self._path = path

    def follow(self, topic: Query, ranking: Ranking, notes: Notes) -> FollowedHits:
        confidence = self._estimate(topic, ranking, notes)
        rows = confidence.believed_rows(self._least)
        return FollowedHits(
            line=f'found: {confidence.found} (answered: {confidence.answered:.2f})',
            marks=tuple(f'relevant: {probability:.2f}' for probability in confidence.relevant),
            rows=tuple(rows),
        )

    def write(self, topics: Sequence[Query], run: Run, notes: Notes) -> None:
        """Write a line for each hit: qid, docid, rank, P(relevant), P(answered)."""
        if self._path is None:
            return
        with atomic_file(self._path) as file:
            for topic in topics:
                ranking = run[topic.qid]
                confidence = self._estimate(topic, ranking, notes)
                answered = f'{confidence.answered:.6f}'
                hits = zip(ranking.docids, confidence.relevant, strict=True)
                for rank, (docid, relevant) in enumerate(hits, 1):
                    file.write(f'{topic.qid}\t{docid}\t{rank}\t{relevant:.6f}\t{answered}\n')

    def _estimate(self, topic: Query, ranking: Ranking, notes: Notes) -> AnswerConfidence:
        """How far the hits of a topic can be believed."""
        from pyserini_repbert.collection.noted_rankings import relevances_of, topic_rankings

        rankings = topic_rankings(self._first, notes.parts['search'], topic.qid)
        relevances = None
        if self._reranker is not None:
            relevances = relevances_of(ranking, self._reranker)
        return self._estimator.estimate(topic.text, ranking.docids, rankings, relevances)


IN_SEARCH = ConfidenceOfSearch()
