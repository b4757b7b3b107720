"""Dense search in a Lucene index that holds vectors beside its texts: approximate, by Lucene's graph (HNSW)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.encode.encoders import RepBertQueryEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher, index_folder
from pyserini_repbert.lucene.sparse_settings import record_of
from pyserini_repbert.lucene.vector_search import LuceneVectors
from pyserini_repbert.ranking import NO_HITS, Candidate, Run, hits_of
from pyserini_repbert.search.query_vectors import QueryEncoder, check_encoder, check_qids, encoded


class LuceneVectorSearcher:
    """Searches the vectors of an index that `index lucene --vectors` wrote; safe to use from several threads.

    Scores are inner products.

    Parameters
    ----------
    index : the index folder
    query_encoder : an encoder, a catalog name or a checkpoint folder; default: the one that the index names
    device : where queries are encoded
    ef : candidates that the graph search keeps; default: 1000, or twice the hits if that is more

    Attributes
    ----------
    size : how many passages the index holds

    Raises
    ------
    InputError
        where the folder holds no such index
    MismatchError
        where the encoder is not the one that the vectors were made with
    JavaError
        when Java cannot be started
    """

    def __init__(
        self,
        index: StrPath,
        query_encoder: QueryEncoder | str | Path | None = None,
        device: str = 'cpu',
        ef: int | None = None,
    ) -> None:
        self.index = index_folder(index)
        try:
            settings = record_of(self.index)['vectors']
            built_with, weights = str(settings['encoder']), str(settings['weights_sha256'])
            self.dimension = int(settings['dimension'])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f'Lucene index {self.index} holds no vectors of ours: build it with them, or name a sparse technique',
                parameters=('vectors', 'sparse'),
            ) from error
        if query_encoder is None or isinstance(query_encoder, (str, Path)):
            query_encoder = RepBertQueryEncoder(query_encoder or built_with, device)
        self.query_encoder: QueryEncoder = query_encoder
        check_encoder(query_encoder, self.index, self.dimension, built_with, weights)
        self._stored = LuceneSparseSearcher(self.index)
        self.size = self._stored.size
        self._vectors = LuceneVectors(self.index, ef)

    def __len__(self) -> int:
        return self.size

    def search(self, query: str | NDArray[np.float32], k: int = 10, **_: Any) -> list[Candidate]:
        """The best `k` passages for a query (its text, or its vector float32 (d,)), by (-score, docid)."""
        return self.batch_search([query] if isinstance(query, str) else query.reshape(1, -1), ['0'], k)['0']

    def batch_search(
        self, queries: Sequence[str] | NDArray[np.float32], qids: Sequence[str], k: int = 10, threads: int = 1, **_: Any
    ) -> dict[str, list[Candidate]]:
        """The best `k` passages of every query, {qid: candidates} in the order of `qids`.

        Parameters
        ----------
        queries : texts, or their vectors float32 (n, d)
        threads : at least 1, without effect: Lucene answers one query after the other

        Raises
        ------
        InputError
            for lengths that differ, a qid that occurs twice, k or threads below 1
        """
        return hits_of(self.rankings(queries, qids, k, threads))

    def rankings(
        self, queries: Sequence[str] | NDArray[np.float32], qids: Sequence[str], k: int, threads: int = 1
    ) -> Run:
        """The result of `batch_search` as a run."""
        check_qids(queries, qids)
        if k < 1 or threads < 1:
            raise InputError(f'k={k}, threads={threads}: both have to be at least 1')
        results: Run = dict.fromkeys(qids, NO_HITS)
        if not results:
            return results
        vectors = queries if isinstance(queries, np.ndarray) else encoded(self.query_encoder, queries, self.dimension)
        return results | {qid: self._vectors.search(vector, k) for qid, vector in zip(qids, vectors, strict=True)}

    def texts(self, docids: Sequence[str], threads: int = 1) -> list[str | None]:
        """The stored passages in the order of `docids`; None for a docid that the index lacks."""
        return self._stored.texts(docids, threads)

    def close(self) -> None:
        """Close the index; further searches fail."""
        self._stored.close()
        self._vectors.close()
