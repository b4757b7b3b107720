"""Reranking with monoBERT, which reads each candidate beside the query.

Use it as a second stage: it orders hundreds of candidates of BM25 or of dense search well, at one
model input each. For the few dozen best of its ranking, duoBERT can follow.
Multi-Stage Document Ranking with BERT, section 3.2. https://arxiv.org/abs/1910.14424
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyserini_repbert.models.cross_encoder import log_probabilities
from pyserini_repbert.models.tokenizer import ModelInputs
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import ExplanationSettings, Progress, Scores, rounded
from pyserini_repbert.rerank.cross_encoder import CrossEncoderReranker, each_pair, in_lists
from pyserini_repbert.systems.monobert.inputs import PairInputs, PairLayout
from pyserini_repbert.systems.monobert.network import NAME, MonoBert
from pyserini_repbert.trace import SILENT, Trace


class MonoBertReranker(CrossEncoderReranker, recorded_as='MonoBertReranker'):
    """Scores each candidate by log p(relevant), the log-probability of relevance.

    Multi-Stage section 3.2 ranks by p. Its logarithm gives the same order, and still tells apart
    candidates whose p rounds to 1.

    Parameters
    ----------
    model : catalog name, checkpoint folder, or a cross-encoder folder of sentence-transformers with
        1 or 2 labels
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'; logits are always computed in float32
    layout : how long texts are cut, 'paper', 'dl4marco', 'pygaggle' or 'pygaggle_fast_tokenizer'
        (`PairLayout`); default: the checkpoint's, otherwise 'paper'
    max_length : tokens of the longest input, special tokens included; default: the checkpoint's,
        otherwise 512 or BERT's positions if these are fewer
    backend : 'torch', 'onnx', 'onnx-int8'; scores of 'onnx' differ by rounding, scores of
        'onnx-int8' by more
    token_budget : padded tokens in a batch; default: by device
    """

    system = NAME
    module = MonoBert
    builder = PairInputs
    layouts = PairLayout
    inputs: PairInputs

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """log p(relevant) of each candidate, float64 (n,) a query; an empty text is scored, too."""
        inputs, n_truncated = self._inputs_of(queries, lists)
        self.work.candidates += len(inputs)
        self.work.truncated += n_truncated
        scores = log_probabilities(self._differences(inputs, on_progress))
        return in_lists(scores, lists)

    def relevance(self, score: float) -> float:
        """The probability of relevance, whose logarithm a score is."""
        return math.exp(min(score, 0.0))

    def _read(self, queries: Sequence[str], lists: Sequence[Ranking]) -> tuple[ModelInputs, int]:
        """The model input of each candidate, and how many candidates' texts were cut."""
        ids = super()._read(queries, lists)
        sequences = []
        n_truncated = 0
        for query, text in each_pair(queries, lists):
            built = self.inputs.build(ids[query], ids[text])
            sequences.append(built.sequence)
            n_truncated += built.truncated
        return ModelInputs.of(sequences), n_truncated

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """The score and the probability of relevance of each hit, as values of JSON.

        `Reranker.explain` explains `query`, `hits`, `settings` and `trace`.
        """
        scores = self.scores_of(query, hits, trace)
        return {
            'system': NAME,
            'docids': list(hits.docids),
            'scores': rounded(scores),
            'probabilities': rounded(np.exp(scores)),
            'inferences': self.inferences(len(hits)),
        }

    def reason(self, query: str, hit: Candidate) -> str:
        if self.score_share is not None:
            # A mixed score is not a logarithm of a probability.
            return super().reason(query, hit)
        # A score that was read from a run may be above 0.
        return f'relevant with p = {math.exp(min(hit.score, 0.0)):.4f}'
