"""Reranking with a cross-encoder of sentence-transformers, by the settings in its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.models.checkpoints.checkpoint import AnyCheckpoint
from pyserini_repbert.models.cross_encoder import CrossEncoder
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.models.sentence.modules import classifier
from pyserini_repbert.models.sentence.reading import reranker_settings
from pyserini_repbert.models.sentence.settings import is_reranker
from pyserini_repbert.models.sentence.tokens import TextTokens
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.base import Progress
from pyserini_repbert.rerank.text_reranker import TextReranker, each_pair, in_lists

_SCORES: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    'Identity': lambda x: x,
    'Sigmoid': lambda x: np.exp(-np.logaddexp(0.0, -x)),  # no overflow, whatever the logit
    'Tanh': np.tanh,
}


class SentenceCrossEncoderReranker(TextReranker):
    """Scores are those of sentence-transformers' `predict`: the logit under the folder's activation, here in float64.

    Parameters
    ----------
    model : a folder of sentence-transformers, whose classifier has one label
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : 'float32', 'bfloat16', 'float16', or 'auto'
    max_length : tokens of the longest input, special tokens included; default: as the folder says
    token_budget : padded tokens in a batch; default: by device

    Raises
    ------
    MismatchError
        for a folder that is not such a cross-encoder
    InputError
        for a module, an activation or a setting that is not supported, or a device that this machine lacks
    DamagedFileError
        for files that do not fit each other
    """

    def __init__(
        self,
        model: AnyCheckpoint,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        token_budget: int | None = None,
    ) -> None:
        super().__init__(model, device, precision, token_budget)
        if not is_reranker(self.checkpoint):
            raise MismatchError(f"'{self.name}' is not a cross-encoder of sentence-transformers with one label")
        self.settings = reranker_settings(self.checkpoint)
        if self.settings.activation not in _SCORES:
            raise InputError(
                f"'{self.name}': activation {self.settings.activation} ties candidates: expected one of "
                f'{", ".join(_SCORES)}'
            )
        most = self.settings.texts.max_tokens
        self.max_tokens = most if max_length is None else max_length
        if not 1 <= self.max_tokens <= most:
            raise InputError(
                f"maximum length {max_length} was given, '{self.name}' reads {most} tokens: give 1 to {most}"
            )
        self.tokens = TextTokens(self.checkpoint, self.settings.texts)
        loaded = classifier(self.checkpoint)
        if isinstance(loaded, CrossEncoder):
            self._forward = loaded.to_device(self.device, self.dtype)
        else:
            self._forward = loaded.to(self.device, self.dtype)

    @property
    def weights_sha256(self) -> str:
        """Checksum over the checkpoint's weights and settings."""
        parts = [self.checkpoint.weights_sha256, str(self.settings)]
        return hashlib.sha256('\n'.join(parts).encode()).hexdigest()

    def identity(self) -> Mapping[str, object]:
        """The checkpoint, and every setting that changes a score."""
        return {**super().identity(), 'max_tokens': self.max_tokens}

    def score_lists(
        self, queries: Sequence[str], lists: Sequence[Ranking], on_progress: Progress | None = None
    ) -> list[NDArray[np.floating]]:
        """The score of each candidate, float64 (n,) a query."""
        pairs = each_pair(queries, lists)
        inputs = self.tokens.pairs(
            [self.settings.prompt + query for query, _ in pairs], [text for _, text in pairs], self.max_tokens
        )
        self.work.candidates += len(inputs)
        self.work.truncated += sum(own.truncated for own in inputs)
        logits = self._logits(inputs, self.tokens.pad, on_progress)
        scores = _SCORES[self.settings.activation](logits.reshape(-1).astype(np.float64))
        return in_lists(scores, lists)
