"""Many queries reranked in one call."""

from collections.abc import Callable, Sequence

from pyserini_repbert.ranking import Candidate, Query, Ranking
from pyserini_repbert.rerank import Reranker
from pyserini_repbert.trace import Notes, StageCost, Trace


class Counting(Trace):
    """Calls a function with the number of inputs that are done."""

    def __init__(self, on_progress: Callable[[int], object]) -> None:
        self.advance = on_progress  # type: ignore[method-assign,assignment]


def rerank_many(
    reranker: Reranker,
    queries: Sequence[str],
    lists: Sequence[Sequence[Candidate]],
    on_progress: Callable[[int], object] = int,
) -> list[list[Candidate]]:
    """The lists reranked, in their order."""
    topics = [Query(str(number), query) for number, query in enumerate(queries)]
    run = {topic.qid: Ranking.of(own) for topic, own in zip(topics, lists, strict=True)}
    return [
        list(ranking)
        for ranking in reranker.rank(topics, run, None, Counting(on_progress)).values()
    ]


def cost_of(
    reranker: Reranker, queries: Sequence[str], lists: Sequence[Sequence[Candidate]]
) -> StageCost:
    """What it takes to rerank the lists."""
    topics = [Query(str(number), query) for number, query in enumerate(queries)]
    notes = Notes()
    reranker.rank(
        topics,
        {topic.qid: Ranking.of(own) for topic, own in zip(topics, lists, strict=True)},
        None,
        notes,
    )
    assert notes.cost is not None
    return notes.cost
