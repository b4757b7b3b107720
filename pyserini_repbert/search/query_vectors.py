"""Checks of dense searches: queries are encoded by the index's own encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.encode.text_encoder import model_difference
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.index.records import Settings


class QueryEncoder(Protocol):
    """A query encoder with Pyserini's interface."""

    def encode(self, query: str) -> NDArray[np.float32]:
        """One query's vector, float32 (d,)."""


def check_encoder(encoder: QueryEncoder, index: Path, dimension: int, settings: Settings | None) -> None:
    """Raises MismatchError for an encoder of another dimension, or of another model than `settings` of the index say.

    `settings` are None where the index does not name its encoder.
    """
    built_with = settings and settings.encoder
    name = getattr(encoder, 'name', type(encoder).__name__)
    advice = f"pass the encoder it was built with ('{built_with}')" if built_with else 'pass its own encoder'
    given = getattr(encoder, 'dimension', dimension)
    if given != dimension:
        raise MismatchError(f"index has dimension {dimension}, encoder '{name}' gives {given}: {advice}")
    if name == built_with:
        advice = f'restore its files, encode the index again, or remove {index}'
    if settings and (part := model_difference(settings, encoder)):
        part = 'weights or settings' if part == 'weights' else part
        raise MismatchError(f"index {index} was built with other {part} than encoder '{name}': {advice}")


def encoded(encoder: QueryEncoder, queries: Sequence[str], dimension: int) -> NDArray[np.float32]:
    """The queries' vectors, float32 (n, d), as one batch where the encoder takes batches."""
    batch = getattr(encoder, 'encode_batch', None)
    vectors = batch(queries) if batch else [encoder.encode(query) for query in queries]
    return np.asarray(vectors, dtype=np.float32).reshape(len(queries), dimension)
