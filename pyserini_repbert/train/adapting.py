"""Adapting a first stage to judgments without a new index: a map of query vectors, and the weights of a fusion.

The map is q' = q (I + A), A symmetric. It is learnt by contrast: for each topic the mean over its relevant passages of
-log softmax of their inner products among those of other passages, plus `RIDGE` |A|^2. Scores are divided by the
standard deviation of a query's scores over random passages, so the settings hold whatever the vectors' length.
The weights maximise nDCG@10 on topics that the map did not learn from.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.methods import FusionMethod, Normalization, fuse, scaled
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.search.dense import RepBertSearcher

LEAST_TOPICS = 20
DEPTH = 1000  # hits of each ranking that are fused
RIDGE = 0.26
TEMPERATURE = 0.5  # in standard deviations of a query's scores
STEPS = 40  # of LBFGS, from A = 0
HARD, RANDOM = 100, 1000  # passages that a topic's relevant ones are told from: its best others, and random ones
FOLDS = 5
CUT = 10  # of nDCG
_WEIGHTS = np.linspace(0, 1, 21)
_SMOOTHED = 5  # neighbouring weights whose means are averaged before the best is chosen


class Topic(NamedTuple):
    """A judged topic: its vector, float32 (d,); the grades of its relevant passages by docid; the sparse rankings."""

    query: Query
    vector: NDArray[np.float32]
    grades: Mapping[str, int]
    sparse: tuple[Ranking, ...]


class Adaptation(NamedTuple):
    """What was learnt from all topics, and what the same way of learning gave on topics held out.

    Attributes
    ----------
    query_map : A, float32 (d, d)
    weights : one for each ranking, dense first, of their min-max normalised scores; they sum to 1
    held_out : nDCG@10 of each topic, learnt from the topics of the other folds; in the order of `qids`
    map_alone : likewise of the dense ranking with its map, not fused
    untuned : nDCG@10 of each topic by each ranking alone and by their interleaving, by name
    """

    query_map: NDArray[np.float32]
    weights: tuple[float, ...]
    qids: tuple[str, ...]
    held_out: NDArray[np.float64]
    map_alone: NDArray[np.float64]
    untuned: dict[str, NDArray[np.float64]]


def adapt(
    dense: RepBertSearcher,
    sparse: Sequence[Ranker],
    topics: Sequence[Query],
    qrels: Qrels,
    seed: int = 0,
    on_progress: Callable[[int], object] = int,
) -> Adaptation:
    """Learn a query map, and the weights of a fusion with the sparse rankings, from judged topics.

    Parameters
    ----------
    topics : those without a relevant passage in the index are left out
    seed : of the folds and of the random passages
    on_progress : called with 1 after each of `FOLDS` * (`FOLDS` + 1) / 2 + 1 maps

    Raises InputError for fewer than `LEAST_TOPICS` judged topics, or an index that is no dense bundle.
    """
    if not isinstance(dense.index, DenseBundle):
        raise InputError(f'index {dense.index_dir} is no dense bundle, whose vectors are read: encode the corpus')
    judged = _judged(dense, dense.index, sparse, topics, qrels)
    passages = _Passages(dense, dense.index, judged, seed)
    order = random.Random(seed).sample(range(len(judged)), len(judged))
    folds = [sorted(order[number::FOLDS]) for number in range(FOLDS)]

    def searched(out: Sequence[int], asked: Sequence[int]) -> dict[int, Ranking]:
        """The dense rankings of the topics `asked`, with the map learnt from all that are not in the folds `out`."""
        held = {place for fold in out for place in folds[fold]}
        mapped = learn_query_map(passages, [place for place in range(len(judged)) if place not in held])
        on_progress(1)
        vectors = np.stack([judged[place].vector for place in asked])
        return dict(zip(asked, dense.of_vectors(vectors + vectors @ mapped, DEPTH), strict=True))

    alone = {place: ranking for fold in range(FOLDS) for place, ranking in searched([fold], folds[fold]).items()}
    both = {pair: searched(pair, folds[pair[0]] + folds[pair[1]]) for pair in combinations(range(FOLDS), 2)}
    final = learn_query_map(passages, range(len(judged)))
    on_progress(1)

    columns = {
        place: Alignment.of([ranking, *judged[place].sparse], judged[place].grades) for place, ranking in alone.items()
    }
    held_out = np.zeros(len(judged))
    for fold, members in enumerate(folds):
        inner = [
            Alignment.of([both[min(fold, other), max(fold, other)][place], *judged[place].sparse], judged[place].grades)
            for other in range(FOLDS)
            if other != fold
            for place in folds[other]
        ]
        weights = learn_weights(inner)
        held_out[members] = [columns[place].values(weights)[0] for place in members]
    return Adaptation(
        final,
        learn_weights(list(columns.values())),
        tuple(topic.query.qid for topic in judged),
        held_out,
        np.array([columns[place].values(_only_first(len(sparse)))[0] for place in range(len(judged))]),
        _untuned(dense, sparse, judged),
    )


def _judged(
    dense: RepBertSearcher, index: DenseBundle, sparse: Sequence[Ranker], topics: Sequence[Query], qrels: Qrels
) -> list[Topic]:
    """The topics with a relevant passage in the index."""
    kept: list[tuple[Query, dict[str, int]]] = []
    for topic in topics:
        grades = {docid: grade for docid, grade in qrels.get(topic.qid, {}).items() if grade > 0}
        if (index.rows(list(grades)) >= 0).any():
            kept.append((topic, grades))
    if len(kept) < LEAST_TOPICS:
        raise InputError(
            f'{len(kept)} of {len(topics)} topics have a relevant passage in {dense.index_dir}, at least '
            f'{LEAST_TOPICS} are needed: what fewer teach is noise'
        )
    asked = [topic for topic, _ in kept]
    vectors = dense.encode([topic.text for topic in asked])
    runs = [ranker.rank(asked, None, DEPTH) for ranker in sparse]
    return [
        Topic(topic, vector, grades, tuple(run[topic.qid] for run in runs))
        for (topic, grades), vector in zip(kept, vectors, strict=True)
    ]


class _Passages:
    """The vectors that the map is learnt from.

    Attributes
    ----------
    queries : float32 (n topics, d)
    scale : what inner products are multiplied by
    random, is_relevant : float32 (m, d), random passages; bool (n topics, m)
    hard : float32 (n topics, `HARD`, d): each topic's best passages that are not relevant
    relevant, topic_of : float32 (r, d), the relevant passages of all topics; int64 (r,), the topic of each
    """

    def __init__(self, dense: RepBertSearcher, index: DenseBundle, topics: Sequence[Topic], seed: int) -> None:
        vectors = np.stack([topic.vector for topic in topics])
        rows = [index.rows(list(topic.grades)) for topic in topics]
        rows = [own[own >= 0] for own in rows]
        chosen = np.sort(np.random.default_rng(seed).choice(len(index), min(RANDOM, len(index)), replace=False))
        best = dense.of_vectors(vectors, HARD + max(map(len, rows)))
        others = [
            [docid for docid in own.docids if docid not in topic.grades]
            for own, topic in zip(best, topics, strict=True)
        ]
        n_hard = min(HARD, *map(len, others))
        hard = [index.vectors(index.rows(docids[:n_hard])) for docids in others]
        self.queries = torch.from_numpy(vectors)
        self.random = torch.from_numpy(index.vectors(chosen))
        self.is_relevant = torch.from_numpy(np.stack([np.isin(chosen, own) for own in rows]))
        self.hard = torch.from_numpy(np.stack(hard))
        self.relevant = torch.from_numpy(index.vectors(np.concatenate(rows)))
        self.topic_of = torch.from_numpy(np.repeat(np.arange(len(rows)), [len(own) for own in rows]))
        self.scale = 1 / (TEMPERATURE * float((self.queries @ self.random.T).std(dim=1).mean()))


def learn_query_map(passages: _Passages, places: Sequence[int]) -> NDArray[np.float32]:
    """The map A, float32 (d, d), symmetric, learnt from the topics at these places."""
    chosen = torch.tensor(list(places))
    queries, hard, is_relevant = passages.queries[chosen], passages.hard[chosen], passages.is_relevant[chosen]
    new_place = torch.full((len(passages.queries),), -1)
    new_place[chosen] = torch.arange(len(chosen))
    owners = new_place[passages.topic_of]
    relevant, owners = passages.relevant[owners >= 0], owners[owners >= 0]
    share = 1 / (torch.bincount(owners)[owners] * len(chosen))
    half = torch.zeros(queries.shape[1], queries.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([half], max_iter=STEPS, line_search_fn='strong_wolfe')

    def loss() -> Tensor:
        optimizer.zero_grad()
        change = (half + half.T) / 2
        mapped = (queries + queries @ change) * passages.scale
        at_random = (mapped @ passages.random.T).masked_fill(is_relevant, -torch.inf)
        others = torch.cat([at_random, torch.einsum('td,thd->th', mapped, hard)], dim=1).logsumexp(dim=1)[owners]
        scores = (mapped[owners] * relevant).sum(dim=1)
        total = (share * (torch.logaddexp(others, scores) - scores)).sum() + RIDGE * change.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # hundreds of small products: threads would wait for each other longer than they compute
    try:
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    finally:
        torch.set_num_threads(threads)
    result: NDArray[np.float32] = ((half + half.T) / 2).detach().numpy()
    return result


class Alignment(NamedTuple):
    """The rankings of one topic side by side, over all their passages in the order of docids.

    `scores` float64 (n rankings, m), min-max normalised, 0 where a ranking lacks the passage; `gains` float64 (m,);
    `ideal`, the discounted gain of the best ranking possible.
    """

    scores: NDArray[np.float64]
    gains: NDArray[np.float64]
    ideal: float

    @classmethod
    def of(cls, rankings: Sequence[Ranking], grades: Mapping[str, int]) -> Alignment:
        """The columns of some rankings, and the grades of the topic's relevant passages."""
        docids = sorted({docid for ranking in rankings for docid in ranking.docids})
        places = {docid: place for place, docid in enumerate(docids)}
        scores = np.zeros((len(rankings), len(docids)))
        for column, ranking in zip(scores, rankings, strict=True):
            column[[places[docid] for docid in ranking.docids]] = scaled(ranking.scores, Normalization.MINMAX)
        gains = np.array([grades.get(docid, 0) for docid in docids], dtype=np.float64)
        return cls(scores, gains, _discounted(np.array(sorted(grades.values(), reverse=True)[:CUT], np.float64)))

    def values(self, *weights: Sequence[float]) -> NDArray[np.float64]:
        """nDCG@10 under each set of weights, float64 (n sets,), ties by docid."""
        totals = np.array(weights) @ self.scores
        best = np.argsort(-totals, axis=1, kind='stable')[:, :CUT]
        return np.array([_discounted(self.gains[own]) / self.ideal for own in best])


def _discounted(gains: NDArray[np.float64]) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def learn_weights(topics: Sequence[Alignment]) -> tuple[float, ...]:
    """Weights that sum to 1, one for each ranking: each is added to those before it with the best weight.

    The best weight has the greatest mean nDCG@10 after averaging over its neighbours, for one topic alone can
    move the greatest mean.
    """
    weights = np.array(_only_first(len(topics[0].scores) - 1))
    for place in range(1, len(weights)):
        alone = np.eye(len(weights))[place]
        tried = [(1 - weight) * weights + weight * alone for weight in _WEIGHTS]
        means = np.mean([topic.values(*tried) for topic in topics], axis=0)
        smooth = np.convolve(np.pad(means, _SMOOTHED // 2, mode='edge'), np.ones(_SMOOTHED), 'valid')
        weights = tried[int(smooth.argmax())]
    return tuple(float(round(weight, 6)) for weight in weights)


def _only_first(n_others: int) -> list[float]:
    return [1.0] + [0.0] * n_others


def _untuned(dense: RepBertSearcher, sparse: Sequence[Ranker], topics: Sequence[Topic]) -> dict[str, Any]:
    """nDCG@10 of each topic by each ranking alone, and by interleaving them."""
    of_dense = dense.of_vectors(np.stack([topic.vector for topic in topics]), DEPTH)
    names = [dense.name, *(ranker.name for ranker in sparse)]
    runs = [{str(place): own for place, own in enumerate(of_dense)}]
    runs += [{str(place): topic.sparse[number] for place, topic in enumerate(topics)} for number in range(len(sparse))]
    if sparse:
        names.append(FusionMethod.INTERLEAVE)
        runs.append(fuse(runs, FusionMethod.INTERLEAVE))
    return {
        name: np.array(
            [Alignment.of([run[str(place)]], topic.grades).values([1.0])[0] for place, topic in enumerate(topics)]
        )
        for name, run in zip(names, runs, strict=True)
    }
