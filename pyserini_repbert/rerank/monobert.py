"""Reranking with monoBERT: each candidate is read together with the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.models.checkpoint import Checkpoint
from pyserini_repbert.models.cross_encoder import log_probabilities
from pyserini_repbert.models.layouts import MONO_QUERY_TOKENS, PairInputs, PairLayout
from pyserini_repbert.models.monobert import SYSTEM, MonoBert
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.ranking import Candidate
from pyserini_repbert.rerank.base import Progress
from pyserini_repbert.rerank.cross_encoder import Backend, CrossEncoderReranker


class MonoBertReranker(CrossEncoderReranker):
    """Scores are log-probabilities of relevance (Multi-Stage section 3.2), in the order of the logit differences.

    Parameters
    ----------
    model : catalog name, checkpoint folder, or a cross-encoder folder of sentence-transformers with 1 or 2 labels
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'; logits are always computed in float32
    layout : how long texts are cut, see `PairLayout`; default: the checkpoint's, else 'paper'
    max_length : tokens of the longest input; default: the checkpoint's, else 512
    backend : 'torch', 'onnx', 'onnx-int8'; scores of 'onnx' differ by rounding, those of 'onnx-int8' by more
    token_budget : padded tokens in a batch

    Raises
    ------
    UnknownNameError, MissingResourceError, DamagedFileError
        for a checkpoint that is not there or not whole
    MismatchError
        for one of another system, or with another head
    InputError
        for settings that the model or the machine cannot meet
    """

    system = SYSTEM
    module = MonoBert

    def __init__(
        self,
        model: str | Path | Checkpoint,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        layout: PairLayout | str | None = None,
        max_length: int | None = None,
        backend: Backend | str = Backend.TORCH,
        token_budget: int | None = None,
    ) -> None:
        super().__init__(model, device, precision, backend, max_length, token_budget)
        self.inputs = PairInputs(
            self.pieces,
            layout or self.ranking.get('layout', PairLayout.PAPER),
            self.max_tokens,
            int(self.ranking.get('max_query_length', MONO_QUERY_TOKENS)),
        )

    def identity(self) -> Mapping[str, object]:
        """The checkpoint, and every setting that changes a score."""
        return {**super().identity(), 'layout': str(self.inputs.layout), 'max_query': self.inputs.max_query}

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Sequence[Candidate]], on_progress: Progress | None = None
    ) -> list[NDArray[np.floating]]:
        """log p(relevant) of each candidate, float64 (n,) a query; an empty text is a candidate like any other."""
        tokens = self._texts(queries, lists)
        built = [
            self.inputs.build(tokens[query], tokens[candidate.text or ''])
            for query, candidates in zip(queries, lists, strict=True)
            for candidate in candidates
        ]
        self.work.candidates += len(built)
        self.work.truncated += sum(item.truncated for item in built)
        scores = log_probabilities(self._differences(built, on_progress))
        ends = np.cumsum([0, *map(len, lists)]).tolist()
        return [scores[start:end] for start, end in pairwise(ends)]
