"""Reranking with monoBERT, which reads each candidate beside the query."""

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
from pyserini_repbert.systems.monobert.inputs import PairInputs
from pyserini_repbert.systems.monobert.network import NAME, MonoBert
from pyserini_repbert.trace import SILENT, Trace


class MonoBertReranker(CrossEncoderReranker):
    """Scores are log-probabilities of relevance (Multi-Stage section 3.2), ordered as the logit
    differences.

    Parameters
    ----------
    model : catalog name, checkpoint folder, or a cross-encoder folder of sentence-transformers with
        1 or 2 labels
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'; logits are always computed in float32
    layout : how long texts are cut, 'paper', 'dl4marco', 'pygaggle' or 'pygaggle_fast_tokenizer'
        (`PairLayout`); default: the checkpoint's, else 'paper'
    max_length : tokens of the longest input, special tokens included; default: the checkpoint's,
        else 512 or BERT's positions if these are fewer
    backend : 'torch', 'onnx', 'onnx-int8'; scores of 'onnx' differ by rounding, those of
        'onnx-int8' by more
    token_budget : padded tokens in a batch; default: by device
    """

    system = NAME
    module = MonoBert
    builder = PairInputs
    inputs: PairInputs

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """log p(relevant) of each candidate, float64 (n,) a query; an empty text is scored, too."""
        inputs, truncated = self._inputs_of(queries, lists)
        self.work.candidates += len(inputs)
        self.work.truncated += truncated
        return in_lists(log_probabilities(self._differences(inputs, on_progress)), lists)

    def _read(self, queries: Sequence[str], lists: Sequence[Ranking]) -> tuple[ModelInputs, int]:
        """The model input of each candidate, and how many texts were cut for it."""
        ids = super()._read(queries, lists)
        built = [
            self.inputs.build(ids[query], ids[text]) for query, text in each_pair(queries, lists)
        ]
        return ModelInputs.of([item.sequence for item in built]), sum(
            item.truncated for item in built
        )

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """The score and the probability of relevance of each hit."""
        scores = self.scores_of(query, hits, trace)
        return {
            'system': NAME,
            'docids': list(hits.docids),
            'scores': rounded(scores),
            'probabilities': rounded(np.exp(scores)),
            'inferences': self.inferences(len(hits)),
        }

    def reason(self, query: str, hit: Candidate) -> str:
        # with a share of the score before it, a score is no logarithm, and may be above 0
        return f'relevant with p = {math.exp(min(hit.score, 0.0)):.4f}'
