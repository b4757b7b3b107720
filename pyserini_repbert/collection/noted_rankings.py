"""What the rankings of a collection's search found, from what a search has reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.collection.rescoring import RescoredSearcher
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.ranking import Ranker, Ranking, Run
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.rerank.base import Reranker

# Hits of each ranking that what follows a search knows; a search for ten hits reads as many anyway.
KNOWN_HITS = 60


def runs_of_rankings(searcher: CollectionSearcher, notes: Notes) -> dict[str, Run]:
    """The runs of a search's rankings, by `CollectionRanking`; `notes` are what it reported."""
    noted = zip(ranking_names(searcher), _notes_of_rankings(searcher, notes), strict=True)
    return {name: own_notes.run for name, own_notes in noted}


def topic_rankings(searcher: CollectionSearcher, notes: Notes, qid: str) -> dict[str, Ranking]:
    """The rankings of a topic, by `CollectionRanking`; `notes` are what the search reported."""
    return {name: run[qid] for name, run in runs_of_rankings(searcher, notes).items()}


def ranking_names(searcher: CollectionSearcher) -> list[str]:
    """The `CollectionRanking` of each ranking of a search: the dense one is called by its encoder.

    One that scores the hits of others again comes behind these.
    """
    names = []
    for ranker in _rankings(searcher):
        is_dense = isinstance(ranker, DenseDocumentSearcher)
        names.append(str(CollectionRanking.DENSE) if is_dense else ranker.label)
    return names


def _rankings(ranker: Ranker) -> Iterator[Ranker]:
    """The rankings of a search, in the order of `_notes_of_rankings`."""
    for part in ranker.parts:
        yield from _rankings(part)
    if _is_ranking(ranker):
        yield ranker


def _notes_of_rankings(ranker: Ranker, notes: Notes) -> Iterator[Notes]:
    """What each ranking of a search reported."""
    for part, of_part in zip(ranker.parts, notes.parts.values(), strict=True):
        yield from _notes_of_rankings(part, of_part)
    if _is_ranking(ranker):
        yield notes


def _is_ranking(ranker: Ranker) -> bool:
    return not ranker.parts or isinstance(ranker, RescoredSearcher)


def relevances_of(ranking: Ranking, reranker: Reranker) -> dict[str, float]:
    """What a reranker says of the hits that it read last, from 0 to 1, by docid."""
    head = ranking[: reranker.reads]
    if reranker.score_share is not None:
        # If it is mixed with the previous stage's score, a score is already between 0 and 1.
        return dict(zip(head.docids, head.scores, strict=True))
    return dict(zip(head.docids, map(reranker.relevance, head.scores), strict=True))
