"""Reranking with duoBERT, which reads every ordered pair of candidates with the query."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint
from pyserini_repbert.models.cross_encoder import DUOBERT, CrossEncoder, DuoBert
from pyserini_repbert.models.pair_inputs import TripleInputs, TripleLayout
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.models.tokenizer import ModelInputs
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.aggregation import (
    Aggregation,
    aggregate_differences,
    checked_method,
    sampled_pairs,
)
from pyserini_repbert.rerank.base import Progress, Scores
from pyserini_repbert.rerank.cross_encoder import Backend, CrossEncoderReranker, in_lists

Matrix = NDArray[np.float64]
Wanted = NDArray[np.bool_]


def sample_seed(seed: int, query: str) -> tuple[int, int]:
    """The seed for sampling the pairs of one query: each query has a sample of its own."""
    return seed, zlib.crc32(query.encode('utf-8'))


class DuoBertReranker(CrossEncoderReranker):
    """Scores are aggregated from p_ij, the probability that candidate i is more relevant than j,
    over ordered pairs.

    As in Multi-Stage section 3.3 (eq. 3-7); 'min' and 'max' give log p. A list of n candidates
    takes n(n - 1) model inputs, with 'sample' n times `samples`.

    Parameters
    ----------
    model : catalog name or checkpoint folder; a body of two token types gets a zero embedding for
        the third
    method : 'sum', 'binary', 'min', 'max', or 'sample'
    layout : how long texts are cut, 'paper' or 'code' (`TripleLayout`); default: the checkpoint's,
        else 'paper'
    samples, seed : m of 'sample', and the seed of the sampling

    The other parameters are those of `MonoBertReranker`.
    """

    system = DUOBERT
    module = DuoBert
    builder = TripleInputs
    inputs: TripleInputs

    def __init__(
        self,
        model: AnyCheckpoint,
        device: str = 'cpu',
        method: Aggregation | str = Aggregation.SUM,
        precision: Precision | str = Precision.FLOAT32,
        layout: TripleLayout | str | None = None,
        max_length: int | None = None,
        backend: Backend | str = Backend.TORCH,
        token_budget: int | None = None,
        samples: int | None = None,
        seed: int = 0,
    ) -> None:
        self.method = checked_method(method, samples)
        self.samples = samples
        self.seed = seed
        super().__init__(model, device, precision, layout, max_length, backend, token_budget)

    def _loaded(self, config: BertConfig) -> CrossEncoder:
        model = super()._loaded(config)
        return model.with_three_segments() if isinstance(model, DuoBert) else model

    def identity(self) -> Mapping[str, object]:
        return {
            **super().identity(),
            'method': str(self.method),
            'samples': self.samples,
            'seed': self.seed,
        }

    def inferences(self, n: int) -> int:
        """n(n - 1) model inputs, or n times `samples` if there are fewer samples than
        competitors.
        """
        competitors = max(n - 1, 0)
        return n * (competitors if self.samples is None else min(self.samples, competitors))

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """The aggregated score of each candidate, float64 (n,) a query."""
        matrices = self.pair_differences(queries, lists, on_progress=on_progress)
        return [
            self.aggregated(query, matrix) for query, matrix in zip(queries, matrices, strict=True)
        ]

    def aggregated(self, query: str, differences: Matrix) -> NDArray[np.float64]:
        """Scores, float64 (n,), from the logit differences of a query's pairs, (n, n), by this
        reranker's method.
        """
        return aggregate_differences(
            differences, self.method, self.samples, sample_seed(self.seed, query)
        )

    def pair_differences(
        self,
        queries: Sequence[str],
        lists: Sequence[Ranking],
        wanted: Sequence[Wanted] | None = None,
        on_progress: Progress = int,
    ) -> list[Matrix]:
        """The logit differences of pairs, float64 (n, n) a query: log-odds that i is more relevant
        than j.

        NaN stands for pairs that were not scored: those that are not `wanted`, bool (n, n) a query,
        or by default those that the method does not need.
        """
        tokens = self._inputs_of(queries, lists)
        built = []
        places = []
        matrices = []
        for number, (query, candidates) in enumerate(zip(queries, lists, strict=True)):
            n = len(candidates)
            ids = tokens[query]
            texts = [tokens[candidate.text or ''] for candidate in candidates]
            pairs = (
                sampled_pairs(n, self.samples, sample_seed(self.seed, query))
                if wanted is None
                else wanted[number]
            )
            chosen = np.argwhere(pairs)
            built += [self.inputs.build(ids, texts[i], texts[j]) for i, j in chosen.tolist()]
            places.append(chosen)
            matrices.append(np.full((n, n), np.nan))
            limit = self.inputs.candidate_limit(len(ids))
            self.work.candidates += n
            self.work.truncated += sum(len(text) > limit for text in texts) if len(chosen) else 0
        all_differences = self._differences(
            ModelInputs.of([item.sequence for item in built]), on_progress
        )
        for matrix, chosen, differences in zip(
            matrices, places, in_lists(all_differences, places), strict=True
        ):
            matrix[chosen[:, 0], chosen[:, 1]] = differences
        return matrices
