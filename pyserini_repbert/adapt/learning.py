"""`adapt`: a first stage and a reranker learn from judgments, without a new index.

The gain is estimated by cross-validation. Topics with the same text are one question: they are held
out together, and count once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.adaptation import Adaptation, best_name
from pyserini_repbert.adapt.judged_index import judged_index
from pyserini_repbert.adapt.judged_topics import (
    FOLDS,
    JudgedTopic,
    JudgedTopics,
    Values,
    align_runs,
    select_judged,
)
from pyserini_repbert.adapt.query_map import TrainingVectors, learn_query_map, read_training_vectors
from pyserini_repbert.adapt.weights import CUT, AlignedRankings, learn_weights
from pyserini_repbert.collection.document_search import DocumentSearcher
from pyserini_repbert.collection.searching import CollectionRanking, default_fusion
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.evaluate.studies.fusion import RunFusion, untuned_settings
from pyserini_repbert.fusion.fusing import fuse_runs
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import Query, Ranker, Run
from pyserini_repbert.search.dense import DenseSearcher

DEPTH = 1000  # hits of each ranking that are fused
N_MAPS = FOLDS * (FOLDS + 1) // 2 + 1  # that are learnt: one or two folds held out, or none


def adapt(
    dense: DenseSearcher,
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
    dense : searches a dense bundle, or the documents of a collection
    sparse : rankers whose rankings are fused with the dense one
    topics, qrels : topics without a relevant passage in the index are left out
    seed : draws the folds and the random passages
    on_progress : called with 1 after each of `N_MAPS` maps
    reranker : finds the passages of a run itself

    Raises
    ------
    InputError
        If the index is a FAISS folder, if the judgments are of other topics or passages, or if
        fewer than `LEAST_TOPICS` texts remain.
    """
    index = judged_index(dense)
    judged = JudgedTopics(select_judged(dense, index, topics, qrels), seed)
    vectors = read_training_vectors(dense, index, judged.topics, seed)
    maps = _MapLearner(dense, vectors, judged, on_progress)
    sparse_runs = [ranker.rank(judged.queries, None, DEPTH) for ranker in sparse]

    runs = {dense.name: maps.search_unmapped()}
    for ranker, sparse_run in zip(sparse, sparse_runs, strict=True):
        runs[ranker.name] = sparse_run
    fusions = _untuned_fusions(dense, list(runs))
    untuned = _untuned_values(judged, runs, fusions)

    held_out = maps.search_held_out()
    run = held_out.single
    steps = {'with the query map': judged.values(run)}
    weights = learn_weights(align_runs(judged.topics, [run, *sparse_runs]))
    if sparse:
        run = _fuse_held_out(judged, held_out, sparse_runs)
        steps['and fused'] = judged.values(run)

    rerank_weight = None
    if reranker is not None:
        best = best_name(untuned)
        best_run = _run_of(best, judged, runs, fusions)
        untuned |= _reranked_values(judged, best_run, best, reranker)
        reranked = judged.rerank(run, reranker)
        steps['and reranked'] = _values_under_held_out_shares(judged, reranked)
        rerank_weight = learn_weights(reranked)[1]
    return Adaptation(
        query_map=maps.learn(folds_out=()),
        weights=weights,
        rerank_weight=rerank_weight,
        n_topics=len(judged.topics),
        texts=judged.texts,
        untuned=untuned,
        steps=steps,
    )


def _untuned_fusions(dense: DenseSearcher, names: Sequence[str]) -> list[RunFusion]:
    """The fusions of these rankings that need no judgments; a collection's own is among them."""
    if len(names) < 2:
        return []
    fusions = untuned_settings(names)
    if isinstance(dense, DocumentSearcher) and len(names) == 2:
        # The dense run is called after its encoder.
        rankings = [CollectionRanking.DENSE.value, names[1]]
        fusions.append(RunFusion(tuple(names), default_fusion(rankings)))
    return fusions


def _untuned_values(
    judged: JudgedTopics, runs: dict[str, Run], fusions: Sequence[RunFusion]
) -> dict[str, Values]:
    """Values of each run, and of each fusion of all of them that needs no judgments."""
    values = {name: judged.values(run) for name, run in runs.items()}
    for fusion in fusions:
        fused = fusion.fused(runs, judged.qids, CUT)
        values[str(fusion)] = judged.values(fused)
    return values


def _run_of(
    name: str, judged: JudgedTopics, runs: dict[str, Run], fusions: Sequence[RunFusion]
) -> Run:
    """The run that `_untuned_values` calls by this name, as deep as it is reranked."""
    if name in runs:
        return runs[name]
    by_name = {str(fusion): fusion for fusion in fusions}
    return by_name[name].fused(runs, judged.qids, DEPTH)


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
        dense: DenseSearcher,
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
        for fold in range(FOLDS):
            single |= self._search_folds((fold,))
        pairs = {}
        for two_folds in combinations(range(FOLDS), 2):
            pairs[frozenset(two_folds)] = self._search_folds(two_folds)
        return HeldOutRuns(single, pairs)

    def _search_folds(self, folds: tuple[int, ...]) -> Run:
        """The run of these folds' topics, with the map that the others teach."""
        query_map = self.learn(folds)
        topics: list[JudgedTopic] = []
        for fold in folds:
            topics += self.judged.in_fold(fold)
        vectors = np.stack([topic.vector for topic in topics])
        return self._search(topics, vectors + vectors @ query_map)

    def _search(self, topics: Sequence[JudgedTopic], vectors: NDArray[np.float32]) -> Run:
        rankings = self.dense.of_vectors(vectors, DEPTH)
        return {topic.query.qid: ranking for topic, ranking in zip(topics, rankings, strict=True)}


def _fuse_held_out(judged: JudgedTopics, held_out: HeldOutRuns, sparse_runs: Sequence[Run]) -> Run:
    """Each topic's rankings, fused with the weights that the other folds teach.

    The dense rankings that teach the weights come from maps that the topic's fold did not teach.
    """
    fused: Run = {}
    for fold in range(FOLDS):
        teaching: list[AlignedRankings] = []
        for other in range(FOLDS):
            if other == fold:
                continue
            dense_run = held_out.pairs[frozenset((fold, other))]
            teaching += align_runs(judged.in_fold(other), [dense_run, *sparse_runs])
        qids = [topic.query.qid for topic in judged.in_fold(fold)]
        runs = [_select_topics(run, qids) for run in (held_out.single, *sparse_runs)]
        learned = FusionSettings(FusionMethod.INTERPOLATION).changed(learn_weights(teaching))
        fused |= fuse_runs(runs, learned, k=DEPTH)
    return fused


def _select_topics(run: Run, qids: Sequence[str]) -> Run:
    return {qid: run[qid] for qid in qids}


def _reranked_values(
    judged: JudgedTopics, run: Run, name: str, reranker: Ranker
) -> dict[str, Values]:
    """Values of a run reranked: by the reranker's own scores, and with half of the score."""
    label = f'{name}, {reranker.label}'
    whole = []
    half = []
    for rankings in judged.rerank(run, reranker):
        by_reranker, by_both = rankings.values([0.0, 1.0], [0.5, 0.5])
        whole.append(by_reranker)
        half.append(by_both)
    return {
        label: judged.average_by_text(whole),
        f'{label}:weight=0.5': judged.average_by_text(half),
    }


def _values_under_held_out_shares(
    judged: JudgedTopics, reranked: Sequence[AlignedRankings]
) -> Values:
    """nDCG@10 of rankings before and after a reranker, with the share that other folds teach.

    Each ranking was fused without what its own fold teaches. So a fold's judgments reach its share
    only through the rankings of other folds. To rule that out, each ranking would be reranked five
    times.
    """
    values = np.zeros(len(reranked))
    for members in judged.folds:
        held_out = set(members)
        others = [
            rankings for position, rankings in enumerate(reranked) if position not in held_out
        ]
        weights = learn_weights(others)
        for position in members:
            values[position] = reranked[position].values(weights)[0]
    return judged.average_by_text(values.tolist())
