"""The learned sparse model of a collection, which weighs the terms of queries and passages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import MismatchError, UnknownNameError
from pyserini_repbert.index.records import MODEL_DIGESTS, FloatType, Length, Name
from pyserini_repbert.models.checkpoints.checkpoint import used_models
from pyserini_repbert.models.term_vectors import TermVectors
from pyserini_repbert.record import Model, Sha256

if TYPE_CHECKING:
    from pyserini_repbert.encode.sharding import BundleEncoding
    from pyserini_repbert.encode.term_weights import TermWeightsEncoder
    from pyserini_repbert.index.records import TermWeightsSettings

# What decides the weights of a passage's terms. They are stored in float32: rounded ones would
# depend on the batches in which they were encoded.
_DECIDING = (
    *MODEL_DIGESTS,
    'variant',
    'vocabulary',
    'vocabulary_sha256',
    'max_length',
    'prune',
    'precision',
)


@dataclass(frozen=True, config=ConfigDict(extra='forbid'))
class SparseModel:
    """All that decides the weights of terms in a collection, but for the text.

    The fields of `TermWeightsSettings`, as the encoder's own `encoding` has them.
    """

    encoder: Name  # catalog name or folder
    weights_sha256: Sha256
    config_sha256: Sha256 | None
    tokenizer_sha256: Sha256 | None
    variant: str
    vocabulary: Annotated[int, Field(ge=1, le=2**31)]
    vocabulary_sha256: Sha256
    max_length: Length
    prune: Annotated[int, Field(ge=0, le=2**31)]
    precision: FloatType  # that the model runs in

    @classmethod
    def of(cls, settings: TermWeightsSettings) -> SparseModel:
        """The model with which a bundle of these settings would be made."""
        values = {name: getattr(settings, name) for name in _DECIDING}
        return cls(encoder=settings.encoder, **values)

    def key(self) -> str:
        """A digest of all but the encoder's name, in hexadecimal."""
        parts = [getattr(self, name) for name in _DECIDING]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def difference(self, other: SparseModel) -> str | None:
        """The first setting that differs, in words; None for models that weigh alike."""
        for name in _DECIDING:
            expected = getattr(self, name)
            given = getattr(other, name)
            if given != expected:
                return f"{name} ('{given}', expected '{expected}')"
        return None


class SparseSource:
    """Opens the learned sparse model of a collection, once, when it is needed.

    Parameters
    ----------
    encoder : a catalog name, a folder, or an opened encoder; None: the collection's
    device : where the model runs
    """

    def __init__(self, encoder: str | TermWeightsEncoder | None, device: str = 'cpu') -> None:
        self._encoder = encoder
        self._device = device
        self._precision = 'float32'

    @property
    def name(self) -> str | None:
        """What the encoder is called; None: the collection's encoder."""
        if self._encoder is None or isinstance(self._encoder, str):
            return self._encoder
        return self._encoder.name

    @property
    def models(self) -> tuple[Model, ...]:
        """The model that was opened, if one was."""
        return used_models(self.opened) if self.is_opened else ()

    @property
    def is_opened(self) -> bool:
        """Whether the model was opened."""
        return 'opened' in vars(self)

    def complete(self, stored: SparseModel | None, precision: str) -> None:
        """Take what the user did not name from the collection.

        Parameters
        ----------
        stored : the model of the collection; None without one
        precision : that the collection's models run in
        """
        if self._encoder is None and stored is not None:
            self._encoder = stored.encoder
        self._precision = precision

    @cached_property
    def opened(self) -> TermWeightsEncoder:
        """The encoder, after `complete`. Raises UnknownNameError for a name that means none."""
        from pyserini_repbert.systems.encoders import term_weights_encoder

        encoder = self._encoder
        if isinstance(encoder, str):
            try:
                return term_weights_encoder(encoder, self._device, precision=self._precision)
            except UnknownNameError as error:
                raise UnknownNameError(
                    f"sparse ranking '{encoder}' is unknown: expected bm25, none, the folder of a "
                    "SparseEncoder, or an EPIC checkpoint such as 'epic-demo'"
                ) from error
        if encoder is None:
            raise ValueError('complete() comes first')
        return encoder

    @cached_property
    def encoding(self) -> BundleEncoding[TermWeightsSettings]:
        """How the encoder makes weights of passages."""
        return self.opened.encoding()

    @cached_property
    def model(self) -> SparseModel:
        """What the settings of a collection say of this model."""
        return SparseModel.of(self.encoding.settings)

    def encode(self, inputs: Sequence[str]) -> TermVectors:
        """The weights of the terms of inputs, in their order."""
        weights: TermVectors = self.encoding.encode([Passage('', text) for text in inputs])
        return weights


def check_sparse_model(source: SparseSource, stored: SparseModel) -> None:
    """Raises MismatchError for a model that did not make the collection's weights."""
    difference = stored.difference(source.model)
    if difference is not None:
        raise MismatchError(
            f"the collection was built with the sparse model '{stored.encoder}', and "
            f"'{source.model.encoder}' differs in {difference}: give that model, or rebuild the "
            'collection with this one',
            parameters=('sparse', 'rebuild'),
        )
