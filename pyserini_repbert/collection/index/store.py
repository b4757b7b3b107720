"""`CollectionStore`: the documents of one generation of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.stored_values import LANGUAGE
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Origin
from pyserini_repbert.indexes.stores import ALL_FIELDS, DocumentStore, raw_document


class CollectionStore(DocumentStore):
    """The documents of a generation, which stays open while they are asked for.

    Parameters
    ----------
    generation : has the documents
    """

    def __init__(self, generation: Generation) -> None:
        super().__init__(generation)
        self._generation = generation
        self.digest = generation.sha256

    def documents(self, docids: Sequence[str]) -> list[Document | None]:
        return self._generation.documents(docids)

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        return [raw_document(document) for document in self.documents(docids)]

    def fields(self, docids: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
        if not names:
            return [{} for _ in docids]
        docnos = self._generation.docnos(docids).tolist()
        of_files = self._generation.file_fields.of_documents(docnos)
        languages = self._shown_languages(docids)
        selected = []
        for docid, docno, own in zip(docids, docnos, self._generation.fields(docids), strict=True):
            fields = {**(own or {})}
            for name, value in {**of_files.get(docno, {}), **languages.get(docid, {})}.items():
                # A document's own field comes first.
                fields.setdefault(name, value)
            if ALL_FIELDS not in names:
                fields = {name: fields[name] for name in names if name in fields}
            selected.append(fields)
        return selected

    def _shown_languages(self, docids: Sequence[str]) -> dict[str, dict[str, str]]:
        """The language of each document, as a field; none where all have the same one."""
        if len(self._generation.languages) < 2:
            return {}
        languages = self._generation.languages_of(docids)
        return {docid: {LANGUAGE: language} for docid, language in languages.items()}

    def origins(self, docids: Sequence[str]) -> list[Origin]:
        docnos = self._generation.docnos(docids).tolist()
        known = self._generation.origins(docnos)
        return [known.get(docno, Origin()) for docno in docnos]

    def addresses(self, docids: Sequence[str]) -> list[str]:
        return self._generation.addresses(docids)

    def versions(self, docids: Sequence[str]) -> list[str]:
        return self._generation.versions(docids)
