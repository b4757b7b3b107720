"""How often each value occurs in EPIC's passage vectors (EPIC Figure 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyserini_repbert.index.epic import EpicBundle

BIN = 0.1


@dataclass(frozen=True)
class ValueCounts:
    """Counts of values, rounded up to the next tenth as in EPIC Figure 2.

    Attributes
    ----------
    counts : upper end of a bin -> number of values, ascending: 0.1 for values above 0 and up to 0.1, 0.0 for zeros
    pruned : number of values that the index does not keep
    """

    counts: dict[float, int]
    pruned: int

    @property
    def total(self) -> int:
        """The number of all values, kept or not."""
        return sum(self.counts.values()) + self.pruned

    def share_up_to(self, value: float) -> float:
        """The share of values, 0 to 1, that are at most `value`; pruned ones count among them, as the smallest."""
        low = sum(count for end, count in self.counts.items() if end <= value + BIN / 100)
        return (low + self.pruned) / self.total if self.total else 0.0


def value_counts(index: EpicBundle) -> ValueCounts:
    """Count all values of an index's vectors."""
    counts: dict[int, int] = {}
    kept = 0
    for _, vectors in index.vectors():
        kept += len(vectors.weights)
        bins, numbers = np.unique(np.ceil(vectors.weights.astype(np.float64) / BIN - 1e-6), return_counts=True)
        for number, count in zip(bins.astype(int).tolist(), numbers.tolist(), strict=True):
            counts[number] = counts.get(number, 0) + count
    filled = range(min(counts, default=0), max(counts, default=-1) + 1)
    named = {round(number * BIN, 1): counts.get(number, 0) for number in filled}
    return ValueCounts(named, len(index) * index.settings.vocabulary - kept)
