"""`adapt`: a first stage and a reranker learn from judgments, without a new index.

The gain is estimated by cross-validation. Topics with the same text are one question: they are held
out together, and count once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.adaptation import Adaptation
from pyserini_repbert.adapt.choosing import LearnedValues, choose_held_out
from pyserini_repbert.adapt.judged_topics import (
    DEPTH,
    FOLDS,
    JudgedTopic,
    JudgedTopics,
    Values,
    align_runs,
    select_judged,
)
from pyserini_repbert.adapt.query_map import TrainingVectors, learn_query_map, read_training_vectors
from pyserini_repbert.adapt.untuned import search_untuned
from pyserini_repbert.adapt.weights import AlignedRankings, learn_weights
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.fusion.fusing import fuse_runs
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import Query, Ranker, Run
from pyserini_repbert.search.dense import VectorSearcher


def adapt(
    dense: VectorSearcher,
    sparse: Sequence[Ranker],
    topics: Sequence[Query],
    qrels: Qrels,
    seed: int = 0,
    on_progress: Callable[[int], object] = int,
    reranker: Ranker | None = None,
    now: Ranker | None = None,
) -> Adaptation:
    """Learn a query map, the weights of a fusion, and a reranker's share from judged topics.

    Then choose between this, every search that needs no judgments, and the present search.

    Parameters
    ----------
    dense : searches a dense bundle, or the documents of a collection
    sparse : rankers whose rankings are fused with the dense one
    topics, qrels : topics without a relevant passage in the index are left out
    seed : draws the folds and the random passages
    on_progress : called with 1 after each of `N_MAPS` maps
    reranker : finds the passages of a run itself
    now : the present search, without the reranker; default: the usual fusion of `dense` and
        `sparse`

    Raises
    ------
    InputError
        If the index is a FAISS folder, if the judgments are of other topics or passages, or if
        fewer than `LEAST_TOPICS` texts remain.
    """
    index = dense.document_rows()
    judged = JudgedTopics(select_judged(dense, index, topics, qrels), seed)
    vectors = read_training_vectors(dense, index, judged.topics, seed)
    maps = _MapLearner(dense, vectors, judged, on_progress)
    sparse_runs = [ranker.rank(judged.queries, None, DEPTH) for ranker in sparse]

    runs = {dense.name: maps.search_unmapped()}
    for ranker, sparse_run in zip(sparse, sparse_runs, strict=True):
        runs[ranker.name] = sparse_run
    untuned = search_untuned(dense, judged, runs, reranker=reranker, now=now)

    held_out = maps.search_held_out()
    steps = {'with the query map': judged.values(held_out.single)}
    weights = learn_weights(align_runs(judged.topics, [held_out.single, *sparse_runs]))
    fused = _fuse_held_out(judged, held_out, sparse_runs)
    learned = fused.values
    if sparse:
        steps['and fused'] = learned.held_out

    rerank_weight = None
    if reranker is not None:
        reranked = judged.rerank(fused.run, reranker)
        learned = _values_under_held_out_shares(judged, reranked)
        steps['and reranked'] = learned.held_out
        rerank_weight = learn_weights(reranked)[1]
    return Adaptation(
        query_map=maps.learn(folds_out=()),
        weights=weights,
        rerank_weight=rerank_weight,
        n_topics=len(judged.topics),
        texts=judged.texts,
        untuned=untuned,
        steps=steps,
        chosen=choose_held_out(untuned.values, learned, judged.fold_of_text),
        fold_maps=held_out.maps,
        fold_of_text=tuple(judged.fold_of_text.tolist()),
    )


@dataclass(frozen=True)
class HeldOutRuns:
    """Dense runs of topics with maps that were learned from the other folds' topics.

    Attributes
    ----------
    single : of all topics, each with the map that its own fold did not teach
    pairs : of the topics of each two folds, with the map that neither of the two taught
    maps : the maps of `single`, fold by fold
    """

    single: Run
    pairs: dict[frozenset[int], Run]
    maps: tuple[NDArray[np.float32], ...]


class _MapLearner:
    """Learns maps from some of the folds, and searches with them."""

    def __init__(
        self,
        dense: VectorSearcher,
        vectors: TrainingVectors,
        judged: JudgedTopics,
        on_progress: Callable[[int], object],
    ) -> None:
        self.dense = dense
        self.vectors = vectors
        self.judged = judged
        self.on_progress = on_progress

    def learn(self, folds_out: Iterable[int]) -> NDArray[np.float32]:
        """The map that all topics outside of these folds teach."""
        held_out: set[int] = set()
        for fold in folds_out:
            held_out.update(self.judged.folds[fold])
        n_topics = len(self.judged.topics)
        positions = [position for position in range(n_topics) if position not in held_out]
        query_map = learn_query_map(self.vectors, positions)
        self.on_progress(1)
        return query_map

    def search_unmapped(self) -> Run:
        """The run of all topics without a map."""
        topics = self.judged.topics
        return self._search(topics, np.stack([topic.vector for topic in topics]))

    def search_held_out(self) -> HeldOutRuns:
        """The runs of each fold's topics, and of each two folds' topics, held out."""
        single: Run = {}
        maps = []
        for fold in range(FOLDS):
            query_map = self.learn((fold,))
            maps.append(query_map)
            single |= self._search_folds((fold,), query_map)
        pairs = {
            frozenset(two_folds): self._search_folds(two_folds, self.learn(two_folds))
            for two_folds in combinations(range(FOLDS), 2)
        }
        return HeldOutRuns(single, pairs, tuple(maps))

    def _search_folds(self, folds: tuple[int, ...], query_map: NDArray[np.float32]) -> Run:
        """The run of these folds' topics, with the map that the others taught."""
        topics: list[JudgedTopic] = []
        for fold in folds:
            topics += self.judged.in_fold(fold)
        vectors = np.stack([topic.vector for topic in topics])
        return self._search(topics, vectors + vectors @ query_map)

    def _search(self, topics: Sequence[JudgedTopic], vectors: NDArray[np.float32]) -> Run:
        rankings = self.dense.of_vectors(vectors, DEPTH)
        return {topic.query.qid: ranking for topic, ranking in zip(topics, rankings, strict=True)}


@dataclass(frozen=True)
class _FusedHeldOut:
    """What was learned without the reranker.

    Attributes
    ----------
    run : of all topics, each with what the other folds teach
    values : of the same, and with what still fewer folds teach
    """

    run: Run
    values: LearnedValues


def _fuse_held_out(
    judged: JudgedTopics, held_out: HeldOutRuns, sparse_runs: Sequence[Run]
) -> _FusedHeldOut:
    """Each topic's rankings, fused with the weights that the other folds teach.

    The dense rankings that teach the weights come from maps that the topic's fold did not teach.
    """
    fused: Run = {}
    without: list[Values] = []
    for fold in range(FOLDS):
        aligned: dict[int, list[AlignedRankings]] = {}
        for other in range(FOLDS):
            if other == fold:
                continue
            dense_run = held_out.pairs[frozenset((fold, other))]
            aligned[other] = align_runs(judged.in_fold(other), [dense_run, *sparse_runs])
        qids = [topic.query.qid for topic in judged.in_fold(fold)]
        runs = [_select_topics(run, qids) for run in (held_out.single, *sparse_runs)]
        teaching = list(chain.from_iterable(aligned.values()))
        learned = FusionSettings(FusionMethod.INTERPOLATION).changed(learn_weights(teaching))
        # A single ranking keeps its scores, which are compared with a reranker's.
        fused |= fuse_runs(runs, learned, k=DEPTH) if sparse_runs else runs[0]
        without.append(_values_without_own_fold(judged, aligned))
    return _FusedHeldOut(fused, LearnedValues(judged.values(fused), without))


def _values_without_own_fold(
    judged: JudgedTopics, aligned: Mapping[int, Sequence[AlignedRankings]]
) -> Values:
    """nDCG@10 of each text, with the weights that the other folds among these teach.

    A text of another fold than these has 0. These values choose a way, and no more. A fold's
    judgments reach its own weights here through the maps of the rankings that teach them.
    """
    values = np.zeros(len(judged.topics))
    for fold, own in aligned.items():
        teaching: list[AlignedRankings] = []
        for other, rankings in aligned.items():
            if other != fold:
                teaching += rankings
        weights = learn_weights(teaching)
        for position, topic_rankings in zip(judged.folds[fold], own, strict=True):
            values[position] = topic_rankings.values(weights)[0]
    return judged.average_by_text(values.tolist())


def _select_topics(run: Run, qids: Sequence[str]) -> Run:
    return {qid: run[qid] for qid in qids}


def _values_under_held_out_shares(
    judged: JudgedTopics, reranked: Sequence[AlignedRankings]
) -> LearnedValues:
    """nDCG@10 of rankings before and after a reranker, with the share that other folds teach.

    Each ranking was fused without what its own fold teaches. So a fold's judgments reach its share
    only through the rankings of other folds. To rule that out, each ranking would be reranked five
    times.
    """
    of_folds = {}
    for fold, members in enumerate(judged.folds):
        of_folds[fold] = [reranked[position] for position in members]
    without: list[Values] = []
    for fold in of_folds:
        others = {other: rankings for other, rankings in of_folds.items() if other != fold}
        without.append(_values_without_own_fold(judged, others))
    return LearnedValues(_values_without_own_fold(judged, of_folds), without)
