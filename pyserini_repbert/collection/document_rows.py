"""The rows of a collection's vectors by the documents to which they belong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.search.document_rows import DocumentRows, Rows

if TYPE_CHECKING:
    from pyserini_repbert.collection.generation import Generation
    from pyserini_repbert.collection.passage_vectors import PassageVectors


class CollectionRows(DocumentRows):
    """A collection's generation, in which a document has a row for each passage.

    Parameters
    ----------
    generation, vectors : of the collection
    documents : by number, whether each counts within a filter, bool (numbers,); None: all do
    """

    def __init__(
        self,
        generation: Generation,
        vectors: PassageVectors,
        documents: NDArray[np.bool_] | None,
    ) -> None:
        self._generation = generation
        self._vectors = vectors
        self._documents = documents

    def _docnos(self, docids: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of documents, int64 (n,); -1 for an unknown one."""
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
