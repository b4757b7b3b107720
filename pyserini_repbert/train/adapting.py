"""Adapting a first stage to judgments without a new index: a map of query vectors, and the weights of a fusion.

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

    `steps` has the nDCG@10 of each topic with the query map, then also fused, then also reranked, each learnt from the
    other folds' topics; `untuned` by each ranking alone, by their interleaving, and with the reranker's own scores.
    """

    query_map: NDArray[np.float32]  # A, (d, d)
    weights: tuple[float, ...]  # of each ranking's min-max normalised scores, dense first; they sum to 1
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
    """Learn a query map, the weights of a fusion with the sparse rankings, and a reranker's, from judged topics.

    Parameters
    ----------
    reranker : takes a run, and finds its passages
    topics : those without a relevant passage in the index are left out
    seed : of the folds and of the random passages
    on_progress : called with 1 after each of `FOLDS` * (`FOLDS` + 1) / 2 + 1 maps
    """
    if not isinstance(dense.index, DenseBundle):
        raise InputError(f'index {dense.index_dir} is no dense bundle, whose vectors are read: encode the corpus')
    judged = _judged(dense, dense.index, sparse, topics, qrels)
    contrast = Contrast(dense, dense.index, judged, seed)
    order = random.Random(seed).sample(range(len(judged)), len(judged))
    folds = [sorted(order[number::FOLDS]) for number in range(FOLDS)]

    def searched(out: Sequence[int], asked: Sequence[int]) -> dict[int, Ranking]:
        """The dense rankings of the topics `asked`, with the map learnt from all that are not in the folds `out`."""
        held = {place for fold in out for place in folds[fold]}
        mapped = learn_query_map(contrast, [place for place in range(len(judged)) if place not in held])
        on_progress(1)
        vectors = np.stack([judged[place].vector for place in asked])
        return dict(zip(asked, dense.of_vectors(vectors + vectors @ mapped, DEPTH), strict=True))

    alone = {place: ranking for fold in range(FOLDS) for place, ranking in searched([fold], folds[fold]).items()}
    both = {pair: searched(pair, folds[pair[0]] + folds[pair[1]]) for pair in combinations(range(FOLDS), 2)}
    final = learn_query_map(contrast, range(len(judged)))
    on_progress(1)

    def columns(place: int, dense_ranking: Ranking) -> Alignment:
        return Alignment.of([dense_ranking, *judged[place].sparse], judged[place].grades)

    outer = [columns(place, alone[place]) for place in range(len(judged))]
    only_dense = np.eye(1 + len(sparse))[0]
    steps = {'with the query map': np.array([aligned.values(only_dense)[0] for aligned in outer])}
    if sparse:
        fused = np.zeros(len(judged))
        for fold, members in enumerate(folds):
            inner = [
                columns(place, both[min(fold, other), max(fold, other)][place])
                for other in range(FOLDS)
                if other != fold
                for place in folds[other]
            ]
            weights = learn_weights(inner)
            fused[members] = [outer[place].values(weights)[0] for place in members]
        steps['and fused'] = fused
    weights = learn_weights(outer)
    untuned, first_run = _untuned(dense, sparse, judged)
    share = None
    if reranker is not None:
        aligned_orders = _both_orders(reranker, judged, first_run)
        values = np.array([aligned.values([0.0, 1.0])[0] for aligned in aligned_orders])
        untuned[f'{list(untuned)[-1]}, {reranker.label}'] = values
        rankings = [{topic.query.qid: alone[place] for place, topic in enumerate(judged)}]
        rankings += [{topic.query.qid: topic.sparse[number] for topic in judged} for number in range(len(sparse))]
        fused_run = fuse(rankings, FusionMethod.INTERPOLATION, DEPTH, weights, normalize=Normalization.MINMAX)
        pairs = _both_orders(reranker, judged, fused_run)
        values = np.zeros(len(judged))
        for members in folds:
            held = set(members)
            fold_weights = learn_weights([pair for place, pair in enumerate(pairs) if place not in held])
            values[members] = [pairs[place].values(fold_weights)[0] for place in members]
        steps['and reranked'] = values
        share = learn_weights(pairs)[1]
    return Adaptation(final, weights, share, tuple(topic.query.qid for topic in judged), steps, untuned)


def _both_orders(reranker: Ranker, topics: Sequence[Topic], run: Run) -> list[Alignment]:
    """Of each topic, the candidates that the reranker reads, with their scores before and after it."""
    heads = {qid: ranking[: reranker.reads] for qid, ranking in run.items()}
    reranked = reranker.rank([topic.query for topic in topics], heads, None)
    return [Alignment.of([heads[topic.query.qid], reranked[topic.query.qid]], topic.grades) for topic in topics]


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
        return np.array([_discounted(self.gains[order]) / self.ideal for order in best])


def _discounted(gains: NDArray[np.float64]) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def learn_weights(topics: Sequence[Alignment]) -> tuple[float, ...]:
    """Weights that sum to 1, one for each ranking: each is added to those before it with the best weight.

    The best weight has the greatest mean nDCG@10 after averaging over its neighbours, for one topic alone can
    move the greatest mean.
    """
    weights, *others = np.eye(len(topics[0].scores))
    for alone in others:
        tried = [(1 - weight) * weights + weight * alone for weight in _WEIGHTS]
        means = np.mean([topic.values(*tried) for topic in topics], axis=0)
        smooth = np.convolve(np.pad(means, _SMOOTHED // 2, mode='edge'), np.ones(_SMOOTHED), 'valid')
        weights = tried[int(smooth.argmax())]
    return tuple(float(round(weight, 6)) for weight in weights)


def _untuned(
    dense: RepBertSearcher, sparse: Sequence[Ranker], topics: Sequence[Topic]
) -> tuple[dict[str, NDArray[np.float64]], Run]:
    """nDCG@10 of each topic by each ranking alone, and by interleaving them, whose run follows."""
    qids = [topic.query.qid for topic in topics]
    of_dense = dense.of_vectors(np.stack([topic.vector for topic in topics]), DEPTH)
    runs = {dense.name: dict(zip(qids, of_dense, strict=True))}
    for number, ranker in enumerate(sparse):
        runs[ranker.name] = {topic.query.qid: topic.sparse[number] for topic in topics}
    if sparse:
        runs[str(FusionMethod.INTERLEAVE)] = fuse(list(runs.values()), FusionMethod.INTERLEAVE)
    values = {
        name: np.array([Alignment.of([run[topic.query.qid]], topic.grades).values([1.0])[0] for topic in topics])
        for name, run in runs.items()
    }
    return values, list(runs.values())[-1]
