"""Checks of dense searches: queries are encoded by the index's own encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import MismatchError


class QueryEncoder(Protocol):
    """A query encoder with Pyserini's interface."""

    def encode(self, query: str) -> NDArray[np.float32]:
        """One query's vector, float32 (d,)."""


def check_encoder(
    encoder: QueryEncoder, index: Path, dimension: int, built_with: str | None, weights_sha256: str | None
) -> None:
    """Raises MismatchError for an encoder of another dimension, or of other weights where both checksums are known."""
    name = getattr(encoder, 'name', type(encoder).__name__)
    advice = f"pass the encoder it was built with ('{built_with}')" if built_with else 'pass its own encoder'
    given = getattr(encoder, 'dimension', dimension)
    if given != dimension:
        raise MismatchError(f"index has dimension {dimension}, encoder '{name}' gives {given}: {advice}")
    if name == built_with:
        advice = f'encode it again, or remove {index}'
    weights = getattr(encoder, 'weights_sha256', None)
    if weights_sha256 is not None and weights not in (None, weights_sha256):
        raise MismatchError(f"index {index} was built with other weights or settings than encoder '{name}': {advice}")


def encoded(encoder: QueryEncoder, queries: Sequence[str], dimension: int) -> NDArray[np.float32]:
    """The queries' vectors, float32 (n, d), as one batch where the encoder takes batches."""
    batch = getattr(encoder, 'encode_batch', None)
    vectors = batch(queries) if batch else [encoder.encode(query) for query in queries]
    return np.asarray(vectors, dtype=np.float32).reshape(len(queries), dimension)
