"""The base of text encoders: limits, and the methods that Pyserini calls (by position)."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.records import MODEL_DIGESTS, BundleSettings
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.models.token_ids import Progress, TokenIds

if TYPE_CHECKING:
    import torch

Vectors = NDArray[np.float32]


class TextEncoder(ABC):
    """Texts in, vectors out; subclasses own the model and implement `_embed`."""

    has_model = True  # Pyserini's encoders have this attribute
    checkpoint: Checkpoint
    name: str  # the checkpoint's catalog name or folder
    dimension: int  # length of a vector
    limit: int  # wordpieces kept of a text, special tokens not counted
    max_length: int  # the greatest possible `limit`
    pooling: str  # how token vectors become one, for an index's manifest
    device_name: str  # where the model runs: 'cpu', 'cuda:0', …
    precision: Precision  # never 'auto'
    unit_length: bool = False  # whether vectors are scaled to length 1
    is_truncated: bool = False  # whether vectors are the first `dimension` values of the model's

    @cached_property
    def device(self) -> torch.device:
        """Where the model runs, as PyTorch has it."""
        import torch

        return torch.device(self.device_name)

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self.checkpoint.weights_sha256

    @property
    def config_sha256(self) -> str | None:
        """Checksum of the checkpoint's configuration; None if `weights_sha256` covers it."""
        return self.checkpoint.config_sha256

    @property
    def tokenizer_sha256(self) -> str | None:
        """Checksum of the tokenizer's files; None if `weights_sha256` covers them."""
        return self.checkpoint.tokenizer_sha256

    def runs_model_of(self, other: TextEncoder) -> bool:
        """Whether another encoder runs the checkpoint of this name, on this device, as this one."""
        is_same_model = self.name == other.name and self.precision == other.precision
        return is_same_model and self.device_name == other.device_name

    def _checked(self, limit: int) -> int:
        if not 1 <= limit <= self.max_length:
            raise InputError(
                f'maximum length {limit} was given, expected 1 to {self.max_length} wordpieces'
            )
        return limit

    def embed(
        self,
        texts: Sequence[str] | TokenIds,
        max_length: int | None = None,
        fp16: bool = False,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> Vectors:
        """Embeddings of texts (RepBERT's also of their token ids), float32 (n, d), in their order.

        Parameters
        ----------
        max_length : wordpieces kept of each text, special tokens not counted; default: the
            checkpoint's limit
        fp16 : run a model of float32 weights in half precision (autocast)
        token_budget : padded tokens in a batch; default: by device
        on_progress : called with the number of texts done since the last call
        """
        vectors = self.embed_whole(texts, max_length, fp16, token_budget, on_progress)
        return self.shorten(vectors) if self.is_truncated else vectors

    def embed_whole(
        self,
        texts: Sequence[str] | TokenIds,
        max_length: int | None = None,
        fp16: bool = False,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> Vectors:
        """Embeddings with all values that the model gives, float32 (n, the model's dimension).

        Parameters
        ----------
        texts : texts, or RepBERT's token ids
        max_length : wordpieces kept of each text; default: the checkpoint's limit
        fp16 : run a model of float32 weights in half precision (autocast)
        token_budget : padded tokens in a batch; default: by device
        on_progress : called with the number of texts done since the last call
        """
        limit = self.limit if max_length is None else self._checked(max_length)
        with self._half_precision() if fp16 else nullcontext():
            return self._embed(texts, limit, token_budget, on_progress)

    def _half_precision(self) -> AbstractContextManager[Any]:
        """A context in which PyTorch computes in float16 where it can."""
        import torch

        return torch.autocast(self.device.type, torch.float16)

    def shorten(self, vectors: Vectors) -> Vectors:
        """The vectors of `embed`: the first values of the vectors of `embed_whole`.

        Vectors of length 1 are scaled to length 1 again.
        """
        kept = np.ascontiguousarray(vectors[:, : self.dimension])
        if self.unit_length:
            lengths = np.linalg.norm(kept, axis=1, keepdims=True)
            # A vector of zeros does not change.
            kept /= np.maximum(lengths, np.finfo(np.float32).tiny)
        return kept

    def truncated(self, dimension: int) -> Self:
        """The same encoder with the first values of each vector alone (Kusupati et al. 2022).

        Vectors of length 1 are scaled to length 1 again. Models that were trained for it
        (Matryoshka) lose little.

        Parameters
        ----------
        dimension : how many values are kept

        Raises InputError for more values than a vector has.
        """
        if not 1 <= dimension <= self.dimension:
            raise InputError(
                f"{dimension} values of each vector were asked for, and '{self.name}' has "
                f'{self.dimension}: give 1 to {self.dimension}',
                parameters=('truncate_dim',),
            )
        if dimension == self.dimension:
            return self
        shorter = copy.copy(self)
        shorter.dimension = dimension
        shorter.is_truncated = True
        return shorter

    @abstractmethod
    def _embed(
        self, texts: Any, limit: int, token_budget: int | None, on_progress: Progress
    ) -> Vectors:
        """The vectors of `embed`, which has checked the limit."""


def truncated_as(encoder: Any, settings: Any) -> Any:
    """An encoder whose vectors are as long as the vectors of an index that it has made.

    Parameters
    ----------
    encoder : of any kind; if its model differs or its vectors are not longer, it is returned
        unchanged
    settings : of the index, with `dimension` and `weights_sha256`
    """
    if not isinstance(encoder, TextEncoder) or encoder.dimension <= settings.dimension:
        return encoder
    if encoder.weights_sha256 != settings.weights_sha256:
        return encoder
    return encoder.truncated(settings.dimension)


class TextQueryEncoder(TextEncoder):
    """The methods of a query encoder, as Pyserini calls them."""

    has_encoded_query = False

    def encode(self, query: str, max_length: int | None = None, **_: object) -> Vectors:
        """One query's vector, float32 (d,). An empty query has the vector of its special tokens."""
        return self.embed([query], max_length)[0]  # type: ignore[no-any-return]

    def encode_batch(
        self, queries: Sequence[str], max_length: int | None = None, **_: object
    ) -> Vectors:
        """The vectors of many queries, float32 (n, d), in their order."""
        return self.embed(queries, max_length)


class TextDocumentEncoder(TextEncoder):
    """The methods of a document encoder, as Pyserini calls them."""

    def encode(
        self,
        texts: Sequence[str] | str,
        titles: Sequence[str] | None = None,
        fp16: bool = False,
        max_length: int | None = None,
        **_: object,
    ) -> Vectors:
        """Vectors of passages, float32 (n, d), in their order.

        Parameters
        ----------
        texts : passages, or one
        titles : one for each text, before which it is put
        fp16 : run a model of float32 weights in half precision (autocast)
        max_length : wordpieces kept of each text; default: the checkpoint's limit

        Raises InputError unless there are as many titles as texts.
        """
        batch = [texts] if isinstance(texts, str) else list(texts)
        if titles is not None:
            if len(titles) != len(batch):
                raise InputError(
                    f'{len(titles)} titles for {len(batch)} texts: give one title a text'
                )
            batch = [f'{title} {text}' for title, text in zip(titles, batch, strict=True)]
        return self.embed(batch, max_length, fp16)


def check_model(index: Path, settings: BundleSettings | Mapping[str, Any], model: object) -> None:
    """Raises MismatchError if an index was made with other weights, or another configuration or
    tokenizer.

    `model` has its name and its checksums as attributes. A checksum that either lacks is not
    compared.
    """
    recorded = settings if isinstance(settings, Mapping) else vars(settings)
    for digest, part in MODEL_DIGESTS.items():
        expected = recorded.get(digest)
        given = getattr(model, digest, None)
        if expected != given and None not in (expected, given):
            name = getattr(model, 'name', type(model).__name__)
            built_with = recorded['encoder']
            advice = f"pass the encoder it was built with ('{built_with}')"
            if name == built_with:
                advice = f'restore its files, encode the index again, or remove {index}'
            raise MismatchError(
                f"index {index} was built with other {part} than encoder '{name}': {advice}"
            )
