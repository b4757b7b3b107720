"""Lucene indexes written with Anserini's `SimpleIndexer`; their stored passages as a corpus."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from pyserini_repbert.data.passages import BadPassage, Corpus, Passage
from pyserini_repbert.errors import InputError, JavaError
from pyserini_repbert.lucene.jvm import failed_indexing, java_class, java_reason, quiet_java
from pyserini_repbert.lucene.languages import ENGLISH
from pyserini_repbert.lucene.lucene_form import is_lucene_index
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.updating import open_indexer

logger = logging.getLogger(__name__)


class LuceneWriter:
    """Adds JSON documents (`id`, `contents`) to a new index.

    The index stores positions, document vectors and raw documents. Use it as a context, with an
    empty folder: leaving it commits and closes the index; after an exception, the caller removes
    the folder.

    Parameters
    ----------
    folder : of the new index
    threads : with several, the order inside the index differs each time
    impact : documents have `id`, `contents` and `vector`, {token: impact, an integer}; neither
        positions nor document vectors are stored
    language : of the analyzer, which impacts have no need of
    """

    def __init__(
        self, folder: Path, threads: int = 1, impact: bool = False, language: str = ENGLISH
    ) -> None:
        quiet_java()
        self._folder = folder
        import jnius

        self._failure = jnius.JavaException
        self._impact = impact
        if impact:
            self._vector_document = java_class(
                'io.anserini.collection.JsonVectorCollection$Document'
            )
            self._json = java_class('com.fasterxml.jackson.databind.ObjectMapper')()
        settings: dict[str, Any] = {'threads': threads, 'storeRaw': True}
        if impact:
            settings |= {'impact': True, 'pretokenized': True}
        else:
            settings |= {'language': language, 'storePositions': True, 'storeDocvectors': True}
        try:
            self._java = open_indexer(folder, **settings)
        except self._failure as error:
            raise JavaError(
                f'Lucene cannot write to {folder} ({java_reason(error)}): check the folder and its '
                'permissions'
            ) from error

    def add(self, documents: Sequence[str]) -> None:
        """Add documents, each a JSON object as text.

        Raises InputError when Anserini refuses a document, JavaError when Lucene cannot write.
        """
        try:
            if self._impact:
                # Anserini reads raw documents as JsonCollection's, whatever the collection.
                parsed = [self._vector_document(self._json.readTree(text)) for text in documents]
                added = self._java.addJsonDocuments(parsed)
            else:
                added = self._java.addRawDocuments(list(documents))
        except self._failure as error:
            raise failed_indexing(java_reason(error), self._folder.parent) from error
        if added != len(documents):
            tragedy = self._java.writer.getTragicException()
            if tragedy:
                raise failed_indexing(tragedy.toString(), self._folder.parent)
            raise InputError(
                f'Anserini refused {len(documents) - added} of {len(documents)} documents from '
                f'{documents[0][:80]!r} on: fix the corpus (a docid has at most 32,766 bytes)'
            )

    def __enter__(self) -> LuceneWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self._java.close()
        except self._failure as failure:
            if error is None:
                raise failed_indexing(java_reason(failure), self._folder.parent) from failure
            logger.info('closing an unfinished index failed: %s', java_reason(failure))
        # Anserini only logs a failure to close.
        if error is None and not is_lucene_index(self._folder):
            raise JavaError('Lucene could not finish the index: check the free disk space')


class LuceneCorpus(Corpus):
    """The passages whose text a Lucene index stores, in Lucene's order. Reading it starts a JVM."""

    def count_hint(self) -> int:
        """The number of documents in the index."""
        with closing(LuceneSparseSearcher(self.name)) as searcher:
            return searcher.size

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        with closing(LuceneSparseSearcher(self.name)) as searcher:
            for number, (docid, text) in enumerate(searcher.passages()):
                location = f'{self.name}:{number}'
                if text is None:
                    yield location, BadPassage(f"passage '{docid}' has no stored text")
                else:
                    yield location, Passage(docid, text)
