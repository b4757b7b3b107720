"""The best hits of a collection's first rankings, in the order of a further model's scores.

Nothing is encoded but the query: the scores are of what the collection stores of passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.representation_search import RepresentationSearcher
from pyserini_repbert.data.ordering import rank_by_score
from pyserini_repbert.fusion.fused import Fusion
from pyserini_repbert.ranking import Query, Ranker, Ranking, Reason, Run, Searcher
from pyserini_repbert.trace import Trace

# Hits of the first rankings that are scored.
RESCORED_HITS = 1000


class RescoredSearcher(Searcher, recorded_as='RescoredSearcher'):
    """Searches a collection by its first rankings, and scores the best documents again.

    `RESCORED_HITS` are scored. All other documents follow in their order: further ones, and those
    without a passage that can be scored.

    Parameters
    ----------
    fusion : of the first rankings
    scorer : scores documents
    """

    def __init__(self, fusion: Fusion, scorer: RepresentationSearcher) -> None:
        self.parts: tuple[Ranker, ...] = (fusion,)
        self.scorer = scorer

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        (first,) = self.parts
        depth = None if k is None else max(k, RESCORED_HITS)
        searcher = first.with_settings(threads=self.threads)
        found = searcher.rank(topics, None, depth, trace.part(first.label))
        rescored: Run = {}
        queries = self.scorer.queries_of([topic.text for topic in topics])
        for topic, query in zip(topics, queries, strict=True):
            rescored[topic.qid] = self._rescore(query, found[topic.qid])
        return rescored

    def _rescore(self, query: Any, ranking: Ranking) -> Ranking:
        if query is None:
            return ranking
        score_of = self.scorer.scores_by_docid(query, ranking.docids[:RESCORED_HITS])
        scores = np.array(list(score_of.values()), np.float32)
        scored = rank_by_score(np.array(list(score_of), dtype=object), scores, None)
        others = [row for row, docid in enumerate(ranking.docids) if docid not in score_of]
        rest = ranking.select_rows(others, [ranking.scores[row] for row in others])
        scored = scored.with_background(self.scorer.background(query))
        return scored.append_below(rest)

    def leaves(self) -> Iterator[Ranker]:
        """As in `Ranker`, with the scorer, whose model runs, too."""
        yield from super().leaves()
        yield self.scorer

    def within(self, wanted: DocumentFilter) -> Self:
        """The same search among the documents that a filter lets through."""
        (first,) = self.parts
        rankings: Sequence[Any] = first.parts
        fusion = first.with_settings(parts=tuple(part.within(wanted) for part in rankings))
        return self.with_settings(parts=(fusion,), scorer=self.scorer.within(wanted))

    def by_documents(self) -> Self:
        other = super().by_documents()
        return other.with_settings(scorer=self.scorer.by_documents())

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        return self.scorer.texts(docids)

    def identity(self) -> Mapping[str, Any]:
        return {**super().identity(), 'depth': RESCORED_HITS, 'scorer': self.scorer.identity()}

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        return self.scorer.reasons(query, docids)
