"""Reranking with a cross-encoder of sentence-transformers, run by that package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.models.checkpoints.checkpoint import (
    AnyCheckpoint,
    Checkpoint,
    open_checkpoint,
)
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import ExplanationSettings, Progress, Reranker, Scores, rounded
from pyserini_repbert.rerank.cross_encoder import checked_length, each_pair, in_lists
from pyserini_repbert.systems.sentence_transformers.loading import BATCH, folder_digest, open_model
from pyserini_repbert.trace import SILENT, Trace

# Pairs between two calls of a progress callback.
CHUNK = 1024


def is_cross_encoder(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a cross-encoder of sentence-transformers.

    It is one if it is a classifier with one label, or says so in the file of sentence-transformers.
    A checkpoint of one of this package's systems is none.
    """
    if 'ranking' in checkpoint.config:
        return False
    labels = checkpoint.config.get('id2label')
    if isinstance(labels, dict) and len(labels) == 1:
        return True
    settings = checkpoint.folder / 'config_sentence_transformers.json'
    return settings.is_file() and read_object(settings).get('model_type') == 'CrossEncoder'


class SentenceCrossEncoderReranker(Reranker):
    """Scores are the model's logits: the order of its probabilities, which saturate.

    Of a model with two labels, the second of which means relevant, as in monoBERT, they are the
    logarithms of its probability.

    Parameters
    ----------
    model : a folder of sentence-transformers whose cross-encoder has one label, or two
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : tokens of the longest input, special tokens included; default: as the folder says
    """

    def __init__(
        self,
        model: AnyCheckpoint,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
    ) -> None:
        self.checkpoint = open_checkpoint(model, 'rerankers')
        self.name = self.checkpoint.name
        self.precision = Precision(precision).on(usable_device(device))
        self._cross_encoder = open_model(
            'CrossEncoder', self.checkpoint.folder, device, self.precision
        )
        self._n_labels = self._cross_encoder.num_labels
        if self._n_labels not in (1, 2):
            raise MismatchError(
                f"'{self.name}' gives {self._n_labels} scores, one or two were expected"
            )
        most = self._cross_encoder.max_seq_length
        if max_length is None:
            max_length = most
        self.max_tokens = checked_length(self.name, max_length, most)
        self._cross_encoder.max_seq_length = self.max_tokens

    @cached_property
    def weights_sha256(self) -> str:
        """Checksum over the files of the folder."""
        return folder_digest(self.checkpoint.folder)

    def identity(self) -> Mapping[str, object]:
        return {**super().identity(), 'dtype': str(self.precision), 'max_tokens': self.max_tokens}

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress = int
    ) -> Scores:
        """The score of each candidate, float32 (n,) a query."""
        from torch.nn import Identity, LogSoftmax

        activation = Identity() if self._n_labels == 1 else LogSoftmax(dim=-1)
        pairs = each_pair(queries, lists)
        scores = np.empty(len(pairs), np.float32)
        for start in range(0, len(pairs), CHUNK):
            part = pairs[start : start + CHUNK]
            predicted = self._cross_encoder.predict(
                part, batch_size=BATCH, activation_fn=activation, show_progress_bar=False
            )
            scores[start : start + CHUNK] = predicted.reshape(len(part), self._n_labels)[:, -1]
            on_progress(len(part))
        return in_lists(scores, lists)

    def explain(
        self, query: str, hits: Ranking, settings: ExplanationSettings, trace: Trace = SILENT
    ) -> dict[str, Any]:
        """The score of each hit, and the sigmoid of it, in monoBERT's form.

        `query`, `hits`, `settings` and `trace` are those of `Reranker.explain`.
        """
        scores = self.scores_of(query, hits, trace)
        return {
            'system': 'monobert',
            'docids': list(hits.docids),
            'scores': rounded(scores),
            'probabilities': rounded(1 / (1 + np.exp(-scores))),
            'inferences': self.inferences(len(hits)),
        }

    def reason(self, query: str, hit: Candidate) -> str:
        return f'scored {hit.score:.4f} by the model, which is no probability'
