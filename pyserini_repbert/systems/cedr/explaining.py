"""What CEDR sees in a passage: similarities of wordpieces, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Match(NamedTuple):
    """A passage token that is like a query token: its position from 0, and the cosine."""

    token: str
    position: int
    similarity: float


@dataclass(frozen=True)
class SimilarityMap:
    """The similarities of one layer.

    Attributes
    ----------
    layer : 0 for the embedding output, l for layer l
    query, passage : q and d wordpieces, as the model read them
    values : float32 (q, d), cosines (CEDR eq. 1)
    """

    layer: int
    query: list[str]
    passage: list[str]
    values: NDArray[np.float32]

    def best_matches(self, k: int) -> list[list[Match]]:
        """The `k` best passage tokens for each query token, ties by position."""
        best = np.argsort(-self.values, axis=1, kind='stable')[:, :k]
        matches = []
        for similarities, positions in zip(self.values, best.tolist(), strict=True):
            matches.append(
                [
                    Match(self.passage[position], position, float(similarities[position]))
                    for position in positions
                ]
            )
        return matches
