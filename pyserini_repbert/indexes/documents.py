"""`IndexDocuments`: the documents of an open index, as rerankers read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError
from pyserini_repbert.index.numbers import DocumentNumbers
from pyserini_repbert.indexes.kind import Index
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.documents import SearchedDocuments

_DENSE = 'dense'


class IndexDocuments(SearchedDocuments):
    """The documents of an index.

    Parameters
    ----------
    index : open
    machine : where the search runs
    give_texts : gives hits their texts, as `with_texts`; None: the index does
    closes : whether `close` closes the index
    """

    def __init__(
        self,
        index: Index,
        machine: Machine,
        give_texts: Callable[[str, Ranking, int], Ranking] | None = None,
        closes: bool = False,
    ) -> None:
        self._index = index
        self._machine = machine
        self._give_texts = give_texts or self._with_stored_texts
        self._closes = closes

    @cached_property
    def _dense(self) -> Any:
        """The dense ranking."""
        index = self._index
        if _DENSE not in index.offered.names:
            raise InputError(
                f'{index.description}, without vectors: name a dense index or a collection',
                parameters=('index',),
            )
        return index.ranking(_DENSE, self._machine)

    @property
    def description(self) -> str:
        return self._index.description

    @cached_property
    def numbers(self) -> DocumentNumbers | None:
        return self._index.numbers(self._machine)

    @property
    def vectors_sha256(self) -> str:
        # If there are none, this error comes first.
        assert self._dense is not None
        if self.numbers is None:
            raise InputError(
                f'{self.description}, whose passages have no numbers: name an index that `encode` '
                'made, or a collection',
                parameters=('index',),
            )
        return self.numbers.sha256

    def vectors(self, docids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        vectors: dict[str, NDArray[np.float32]] = self._dense.document_vectors(docids)
        return vectors

    def query_vectors(self, queries: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._dense.encode(queries)
        return vectors

    def dense_scores(self, query: NDArray[np.float32], docids: Sequence[str]) -> dict[str, float]:
        scores: dict[str, float] = self._dense.scores_by_docid(query, docids)
        return scores

    def with_texts(self, query: str, ranking: Ranking, n_excerpts: int) -> Ranking:
        ranking = self._give_texts(query, ranking, n_excerpts)
        for hit in ranking:
            if hit.text is None:
                raise InputError(
                    f"document '{hit.docid}' has no text, and '{self._index.location}' stores "
                    'none: name an index that stores texts',
                    parameters=('index',),
                )
        return ranking

    def _with_stored_texts(self, query: str, ranking: Ranking, n_excerpts: int) -> Ranking:
        if self._index.kind.finds_passages:
            searcher = self._index.searcher(self._machine)
            return searcher.with_stored_texts(query, ranking, n_excerpts)
        store = self._index.store(self._machine)
        if store is None:
            return ranking
        texts = store.texts(ranking.docids)
        return ranking.with_texts(dict(zip(ranking.docids, texts, strict=True)))

    def close(self) -> None:
        if self._closes:
            self._index.close()
