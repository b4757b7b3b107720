"""Reranking with duoBERT, which reads every ordered pair of candidates with the query."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint
from pyserini_repbert.models.cross_encoder import CrossEncoder
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.models.tokenizer import ModelInputs, TokenSequence
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import ExplanationSettings, Progress, Scores, rescored, rounded
from pyserini_repbert.rerank.cross_encoder import Backend, CrossEncoderReranker, in_lists
from pyserini_repbert.systems.duobert.aggregation import (
    Aggregation,
    aggregate_differences,
    checked_method,
    sampled_pairs,
)
from pyserini_repbert.systems.duobert.inputs import (
    TripleInputs,
    TripleLayout,
)
from pyserini_repbert.systems.duobert.network import (
    NAME,
    DuoBert,
)
from pyserini_repbert.trace import SILENT, Notes, Trace

Matrix = NDArray[np.float64]
Wanted = NDArray[np.bool_]
DIGITS = 6  # of a probability, as JSON shows it
REMEMBERED_MATRICES = 64  # of each duoBERT that remembers


def sample_seed(seed: int, query: str) -> tuple[int, int]:
    """The seed for sampling the pairs of one query: each query has a different sample."""
    return seed, zlib.crc32(query.encode('utf-8'))


class DuoBertReranker(CrossEncoderReranker, recorded_as='DuoBertReranker'):
    """Scores are aggregated from p_ij, the probability that candidate i is more relevant than j,
    over ordered pairs.

    As in Multi-Stage section 3.3 (eq. 3-7); 'min' and 'max' give log p. A list of n candidates
    takes n(n - 1) model inputs, with 'sample' n times `samples`.

    `MonoBertReranker` explains the parameters that are not here.

    Parameters
    ----------
    model : catalog name or checkpoint folder; a body of two token types gets a zero embedding for
        the third
    method : 'sum', 'binary', 'min', 'max', or 'sample'
    layout : how long texts are cut, 'paper' or 'code' (`TripleLayout`); default: the checkpoint's,
        otherwise 'paper'
    samples, seed : m of 'sample', and the seed of the sampling
    """

    system = NAME
    module = DuoBert
    builder = TripleInputs
    layouts = TripleLayout
    inputs: TripleInputs
    compares = True

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

    def with_options(self, **options: Any) -> DuoBertReranker:
        """As in `Reranker`. Raises InputError for a method that is unknown or lacks `samples`."""
        method = options.get('method', Aggregation.SUM)
        options['method'] = checked_method(method, options.get('samples'))
        return self.with_settings(**options)

    def inferences(self, n: int) -> int:
        """n(n - 1) model inputs, or n times `samples` if there are fewer samples than
        competitors.
        """
        competitors = max(n - 1, 0)
        if self.samples is not None:
            competitors = min(self.samples, competitors)
        return n * competitors

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

    def pairs_to_score(
        self, queries: Sequence[str], lists: Sequence[Ranking], wanted: Sequence[Wanted] | None
    ) -> Sequence[Wanted]:
        """The pairs of each list, bool (n, n): those wanted, or those that the method needs."""
        if wanted is not None:
            return wanted
        return [
            sampled_pairs(len(candidates), self.samples, sample_seed(self.seed, query))
            for query, candidates in zip(queries, lists, strict=True)
        ]

    def pair_differences(
        self,
        queries: Sequence[str],
        lists: Sequence[Ranking],
        wanted: Sequence[Wanted] | None = None,
        on_progress: Progress = int,
    ) -> list[Matrix]:
        """The logit differences of pairs, float64 (n, n) a query: log-odds that i is more relevant
        than j. NaN stands for pairs that were not scored.

        Parameters
        ----------
        queries, lists : a list of candidates for each query
        wanted : the pairs to score, bool (n, n) a query; default: those that the method needs
        on_progress : called with the number of model inputs done since the last call
        """
        tokens = self._inputs_of(queries, lists)
        inputs: list[TokenSequence] = []
        scored: list[NDArray[np.int64]] = []
        chosen = self.pairs_to_score(queries, lists, wanted)
        for query, candidates, pairs in zip(queries, lists, chosen, strict=True):
            query_ids = tokens[query]
            text_ids = [tokens[candidate.text or ''] for candidate in candidates]
            rows = np.argwhere(pairs)
            for i, j in rows.tolist():
                inputs.append(self.inputs.build(query_ids, text_ids[i], text_ids[j]).sequence)
            scored.append(rows)
            self.work.candidates += len(candidates)
            if len(rows):
                limit = self.inputs.candidate_limit(len(query_ids))
                self.work.truncated += sum(len(ids) > limit for ids in text_ids)
        differences = self._differences(ModelInputs.of(inputs), on_progress)
        return [
            _matrix(len(candidates), rows, values)
            for candidates, rows, values in zip(
                lists, scored, in_lists(differences, scored), strict=True
            )
        ]

    def remembering(self) -> RememberingDuoBert:
        """This duoBERT with its last pair matrices at hand."""
        return RememberingDuoBert(self)

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """The probabilities of all pairs, and what each method makes of them.

        Parameters
        ----------
        query : its text
        hits : which are compared with each other
        settings : the samples of the method 'sample', and their seed
        trace : gets the progress, in model inputs
        """
        notes = Notes(trace)
        with self.counted([hits], notes) as counting:
            (differences,) = counting.pair_differences([query], [hits], on_progress=trace.advance)
        probabilities = np.round(1 / (1 + np.exp(-differences)), DIGITS).tolist()
        for row, values in enumerate(probabilities):
            # no passage is compared with itself
            values[row] = None
        samples = min(settings.samples, max(len(hits) - 1, 1))
        methods = {}
        for method in Aggregation:
            chosen = self.with_settings(method=method, samples=None, seed=settings.seed)
            if method is Aggregation.SAMPLE:
                chosen.samples = samples
            scores = chosen.aggregated(query, differences)
            methods[str(method)] = {
                'scores': rounded(scores),
                'order': list(rescored(hits, scores).docids),
            }
        return {
            'system': NAME,
            'docids': list(hits.docids),
            'probabilities': probabilities,
            'methods': methods,
            'samples': samples,
            'inferences': notes.cost.inferences if notes.cost else 0,
        }

    def reason(self, query: str, hit: Candidate) -> str:
        if self.score_share is not None:
            return super().reason(query, hit)
        return f'{hit.score:.4f} from comparisons with the others'


class RememberingDuoBert(DuoBertReranker, recorded_as='RememberingDuoBert'):
    """An opened duoBERT with its last pair matrices: another aggregation of the same candidates
    takes no inference.

    If an aggregation needs a pair that a matrix lacks, all its pairs are compared again. Copies
    share the matrices.
    """

    def __init__(self, reranker: DuoBertReranker) -> None:
        vars(self).update(vars(reranker))
        # by query and texts
        self.matrices: dict[tuple[str, tuple[str | None, ...]], Matrix] = {}

    def pair_differences(
        self,
        queries: Sequence[str],
        lists: Sequence[Ranking],
        wanted: Sequence[Wanted] | None = None,
        on_progress: Progress = int,
    ) -> list[Matrix]:
        """The logit differences of at least the wanted pairs, float64 (n, n) a query, NaN where
        not compared. Parameters are as in `DuoBertReranker.pair_differences`: queries, lists,
        wanted, on_progress.
        """
        matrices = []
        chosen = self.pairs_to_score(queries, lists, wanted)
        for query, candidates, pairs in zip(queries, lists, chosen, strict=True):
            matrix = self.matrices.pop((query, candidates.texts), None)
            if matrix is None or np.isnan(matrix[pairs]).any():
                (matrix,) = super().pair_differences([query], [candidates], [pairs], on_progress)
            self.matrices[query, candidates.texts] = matrix
            if len(self.matrices) > REMEMBERED_MATRICES:
                oldest = next(iter(self.matrices))
                del self.matrices[oldest]
            matrices.append(matrix)
        return matrices


def _matrix(n: int, rows: NDArray[np.int64], values: NDArray[np.floating]) -> Matrix:
    """Values of the pairs in `rows`, int64 (m, 2), as a matrix (n, n); NaN elsewhere."""
    matrix = np.full((n, n), np.nan)
    matrix[rows[:, 0], rows[:, 1]] = values
    return matrix
