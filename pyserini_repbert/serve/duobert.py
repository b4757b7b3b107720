"""What a service knows of duoBERT: the options that clients may set, what a stage takes, and a
reranker that keeps the pairs that it has compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyserini_repbert.pipeline.spec import StageSpec
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.aggregation import checked_method, sampled_pairs
from pyserini_repbert.rerank.base import Progress, Reranker
from pyserini_repbert.rerank.duobert import DuoBertReranker, Matrix, Wanted, sample_seed

SYSTEM = 'duobert'
CLIENT_OPTIONS = ('method', 'samples', 'seed')  # none of them names a file
_MATRICES = 64  # pair matrices that each duoBERT keeps


class PairCachingDuoBert(DuoBertReranker):
    """An opened duoBERT that keeps its last pair matrices: another aggregation of the same
    candidates takes no inference.

    If an aggregation needs a pair that a matrix lacks, all its pairs are compared anew. Copies
    share the matrices.

    Attributes
    ----------
    matrices : by query and passage texts, the last used at the end
    """

    def __init__(self, reranker: DuoBertReranker) -> None:
        vars(self).update(vars(reranker))
        self.matrices: dict[tuple[str, tuple[str | None, ...]], Matrix] = {}

    def pair_differences(
        self,
        queries: Sequence[str],
        lists: Sequence[Ranking],
        wanted: Sequence[Wanted] | None = None,
        on_progress: Progress = int,
    ) -> list[Matrix]:
        """The logit differences of at least the wanted pairs, float64 (n, n) a query, NaN where
        not compared.

        Parameters
        ----------
        queries : one for each list
        lists : candidates with texts
        wanted : bool (n, n) a query; None: the pairs that the method needs
        on_progress : called with the number of inputs done since the last call
        """
        matrices = []
        for number, (query, candidates) in enumerate(zip(queries, lists, strict=True)):
            if wanted is None:
                seed = sample_seed(self.seed, query)
                pairs = sampled_pairs(len(candidates), self.samples, seed)
            else:
                pairs = wanted[number]
            key = (query, candidates.texts)
            matrix = self.matrices.pop(key, None)
            if matrix is None or np.isnan(matrix[pairs]).any():
                (matrix,) = super().pair_differences([query], [candidates], [pairs], on_progress)
            self.matrices[key] = matrix
            if len(self.matrices) > _MATRICES:
                oldest = next(iter(self.matrices))
                del self.matrices[oldest]
            matrices.append(matrix)
        return matrices


def caching_pairs(reranker: Reranker) -> Reranker:
    """A duoBERT that keeps its pair matrices; any other reranker as it is."""
    if isinstance(reranker, DuoBertReranker):
        return PairCachingDuoBert(reranker)
    return reranker


def competitors_at_most(stage: StageSpec) -> int:
    """How many candidates each candidate of a stage is compared with, at most."""
    samples = dict(stage.options).get('samples') or stage.k
    return min(stage.k - 1, samples)


def stage_settings(reranker: Reranker, stage: StageSpec) -> dict[str, Any]:
    """The settings of a reranker for a stage: of duoBERT, the method that it names, or 'sum'.

    Raises InputError for an unknown method, or one that does not go with the samples.
    """
    settings = dict(stage.options)
    if isinstance(reranker, DuoBertReranker):
        method = settings.get('method', 'sum')
        settings['method'] = checked_method(method, settings.get('samples'))
    return settings
