"""`DocumentRows`: the vectors that `adapt` learns from, by the documents to which they belong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.index.dense import DenseBundle

Rows = NDArray[np.int64]


class DocumentRows(Protocol):
    """Vectors in rows, and the documents, or passages, to which they belong."""

    def holds(self, docids: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each docid is here, bool (n,)."""

    def counted(self, grades: Mapping[str, int]) -> dict[str, int]:
        """The grades that count: a filter leaves out the grades of other documents."""

    def rows(self, docids: Sequence[str]) -> Rows:
        """All rows of those docids that are here, int64 (m,)."""

    def best_rows(self, query: NDArray[np.float32], docids: Sequence[str]) -> Rows:
        """One row of each docid that is here: the one whose vector fits the query best."""

    def usable_rows(self) -> Rows:
        """The rows that random passages are drawn from, int64 (n,), ascending."""

    def vectors(self, rows: Rows) -> NDArray[np.float32]:
        """The vectors of rows, float32 (n, d)."""

    def a_docid(self) -> str | None:
        """One of its docids, to be shown; None for an empty index."""


class BundleRows(DocumentRows):
    """A dense bundle, in which a passage has one row."""

    def __init__(self, bundle: DenseBundle) -> None:
        self._bundle = bundle

    def holds(self, docids: Sequence[str]) -> NDArray[np.bool_]:
        return self._bundle.rows(docids) >= 0

    def counted(self, grades: Mapping[str, int]) -> dict[str, int]:
        return dict(grades)

    def rows(self, docids: Sequence[str]) -> Rows:
        rows = self._bundle.rows(docids)
        return rows[rows >= 0]

    def best_rows(self, query: NDArray[np.float32], docids: Sequence[str]) -> Rows:
        return self.rows(docids)

    def usable_rows(self) -> Rows:
        return np.arange(len(self._bundle))

    def vectors(self, rows: Rows) -> NDArray[np.float32]:
        return self._bundle.vectors(rows)

    def a_docid(self) -> str | None:
        if not len(self._bundle):
            return None
        return self._bundle.docids(np.array([0]))[0]
