"""The learned sparse model of a collection, which weighs the terms of queries and passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pyserini_repbert.encode.representations import RepresentationModel
from pyserini_repbert.index.records import MODEL_DIGESTS, FloatType, Length, Name
from pyserini_repbert.record import Sha256

if TYPE_CHECKING:
    from pyserini_repbert.index.records import TermWeightsSettings


@dataclass(frozen=True, config=ConfigDict(extra='forbid', defer_build=True))
class SparseModel(RepresentationModel):
    """All that decides the term weights in a collection, except for the text.

    The fields of `TermWeightsSettings`, as the encoder's own `encoding` has them. Weights are
    stored in float32: rounded ones would depend on the batches in which they were encoded.
    """

    deciding: ClassVar[tuple[str, ...]] = (
        *MODEL_DIGESTS,
        'variant',
        'vocabulary',
        'vocabulary_sha256',
        'max_length',
        'prune',
        'precision',
    )

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
        values = {name: getattr(settings, name) for name in cls.deciding}
        return cls(encoder=settings.encoder, **values)
