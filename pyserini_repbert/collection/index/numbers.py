"""`GenerationNumbers`: the numbers of a collection's documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.index.numbers import DocumentNumbers


class GenerationNumbers(DocumentNumbers):
    """The numbers of a generation's documents. Numbers of deleted documents are not used again."""

    def __init__(self, generation: Generation, wanted: DocumentFilter) -> None:
        self._generation = generation
        self._filter = wanted
        self.folder = generation.folder
        self.sha256 = generation.sha256
        self.count = generation.n_numbers

    def numbers(self, docids: Sequence[str]) -> NDArray[np.int64]:
        return self._generation.docnos(docids)

    def docids(self, numbers: NDArray[np.int64]) -> list[str]:
        return self._generation.docids(numbers)

    def used(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._generation.live_documents)

    def searched(self) -> NDArray[np.bool_] | None:
        if self._filter.is_open:
            return None
        return self._filter.mask(self._generation)
