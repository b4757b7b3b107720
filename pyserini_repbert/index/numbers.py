"""`DocumentNumbers`: the numbers by which stored data names an index's documents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class DocumentNumbers(ABC):
    """The numbers of documents, or passages, from 0: a docid has one as long as the index stays.

    Attributes
    ----------
    folder : of the index
    sha256 : of the state of the index that has these numbers
    count : how many numbers there are; some may be of no document
    """

    folder: Path
    sha256: str
    count: int

    @abstractmethod
    def numbers(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """The number of each docid, int64 (n,); -1 for an unknown one."""

    @abstractmethod
    def docids(self, numbers: NDArray[np.int64]) -> list[str]:
        """The docids of numbers that are of a document."""

    @abstractmethod
    def used(self) -> NDArray[np.int64]:
        """The numbers that are of a document, int64 (n,), ascending."""

    def searched(self) -> NDArray[np.bool_] | None:
        """Whether the document of each number is searched, bool (count,); None if all are."""
        return None
