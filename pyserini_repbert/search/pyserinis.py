"""Any searcher with Pyserini's interface as a `Ranker`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyserini_repbert.ranking import Query, Ranker, Ranking, Run
from pyserini_repbert.trace import Trace


class Searcher(Protocol):
    """A searcher with Pyserini's interface; a hit has `docid` and `score`."""

    def batch_search(self, queries: Sequence[str], qids: Sequence[str], k: int, threads: int) -> dict[str, list[Any]]:
        """Hits by qid."""


class PyseriniRanker(Ranker):
    """Ranks with a searcher of Pyserini's, whose hits have no text unless it has a method `texts`."""

    def __init__(self, searcher: Searcher, name: str = '') -> None:
        self.searcher, self.name = searcher, name or type(searcher).__name__

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        texts, qids = [topic.text for topic in topics], [topic.qid for topic in topics]
        hits = self.searcher.batch_search(texts, qids, k=1000 if k is None else k, threads=self.threads)
        return {
            qid: Ranking((hit.docid for hit in results), (float(hit.score) for hit in results))
            for qid, results in hits.items()
        }

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The stored passages, None for each that it lacks."""
        stored: list[str | None] = getattr(self.searcher, 'texts', super().texts)(docids)
        return stored


def _ranking(hits: Sequence[Any]) -> Ranking:
    return Ranking((hit.docid for hit in hits), (float(hit.score) for hit in hits))


def as_ranker(searcher: Any) -> Ranker:
    """A ranker as it is; any other searcher as a `PyseriniRanker`."""
    return searcher if isinstance(searcher, Ranker) else PyseriniRanker(searcher)
