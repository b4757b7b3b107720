"""`DocumentStore`: the documents, or passages, that an index stores, by docid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Origin, stored_docid

if TYPE_CHECKING:
    from pyserini_repbert.data.passages import PassageTexts

# Means all fields of a document.
ALL_FIELDS = '*'


class DocumentStore:
    """What an index stores of its documents.

    Parameters
    ----------
    passages : give the texts

    Attributes
    ----------
    digest : of the generation that has the documents; '' if documents never change
    keeps_raws : whether documents are stored as they were given, not only their texts
    """

    digest = ''
    keeps_raws = False

    def __init__(self, passages: PassageTexts) -> None:
        self._passages = passages

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts, or whole documents, one for each docid; None if it is not here."""
        return self._passages.texts(docids)

    def documents(self, docids: Sequence[str]) -> list[Document | None]:
        """Whole documents, None for each that does not exist."""
        documents: list[Document | None] = []
        for docid, text in zip(docids, self.texts(docids), strict=True):
            documents.append(None if text is None else Document(docid, text))
        return documents

    def stored_docid(self, docid: str) -> str:
        """The docid of a document that is named by it, or as a person reads it.

        An unknown docid is returned unchanged.
        """
        return stored_docid(docid, lambda known: self.documents([known]) != [None])

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        """Documents as stored; None for each unknown docid."""
        raws: list[str | None] = []
        for docid, text in zip(docids, self.texts(docids), strict=True):
            raw = None
            if text is not None:
                # As Lucene stores a document.
                raw = json.dumps({'id': docid, 'contents': text}, ensure_ascii=False)
            raws.append(raw)
        return raws

    def fields(self, docids: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
        """The fields of documents that have these names; `ALL_FIELDS` among them means all."""
        return [{} for _ in docids]

    def origins(self, docids: Sequence[str]) -> list[Origin]:
        """The locations of documents in their sources; an empty one if it is unknown."""
        return [Origin() for _ in docids]

    def addresses(self, docids: Sequence[str]) -> list[str]:
        """Where documents come from, as addresses; '' if that is not known."""
        return ['' for _ in docids]

    def versions(self, docids: Sequence[str]) -> list[str]:
        """A digest of each document's title and text; '' if documents never change."""
        return ['' for _ in docids]


def document_values(document: Document) -> dict[str, Any]:
    """The title of a collection's document, if it has one, its text, and its fields."""
    values: dict[str, Any] = {'text': document.text}
    if document.title:
        values = {'title': document.title, **values}
    for name, value in document.fields.items():
        values.setdefault(name, value)
    return values


def raw_document(document: Document | None) -> str | None:
    """A collection's document as a JSON object with its id; None if there is none."""
    if document is None:
        return None
    return json.dumps({'id': document.docid, **document_values(document)}, ensure_ascii=False)
