"""`CollectionScan`: a way to find passages of collections by their vectors, beside exact search."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyserini_repbert.search.scans import OpenScan, VectorScan, scans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyserini_repbert.collection.generation import Generation
    from pyserini_repbert.collection.passage_vectors import PassageVectors
    from pyserini_repbert.extension import Representation
    from pyserini_repbert.search.quick_exact import QuickIndex
    from pyserini_repbert.search.scores import TopRows


class PassageScan(OpenScan, Protocol):
    """A scan of the dense vectors of a generation's passages."""

    def search(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_]
    ) -> list[TopRows]:
        """The k best of each query's allowed rows that are found, and all that tie with the last.

        There are k rows, or all that are allowed. Their scores are exact.

        Parameters
        ----------
        queries : float32 (n, d)
        k : how many
        allowed : the rows that count, bool (rows,)
        """


class CandidateScan(OpenScan, Protocol):
    """A scan of a further model's values of a generation's passages: several vectors per
    passage.
    """

    def candidates(self, query: Any, k: int, allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Passages among which the k best may be, int64 (m,).

        Parameters
        ----------
        query : of the representation
        k : how many passages are wanted
        allowed : the passages that count, bool (rows,)
        """


class CollectionScan(VectorScan):
    """A way to find the best passages of a collection. Raises as `VectorScan`."""

    @abstractmethod
    def of_passages(
        self, vectors: PassageVectors, exact: QuickIndex, device_name: str
    ) -> PassageScan:
        """The scan of a generation's passages.

        Parameters
        ----------
        vectors : of the passages
        exact : searches them exactly
        device_name : where vectors are multiplied
        """

    @abstractmethod
    def of_representation(
        self, generation: Generation, kind: Representation, passages: PassageVectors
    ) -> CandidateScan:
        """The scan of a further model's values of passages.

        Parameters
        ----------
        generation : open
        kind : of the model, one that `has_vectors`
        passages : of the generation
        """


def collection_scan(name: str) -> CollectionScan:
    """The scan of a name. Raises KeyError for a name that no extension adds."""
    return cast(CollectionScan, scans()[name])
