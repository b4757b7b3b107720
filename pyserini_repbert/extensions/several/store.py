"""`SeveralStores`: the documents of several collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Origin
from pyserini_repbert.extensions.several.names import split_docids
from pyserini_repbert.indexes.stores import DocumentStore, raw_document

_Value = TypeVar('_Value')


class SeveralStores(DocumentStore):
    """The documents of several collections, as hits name them.

    Parameters
    ----------
    stores : of each collection by its name
    """

    def __init__(self, stores: Mapping[str, DocumentStore]) -> None:
        self._stores = dict(stores)
        self.digest = '+'.join(store.digest for store in self._stores.values())

    def _gather(
        self,
        docids: Sequence[str],
        values_of: Callable[[DocumentStore, Sequence[str]], Sequence[_Value]],
        missing: _Value,
    ) -> list[_Value]:
        """The values of documents; `missing` for another index's documents."""
        values = [missing] * len(docids)
        for name, of_index in split_docids(docids, list(self._stores)).items():
            own_values = values_of(self._stores[name], of_index.docids)
            for row, value in zip(of_index.rows, own_values, strict=True):
                values[row] = value
        return values

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        return self._gather(docids, lambda store, own: store.texts(own), None)

    def documents(self, docids: Sequence[str]) -> list[Document | None]:
        found = self._gather(docids, lambda store, own: store.documents(own), None)
        documents: list[Document | None] = []
        for docid, document in zip(docids, found, strict=True):
            documents.append(None if document is None else replace(document, docid=docid))
        return documents

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        return [raw_document(document) for document in self.documents(docids)]

    def fields(self, docids: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
        return self._gather(docids, lambda store, own: store.fields(own, names), {})

    def origins(self, docids: Sequence[str]) -> list[Origin]:
        return self._gather(docids, lambda store, own: store.origins(own), Origin())

    def addresses(self, docids: Sequence[str]) -> list[str]:
        return self._gather(docids, lambda store, own: store.addresses(own), '')

    def versions(self, docids: Sequence[str]) -> list[str]:
        return self._gather(docids, lambda store, own: store.versions(own), '')
