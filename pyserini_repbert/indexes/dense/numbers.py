"""`BundleNumbers`: the rows of a dense bundle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.checksums import digest
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.manifest import MANIFEST
from pyserini_repbert.index.numbers import DocumentNumbers


class BundleNumbers(DocumentNumbers):
    """The rows of a bundle, one for each passage."""

    def __init__(self, bundle: DenseBundle) -> None:
        self._bundle = bundle
        self.folder = bundle.folder
        self.sha256 = digest(bundle.folder / MANIFEST)
        self.count = len(bundle)

    def numbers(self, docids: Sequence[str]) -> NDArray[np.int64]:
        return self._bundle.rows(docids)

    def docids(self, numbers: NDArray[np.int64]) -> list[str]:
        return self._bundle.docids(numbers)

    def used(self) -> NDArray[np.int64]:
        return np.arange(self.count)
