"""Titles and texts of the documents that the report shows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from pyserini_repbert.data.documents import Document
from pyserini_repbert.indexes.kind import SearchOptions, kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.texts import texts_opener

ReadDocuments = Callable[[Sequence[str]], dict[str, Document]]
"""Reads documents by docid; those that are not there are left out."""


def open_documents(index: str | None, corpus: str | None) -> ReadDocuments:
    """What reads documents of a collection, of an index that stores texts, or of a corpus.

    With neither, no document is read. Raises InputError for both, and for an index without texts.
    """
    if index is None and corpus is None:
        return lambda docids: {}
    if index is not None and corpus is None and kind_of(index).finds_passages:
        # Notices a damaged collection before runs are read.
        kind_of(index).open(index, SearchOptions()).close()
        return lambda docids: _documents_of_index(index, docids)
    open_texts = texts_opener(corpus, index)

    def read(docids: Sequence[str]) -> dict[str, Document]:
        documents = {}
        texts = open_texts(docids).texts(docids)
        for docid, text in zip(docids, texts, strict=True):
            if text is not None:
                documents[docid] = Document(docid, text)
        return documents

    return read


def _documents_of_index(location: str, docids: Sequence[str]) -> dict[str, Document]:
    with contextlib.closing(kind_of(location).open(location, SearchOptions())) as index:
        store = index.store(Machine())
        documents = store.documents(docids) if store else []
    return {document.docid: document for document in documents if document is not None}
