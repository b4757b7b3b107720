"""What rerankers ask of the index that is searched: vectors, numbers and texts of documents.

An `IndexReranker` reads an index, not only the candidates that it is given. The code that
opens a pipeline hands it the index as `SearchedDocuments` (`bind_documents`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.numbers import DocumentNumbers
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.base import Reranker


class SearchedDocuments(ABC):
    """The documents, or passages, of an index that is open: within a filter, those that match."""

    @property
    @abstractmethod
    def description(self) -> str:
        """A clause that says what the index is: "'mine' is a collection"."""

    @property
    @abstractmethod
    def numbers(self) -> DocumentNumbers | None:
        """The numbers of the documents; None for an index whose documents have none."""

    @property
    @abstractmethod
    def vectors_sha256(self) -> str:
        """SHA-256 of the state of the index that has the vectors.

        Raises InputError for an index without vectors, or whose documents have no numbers.
        """

    @abstractmethod
    def vectors(self, docids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors, float32 (d,), by docid; one that does not exist has none.

        Raises InputError for an index without vectors.
        """

    @abstractmethod
    def query_vectors(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of questions as dense search encodes them, float32 (n, d).

        Raises InputError for an index without vectors.
        """

    @abstractmethod
    def dense_scores(self, query: NDArray[np.float32], docids: Sequence[str]) -> dict[str, float]:
        """The scores that dense search gives documents, by docid; one without a vector has none.

        `query` is a vector of `query_vectors`, float32 (d,).
        """

    @abstractmethod
    def with_texts(self, query: str, ranking: Ranking, n_excerpts: int) -> Ranking:
        """The ranking with the texts of its hits, of documents with their best passages.

        Raises InputError if the index stores no texts.
        """

    @abstractmethod
    def close(self) -> None:
        """Close everything that was opened for these documents."""


class IndexReranker(Reranker):
    """A reranker that reads the index that is searched.

    Attributes
    ----------
    documents : of the index; None until a pipeline hands them over
    later_reads : how many of its hits later stages read with their texts
    later_excerpts : how many passages of a document they read
    """

    documents: SearchedDocuments | None = None
    later_reads: int = 0
    later_excerpts: int = 1

    @property
    def index(self) -> SearchedDocuments:
        """The documents. Raises InputError if no index was named."""
        if self.documents is None:
            raise InputError(
                f"'{self.label}' reads the index that is searched: name one",
                parameters=('index',),
            )
        return self.documents

    def close(self) -> None:
        """Release the index, if it was opened for this reranker."""
        if self.documents is not None:
            self.documents.close()


def bind_documents(
    rerankers: Sequence[Reranker], documents: SearchedDocuments | None
) -> list[Reranker]:
    """Stages, one after the other. Those that read the index get its documents."""
    bound: list[Reranker] = []
    for number, reranker in enumerate(rerankers, 1):
        if isinstance(reranker, IndexReranker):
            later = rerankers[number:]
            reads_texts = any(stage.needs_text for stage in later)
            reranker = reranker.with_settings(
                documents=documents,
                later_reads=later[0].reads if reads_texts else 0,
                later_excerpts=max((stage.n_excerpts for stage in later), default=1),
            )
        bound.append(reranker)
    return bound
