"""Adapting a first stage to judgments without a new index: a map of query vectors, and the weights
of a fusion.

The weights maximise nDCG@10 on topics that the map did not learn from.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.methods import FusionMethod, Normalization, fuse, scaled
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.ranking import Query, Ranker, Ranking, Run
from pyserini_repbert.search.dense import RepBertSearcher
from pyserini_repbert.train.query_map import Contrast, Topic, learn_query_map

LEAST_TOPICS = 20
DEPTH = 1000  # hits of each ranking that are fused
FOLDS = 5
CUT = 10  # of nDCG
_WEIGHTS = np.linspace(0, 1, 21)
_SMOOTHED = 5  # neighbouring weights whose means are averaged before the best is chosen


class Adaptation(NamedTuple):
    """What was learnt from all topics, and what the same way of learning gave on topics held out.

    `steps` has the nDCG@10 of each topic with the query map, then also fused, then also reranked,
    each learnt from the other folds' topics; `untuned` by each ranking alone, by their
    interleaving, and with the reranker's own scores.
    """

    query_map: NDArray[np.float32]  # A, (d, d)
    weights: tuple[
        float, ...
    ]  # of each ranking's min-max normalised scores, dense first; they sum to 1
    rerank_weight: float | None  # the reranker's share of the score; None without one
    qids: tuple[str, ...]
    steps: dict[str, NDArray[np.float64]]
    untuned: dict[str, NDArray[np.float64]]

    @property
    def held_out(self) -> NDArray[np.float64]:
        """nDCG@10 of each topic with all that was learnt from the other folds."""
        return list(self.steps.values())[-1]


def adapt(
    dense: RepBertSearcher,
    sparse: Sequence[Ranker],
    topics: Sequence[Query],
    qrels: Qrels,
    seed: int = 0,
    on_progress: Callable[[int], object] = int,
    reranker: Ranker | None = None,
) -> Adaptation:
    """Learn a query map, the weights of a fusion with the sparse rankings, and a reranker's, from
    judged topics.

    Topics without a relevant passage in the index are left out. The seed draws the folds and the
    random passages. `on_progress` is called with 1 after each of `FOLDS` * (`FOLDS` + 1) / 2 + 1
    maps. The reranker finds the passages of a run itself.
    """
    if not isinstance(dense.index, DenseBundle):
        raise InputError(
            f'index {dense.index_dir} is no dense bundle, whose vectors are read: encode the corpus'
        )
    judged = _judged(dense, dense.index, topics, qrels)
    queries = [topic.query for topic in judged]
    sparse_runs = [ranker.rank(queries, None, DEPTH) for ranker in sparse]
    contrast = Contrast(dense, dense.index, judged, seed)
    order = random.Random(seed).sample(range(len(judged)), len(judged))
    folds = [sorted(order[number::FOLDS]) for number in range(FOLDS)]

    def searched(out: Sequence[int], asked: Sequence[int]) -> Run:
        """The dense run of the topics `asked`, with the map learnt from all that are not in the
        folds `out`.
        """
        held = {place for fold in out for place in folds[fold]}
        mapped = learn_query_map(
            contrast, [place for place in range(len(judged)) if place not in held]
        )
        on_progress(1)
        vectors = np.stack([judged[place].vector for place in asked])
        rankings = dense.of_vectors(vectors + vectors @ mapped, DEPTH)
        return {queries[place].qid: ranking for place, ranking in zip(asked, rankings, strict=True)}

    alone = {
        qid: ranking
        for fold in range(FOLDS)
        for qid, ranking in searched([fold], folds[fold]).items()
    }
    both = {
        pair: searched(pair, folds[pair[0]] + folds[pair[1]])
        for pair in combinations(range(FOLDS), 2)
    }
    final = learn_query_map(contrast, range(len(judged)))
    on_progress(1)

    rankings = dense.of_vectors(np.stack([topic.vector for topic in judged]), DEPTH)
    runs = {
        dense.name: {query.qid: ranking for query, ranking in zip(queries, rankings, strict=True)}
    }
    runs |= {ranker.name: run for ranker, run in zip(sparse, sparse_runs, strict=True)}
    if sparse:
        runs[str(FusionMethod.INTERLEAVE)] = fuse(list(runs.values()), FusionMethod.INTERLEAVE)
    untuned = {name: _ndcg(judged, run) for name, run in runs.items()}
    steps = {'with the query map': _ndcg(judged, alone)}
    outer = _aligned(judged, alone, *sparse_runs)
    if sparse:
        fused = np.zeros(len(judged))
        for fold, members in enumerate(folds):
            inner: list[Alignment] = []
            for other in range(FOLDS):
                if other != fold:
                    run = both[min(fold, other), max(fold, other)]
                    inner += _aligned([judged[place] for place in folds[other]], run, *sparse_runs)
            weights = learn_weights(inner)
            fused[members] = [outer[place].values(weights)[0] for place in members]
        steps['and fused'] = fused
    weights = learn_weights(outer)
    share = None
    if reranker is not None:
        name, run = list(runs.items())[-1]
        untuned[f'{name}, {reranker.label}'] = _ndcg(
            judged, _head_and_reranked(reranker, queries, run)[1]
        )
        run = fuse(
            [alone, *sparse_runs],
            FusionMethod.INTERPOLATION,
            DEPTH,
            weights,
            normalize=Normalization.MINMAX,
        )
        pairs = _aligned(judged, *_head_and_reranked(reranker, queries, run))
        values = np.zeros(len(judged))
        for members in folds:
            held = set(members)
            fold_weights = learn_weights(
                [pair for place, pair in enumerate(pairs) if place not in held]
            )
            values[members] = [pairs[place].values(fold_weights)[0] for place in members]
        steps['and reranked'] = values
        share = learn_weights(pairs)[1]
    return Adaptation(final, weights, share, tuple(query.qid for query in queries), steps, untuned)


def _head_and_reranked(reranker: Ranker, queries: Sequence[Query], run: Run) -> tuple[Run, Run]:
    """The candidates that the reranker reads, before and after it."""
    heads = {qid: ranking[: reranker.reads] for qid, ranking in run.items()}
    return heads, reranker.rank(queries, heads, None)


def _judged(
    dense: RepBertSearcher, index: DenseBundle, topics: Sequence[Query], qrels: Qrels
) -> list[Topic]:
    """The topics with a relevant passage in the index."""
    kept: list[tuple[Query, dict[str, int]]] = []
    for topic in topics:
        grades = {docid: grade for docid, grade in qrels.get(topic.qid, {}).items() if grade > 0}
        if (index.rows(list(grades)) >= 0).any():
            kept.append((topic, grades))
    if len(kept) < LEAST_TOPICS:
        raise InputError(
            f'{len(kept)} of {len(topics)} topics have a relevant passage in {dense.index_dir}, '
            f'at least '
            f'{LEAST_TOPICS} are needed: what fewer teach is noise'
        )
    vectors = dense.encode([topic.text for topic, _ in kept])
    return [
        Topic(topic, vector, grades) for (topic, grades), vector in zip(kept, vectors, strict=True)
    ]


class Alignment(NamedTuple):
    """The rankings of one topic side by side, over all their passages in the order of docids.

    `scores` float64 (n rankings, m), min-max normalised, 0 where a ranking lacks the passage;
    `gains` float64 (m,); `ideal`, the discounted gain of the best ranking possible.
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
            column[[places[docid] for docid in ranking.docids]] = scaled(
                ranking.scores, Normalization.MINMAX
            )
        gains = np.array([grades.get(docid, 0) for docid in docids], dtype=np.float64)
        return cls(
            scores,
            gains,
            _discounted(np.array(sorted(grades.values(), reverse=True)[:CUT], np.float64)),
        )

    def values(self, *weights: Sequence[float]) -> NDArray[np.float64]:
        """nDCG@10 under each set of weights, float64 (n sets,), ties by docid."""
        totals = np.array(weights) @ self.scores
        best = np.argsort(-totals, axis=1, kind='stable')[:, :CUT]
        return np.array([_discounted(self.gains[order]) / self.ideal for order in best])


def _aligned(topics: Sequence[Topic], *runs: Run) -> list[Alignment]:
    """Of each topic, its rankings in these runs side by side."""
    return [Alignment.of([run[topic.query.qid] for run in runs], topic.grades) for topic in topics]


def _ndcg(topics: Sequence[Topic], run: Run) -> NDArray[np.float64]:
    """nDCG@10 of each topic by a run."""
    return np.array([alignment.values([1.0])[0] for alignment in _aligned(topics, run)])


def _discounted(gains: NDArray[np.float64]) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def learn_weights(topics: Sequence[Alignment]) -> tuple[float, ...]:
    """Weights that sum to 1, one for each ranking: each is added to those before it with the best
    weight.

    The best weight has the greatest mean nDCG@10 after averaging over its neighbours, for one topic
    alone can move the greatest mean.
    """
    weights, *others = np.eye(len(topics[0].scores))
    for alone in others:
        tried = [(1 - weight) * weights + weight * alone for weight in _WEIGHTS]
        means = np.mean([topic.values(*tried) for topic in topics], axis=0)
        smooth = np.convolve(
            np.pad(means, _SMOOTHED // 2, mode='edge'), np.ones(_SMOOTHED), 'valid'
        )
        weights = tried[int(smooth.argmax())]
    return tuple(float(round(weight, 6)) for weight in weights)
