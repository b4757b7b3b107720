"""The vectors that `adapt` reads: of a dense bundle's passages, or of a collection's documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.document_search import DocumentSearcher
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.search.dense import DenseSearcher

Rows = NDArray[np.int64]


class JudgedIndex(Protocol):
    """Vectors in rows, and the judged texts to which they belong."""

    def holds(self, docids: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each docid is here, bool (n,)."""

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


class _Bundle:
    """A dense bundle, in which a passage has one row."""

    def __init__(self, bundle: DenseBundle) -> None:
        self._bundle = bundle

    def holds(self, docids: Sequence[str]) -> NDArray[np.bool_]:
        return self._bundle.rows(docids) >= 0

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


class _Collection:
    """A collection's generation, in which a document has a row for each passage."""

    def __init__(self, searcher: DocumentSearcher) -> None:
        self._generation = searcher.generation
        self._vectors = searcher.vectors

    def holds(self, docids: Sequence[str]) -> NDArray[np.bool_]:
        _, counts = self._vectors.rows_of(self._generation.docnos(docids))
        return counts > 0

    def rows(self, docids: Sequence[str]) -> Rows:
        rows, _ = self._vectors.rows_of(self._generation.docnos(docids))
        return rows

    def best_rows(self, query: NDArray[np.float32], docids: Sequence[str]) -> Rows:
        return self._vectors.best_rows(query, self._generation.docnos(docids))

    def usable_rows(self) -> Rows:
        return np.flatnonzero(self._vectors.live)

    def vectors(self, rows: Rows) -> NDArray[np.float32]:
        return self._vectors.gather(rows)

    def a_docid(self) -> str | None:
        first = next(self._generation.all_documents(), None)
        return None if first is None else first.docid


def judged_index(dense: DenseSearcher) -> JudgedIndex:
    """The vectors that a searcher searches. Raises InputError for a FAISS folder."""
    if isinstance(dense, DocumentSearcher):
        return _Collection(dense)
    if isinstance(dense.index, DenseBundle):
        return _Bundle(dense.index)
    raise InputError(
        f'index {dense.index_dir} is not a dense bundle, whose vectors `adapt` '
        'needs: encode the corpus'
    )
