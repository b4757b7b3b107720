"""Adapting a first stage to judgments without a new index: a map of query vectors, and the weights
of a fusion.

What is learnt is estimated by cross-validation. Topics with the same text are one question: they
are held out together, and count once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.significance import paired_t_test
from pyserini_repbert.evaluate.studies.fusion import untuned_settings
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.fusion.methods import FusionMethod, Normalization
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.names.dense import RepBertSearcher
from pyserini_repbert.ranking import Query, Ranker, Run
from pyserini_repbert.train.alignment import CUT, Alignment, learn_weights
from pyserini_repbert.train.judged_topics import FOLDS, JudgedTopics, Values, align, select_judged
from pyserini_repbert.train.query_map import Contrast, Topic, learn_query_map

DEPTH = 1000  # hits of each ranking that are fused
N_MAPS = FOLDS * (FOLDS + 1) // 2 + 1  # that are learnt: one or two folds held out, or none
_CONVINCING = 0.05  # the p below which a gain is more than noise


@dataclass(frozen=True)
class Estimate:
    """What searching with an adaptation gains over the best ranking that needs no judgments."""

    topics: int
    texts: int  # that differ: each counts once
    baseline: str  # the best untuned ranking
    untuned: float  # its mean nDCG@10
    adapted: float  # mean nDCG@10 of topics held out
    gain: float
    standard_error: float
    p: float  # of the paired t-test over texts, two-sided

    @property
    def is_convincing(self) -> bool:
        """Whether the gain is more than noise."""
        return self.gain > 0 and self.p < _CONVINCING


@dataclass(frozen=True)
class Adaptation:
    """What was learnt from all topics, and what the same way of learning gave on topics held out.

    Attributes
    ----------
    query_map : A, float32 (d, d)
    weights : of each ranking's min-max normalised scores, dense first; they sum to 1
    rerank_weight : the reranker's share of the score; None without one
    n_topics : how many topics were learnt from
    untuned : values of each ranking alone, of each fusion that needs no judgments, and of the best
        of them reranked
    steps : values with the query map, then also fused, then also reranked, each learnt from the
        topics of other folds
    """

    query_map: NDArray[np.float32]
    weights: tuple[float, ...]
    rerank_weight: float | None
    n_topics: int
    untuned: dict[str, Values]
    steps: dict[str, Values]

    @property
    def held_out(self) -> Values:
        """With all that was learnt from the other folds."""
        return list(self.steps.values())[-1]

    def estimate(self) -> Estimate:
        """The gain over the best of `untuned`, and its significance."""
        baseline = _best_name(self.untuned)
        best = self.untuned[baseline]
        gains = self.held_out - best
        return Estimate(
            topics=self.n_topics,
            texts=len(gains),
            baseline=baseline,
            untuned=float(best.mean()),
            adapted=float(self.held_out.mean()),
            gain=float(gains.mean()),
            standard_error=float(gains.std(ddof=1)) / math.sqrt(len(gains)),
            p=paired_t_test(self.held_out.tolist(), best.tolist())[1],
        )


def adapt(
    dense: RepBertSearcher,
    sparse: Sequence[Ranker],
    topics: Sequence[Query],
    qrels: Qrels,
    seed: int = 0,
    on_progress: Callable[[int], object] = int,
    reranker: Ranker | None = None,
) -> Adaptation:
    """Learn from judged topics a query map, the weights of a fusion, and a reranker's share.

    Parameters
    ----------
    dense : searches a dense bundle
    sparse : rankers whose rankings are fused with the dense one
    topics, qrels : topics without a relevant passage in the index are left out
    seed : draws the folds and the random passages
    on_progress : called with 1 after each of `N_MAPS` maps
    reranker : finds the passages of a run itself

    Raises
    ------
    InputError
        If the index is no dense bundle, if the judgments are of other topics or passages, or if
        fewer than `LEAST_TOPICS` texts remain.
    """
    if not isinstance(dense.index, DenseBundle):
        raise InputError(
            f'index {dense.index_dir} is no dense bundle, whose vectors are read: encode the corpus'
        )
    judged = JudgedTopics(select_judged(dense, dense.index, topics, qrels), seed)
    contrast = Contrast(dense, dense.index, judged.topics, seed)
    learner = _MapLearner(dense, contrast, judged, on_progress)
    sparse_runs = [ranker.rank(judged.queries, None, DEPTH) for ranker in sparse]

    runs = {dense.name: learner.search_unmapped()}
    runs |= {ranker.name: run for ranker, run in zip(sparse, sparse_runs, strict=True)}
    fusions = {str(setting): setting for setting in untuned_settings(list(runs))} if sparse else {}
    untuned = {name: judged.values(run) for name, run in runs.items()}
    for name, setting in fusions.items():
        untuned[name] = judged.values(setting.fused(runs, judged.qids, CUT))

    held_out = learner.search_held_out()
    weights = learn_weights(align(judged.topics, [held_out.single, *sparse_runs]))
    run = held_out.single
    steps = {'with the query map': judged.values(run)}
    if sparse:
        run = _fuse_held_out(judged, held_out, sparse_runs)
        steps['and fused'] = judged.values(run)
    share = None
    if reranker is not None:
        best = _best_name(untuned)
        if best in fusions:
            runs[best] = fusions[best].fused(runs, judged.qids, DEPTH)
        untuned |= _rerank_untuned(judged, runs[best], best, reranker)
        pairs = judged.align_reranked(run, reranker)
        steps['and reranked'] = _values_under_held_out_shares(judged, pairs)
        share = learn_weights(pairs)[1]
    return Adaptation(
        query_map=learner.learn(folds_out=()),
        weights=weights,
        rerank_weight=share,
        n_topics=len(judged.topics),
        untuned=untuned,
        steps=steps,
    )


@dataclass(frozen=True)
class HeldOutRuns:
    """Dense runs of topics with maps that were learnt from the other folds' topics.

    Attributes
    ----------
    single : of all topics, each with the map that its own fold did not teach
    pairs : of the topics of each two folds, with the map that neither of the two taught
    """

    single: Run
    pairs: dict[frozenset[int], Run]


class _MapLearner:
    """Learns maps from some of the folds, and searches with them."""

    def __init__(
        self,
        dense: RepBertSearcher,
        contrast: Contrast,
        judged: JudgedTopics,
        on_progress: Callable[[int], object],
    ) -> None:
        self.dense = dense
        self.contrast = contrast
        self.judged = judged
        self.on_progress = on_progress

    def learn(self, folds_out: Iterable[int]) -> NDArray[np.float32]:
        """The map that all topics outside of these folds teach."""
        out: set[int] = set()
        for fold in folds_out:
            out.update(self.judged.folds[fold])
        taught_by = [n for n in range(len(self.judged.topics)) if n not in out]
        query_map = learn_query_map(self.contrast, taught_by)
        self.on_progress(1)
        return query_map

    def search_unmapped(self) -> Run:
        """The run of all topics without a map."""
        vectors = np.stack([topic.vector for topic in self.judged.topics])
        return self._search(self.judged.topics, vectors)

    def search_held_out(self) -> HeldOutRuns:
        """The runs of each fold's topics, and of each two folds' topics, held out."""
        single: Run = {}
        for fold in range(FOLDS):
            single |= self._search_folds((fold,))
        pairs = {
            frozenset(pair): self._search_folds(pair) for pair in combinations(range(FOLDS), 2)
        }
        return HeldOutRuns(single, pairs)

    def _search_folds(self, folds: tuple[int, ...]) -> Run:
        """The run of these folds' topics, with the map that the others teach."""
        query_map = self.learn(folds)
        topics: list[Topic] = []
        for fold in folds:
            topics += self.judged.in_fold(fold)
        vectors = np.stack([topic.vector for topic in topics])
        return self._search(topics, vectors + vectors @ query_map)

    def _search(self, topics: Sequence[Topic], vectors: NDArray[np.float32]) -> Run:
        rankings = self.dense.of_vectors(vectors, DEPTH)
        return {topic.query.qid: ranking for topic, ranking in zip(topics, rankings, strict=True)}


def _fuse_held_out(judged: JudgedTopics, held_out: HeldOutRuns, sparse_runs: Sequence[Run]) -> Run:
    """Each topic's rankings, fused with the weights that the other folds teach.

    The dense rankings that teach them are of maps that the topic's fold did not teach either.
    """
    fused: Run = {}
    for fold in range(FOLDS):
        inner: list[Alignment] = []
        for other in range(FOLDS):
            if other != fold:
                dense_run = held_out.pairs[frozenset((fold, other))]
                inner += align(judged.in_fold(other), [dense_run, *sparse_runs])
        qids = [topic.query.qid for topic in judged.in_fold(fold)]
        fused |= fuse(
            [{qid: run[qid] for qid in qids} for run in (held_out.single, *sparse_runs)],
            FusionMethod.INTERPOLATION,
            DEPTH,
            learn_weights(inner),
            normalize=Normalization.MINMAX,
        )
    return fused


def _rerank_untuned(
    judged: JudgedTopics, run: Run, name: str, reranker: Ranker
) -> dict[str, Values]:
    """A run reranked: by the reranker's own scores, and with half of the score."""
    pairs = judged.align_reranked(run, reranker)
    label = f'{name}, {reranker.label}'
    values = np.stack([pair.values([0.0, 1.0], [0.5, 0.5]) for pair in pairs], axis=1)
    return {
        label: judged.average_by_text(values[0].tolist()),
        f'{label}:weight=0.5': judged.average_by_text(values[1].tolist()),
    }


def _values_under_held_out_shares(judged: JudgedTopics, pairs: Sequence[Alignment]) -> Values:
    """nDCG@10 of rankings before and after a reranker, with the share that other folds teach.

    Each ranking was fused without what its own fold teaches, so this fold's judgments reach its
    share only through the other folds' rankings: to rule that out, each would be reranked five
    times.
    """
    values = np.zeros(len(pairs))
    for members in judged.folds:
        held = set(members)
        others = [pair for position, pair in enumerate(pairs) if position not in held]
        weights = learn_weights(others)
        for position in members:
            values[position] = pairs[position].values(weights)[0]
    return judged.average_by_text(values.tolist())


def _best_name(values: dict[str, Values]) -> str:
    """The name with the greatest mean; the first of equal ones."""
    return max(values, key=lambda name: values[name].mean())
