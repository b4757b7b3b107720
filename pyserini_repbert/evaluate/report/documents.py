"""Titles and texts of the documents that the report shows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from pyserini_repbert.collection.reading import open_generation
from pyserini_repbert.data.documents import Document
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.names.texts import texts_opener

ReadDocuments = Callable[[Sequence[str]], dict[str, Document]]
"""Reads documents by docid; those that are not there are left out."""


def open_documents(index: str | None, corpus: str | None) -> ReadDocuments:
    """What reads documents of a collection, of an index that stores texts, or of a corpus.

    With neither, no document is read. Raises InputError for both, and for an index without texts.
    """
    if index is None and corpus is None:
        return lambda docids: {}
    if index is not None and corpus is None and is_collection(Path(index)):
        folder = Path(index)
        # Notices a damaged collection before runs are read.
        open_generation(folder).close()
        return lambda docids: _documents_of_collection(folder, docids)
    open_texts = texts_opener(corpus, index)

    def read(docids: Sequence[str]) -> dict[str, Document]:
        documents = {}
        texts = open_texts(docids).texts(docids)
        for docid, text in zip(docids, texts, strict=True):
            if text is not None:
                documents[docid] = Document(docid, text)
        return documents

    return read


def _documents_of_collection(folder: Path, docids: Sequence[str]) -> dict[str, Document]:
    with contextlib.closing(open_generation(folder)) as generation:
        documents = generation.documents(docids)
    return {document.docid: document for document in documents if document is not None}
