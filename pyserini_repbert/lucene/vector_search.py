"""Searching the vectors of a Lucene index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.lucene.jvm import java_calls, java_class, quiet_java
from pyserini_repbert.lucene.lucene_calls import calling
from pyserini_repbert.lucene.vector_indexer import VECTOR
from pyserini_repbert.ranking import Ranking, by_score

EF = 1000  # candidates that the graph search keeps, at least; twice the hits if that is more


class LuceneVectors:
    """Searches the graph of an index that `LuceneVectorWriter` wrote; threads that share it wait for each other.

    The query and the searcher are Lucene's own, since Anserini's `HnswDenseSearcher`, with Pyserini 2.x, asks
    api.github.com for the prebuilt indexes before it opens any folder.

    Parameters
    ----------
    folder : the index
    ef : candidates that the graph search keeps; default: `EF`, or twice the hits if that is more

    Attributes
    ----------
    size : how many passages the index holds

    Raises
    ------
    JavaError
        when Java cannot be started, or Lucene cannot open the index
    """

    def __init__(self, folder: Path, ef: int | None = None) -> None:
        self._ef = ef
        with java_calls():
            quiet_java()
            self._query = java_class('org.apache.lucene.search.KnnFloatVectorQuery')
            place = java_class('java.nio.file.Paths').get(str(folder))
            directory = calling(java_class('org.apache.lucene.store.FSDirectory').open, place)
            self._reader = calling(java_class('org.apache.lucene.index.DirectoryReader').open, directory)
            self._java = java_class('org.apache.lucene.search.IndexSearcher')(self._reader.getContext())
            settings = java_class('io.anserini.search.BaseSearchArgs')()
            self._hits = java_class('io.anserini.search.BaseSearcher')(settings, self._java).processLuceneTopDocs
            self.size = int(self._reader.numDocs())

    def search(self, vector: NDArray[np.float32], k: int) -> Ranking:
        """The best `k` passages for a vector, float32 (d,), by (-score, docid).

        Scores are inner products, recovered from Lucene's: 1 + p for a product p of at least 0, else 1 / (1 - p).
        """
        depth = min(k, self.size)
        ef = min(self.size, max(depth, self._ef or max(EF, 2 * depth)))
        with java_calls():
            found = calling(self._java.search, self._query(VECTOR, vector.tolist(), ef), depth)
            hits = [(hit.docid, hit.score) for hit in calling(self._hits, None, found)]
        scores = np.array([score for _, score in hits], np.float64)
        products = np.where(scores >= 1, scores - 1, 1 - 1 / scores).astype(np.float32)
        return by_score([docid for docid, _ in hits], products.tolist())

    def close(self) -> None:
        """Close the index; further searches fail."""
        with java_calls():
            self._reader.close()
