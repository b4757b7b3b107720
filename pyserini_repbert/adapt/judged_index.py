"""The vectors that `adapt` reads: of a dense bundle's passages, or of a collection's documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.search.dense import VectorSearcher

Rows = NDArray[np.int64]


class JudgedIndex(Protocol):
    """Vectors in rows, and the judged texts to which they belong."""

    def holds(self, docids: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each docid is here, bool (n,)."""

    def counted(self, grades: Mapping[str, int]) -> dict[str, int]:
        """The grades that count: a filter leaves out grades of other documents."""

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


class _Collection:
    """A collection's generation, in which a document has a row for each passage.

    Within a filter, only the documents that it lets through are here.
    """

    def __init__(self, searcher: DenseDocumentSearcher) -> None:
        self._generation = searcher.generation
        self._vectors = searcher.vectors
        self._documents = searcher.documents

    def _docnos(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of documents, int64 (n,); -1 for one that is not here."""
        docnos = self._generation.docnos(docids)
        if self._documents is None:
            return docnos
        is_here = (docnos >= 0) & self._documents[docnos]
        return np.where(is_here, docnos, -1)

    def holds(self, docids: Sequence[str]) -> NDArray[np.bool_]:
        _, counts = self._vectors.rows_of(self._docnos(docids))
        return counts > 0

    def counted(self, grades: Mapping[str, int]) -> dict[str, int]:
        if self._documents is None:
            return dict(grades)
        are_here = self.holds(list(grades))
        return {docid: grades[docid] for docid, here in zip(grades, are_here, strict=True) if here}

    def rows(self, docids: Sequence[str]) -> Rows:
        rows, _ = self._vectors.rows_of(self._docnos(docids))
        return rows

    def best_rows(self, query: NDArray[np.float32], docids: Sequence[str]) -> Rows:
        return self._vectors.best_rows(query, self._docnos(docids))

    def usable_rows(self) -> Rows:
        usable = self._vectors.live
        if self._documents is not None:
            usable = usable & self._documents[self._vectors.documents]
        return np.flatnonzero(usable)

    def vectors(self, rows: Rows) -> NDArray[np.float32]:
        return self._vectors.gather(rows)

    def a_docid(self) -> str | None:
        rows = self.usable_rows()[:1]
        for docid in self._generation.docids(self._vectors.documents[rows]):
            return docid
        return None


def judged_index(dense: VectorSearcher) -> JudgedIndex:
    """The vectors that a searcher searches. Raises InputError for a FAISS folder."""
    if isinstance(dense, DenseDocumentSearcher):
        return _Collection(dense)
    if isinstance(dense.index, DenseBundle):
        return _Bundle(dense.index)
    raise InputError(
        f'index {dense.index_dir} is not a dense bundle, whose vectors `adapt` '
        'needs: encode the corpus'
    )
