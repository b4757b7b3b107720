"""Changing a Lucene index: documents are added and deleted, segments are merged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pyserini_repbert.errors import InputError, JavaError
from pyserini_repbert.lucene.jvm import (
    calling,
    failed_indexing,
    java_calls,
    java_class,
    java_reason,
    quiet_java,
)

logger = logging.getLogger(__name__)

_AT_ONCE = 1000  # documents between two reports of progress
# Anserini's document of TREC CAR: a docid and a text. To prepare the parser of its JSON documents
# takes longer than to index one.
_DOCUMENT = 'io.anserini.collection.CarCollection$Document'
_SHOWN = 80  # characters of a docid


@dataclass(frozen=True)
class LuceneCounts:
    """How many documents a Lucene index has, and how many deleted ones it still counts."""

    documents: int
    dead: int


def open_indexer(folder: Path, **settings: Any) -> Any:
    """Anserini's `SimpleIndexer`, which writes an index into a folder.

    `settings` are fields of Anserini's `IndexCollection.Args`, such as `language`. The indexer
    buffers 2,048 MB, whatever `memoryBuffer` says.
    """
    arguments = java_class('io.anserini.index.IndexCollection$Args')()
    arguments.index = str(folder.absolute())
    for name, value in settings.items():
        setattr(arguments, name, value)
    return java_class('io.anserini.index.SimpleIndexer')(arguments)


class LuceneUpdate:
    """Adds documents to an index, and deletes some, as a context: leaving it closes the index.

    Positions and document vectors are stored, the documents themselves are not.

    Parameters
    ----------
    folder : the index, or an empty folder
    language : of Anserini's analyzer
    """

    def __init__(self, folder: Path, language: str) -> None:
        self._folder = folder
        self._is_closed = False
        quiet_java()
        with java_calls(), self._one_line():
            self._java = open_indexer(
                folder,
                append=True,
                threads=1,
                language=language,
                storePositions=True,
                storeDocvectors=True,
            )
            self._writer = self._java.writer
            self._generator = self._java.generator
            self._document: Any = java_class(_DOCUMENT)
            self._term: Any = java_class('org.apache.lucene.index.Term')
            self._query: Any = java_class('org.apache.lucene.search.TermQuery')

    def delete(self, docids: Iterable[str]) -> None:
        """Delete documents; a docid that the index lacks is passed over."""
        with java_calls(), self._one_line():
            for docid in docids:
                # pyjnius finds Lucene's method for queries, not the one for terms
                self._writer.deleteDocuments(self._query(self._term('id', docid)))

    def add(
        self,
        documents: Iterable[tuple[str, str]],
        on_progress: Callable[[int], object] = int,
    ) -> None:
        """Add documents, each a docid and its contents.

        Raises InputError if Lucene refuses one, JavaError if it cannot write.
        """
        stream = iter(documents)
        while batch := list(islice(stream, _AT_ONCE)):
            with java_calls(), self._one_line():
                for docid, contents in batch:
                    self._add_one(docid, contents)
            on_progress(len(batch))

    def _add_one(self, docid: str, contents: str) -> None:
        import jnius

        try:
            document = self._generator.createDocument(self._document(docid, contents))
            self._writer.addDocument(document)
        except jnius.JavaException as error:
            if self._writer.getTragicException() is not None:
                raise
            raise InputError(
                f"Lucene refused document '{docid[:_SHOWN]}': fix it (a docid has at most 32,766 "
                'bytes)'
            ) from error

    def finish(self, most_dead: float) -> LuceneCounts:
        """Write everything to the disk and close the index; returns its counts.

        Segments are merged where more than a share `most_dead` of the documents is deleted.
        """
        with java_calls(), self._one_line():
            self._writer.commit()
            counts = self._counts()
            is_merged = counts.dead > most_dead * (counts.documents + counts.dead)
            self._is_closed = True
            self._java.close(is_merged)
        if not any(self._folder.glob('segments_*')):  # Anserini only logs a failure to close
            raise JavaError('Lucene could not finish the index: check the free disk space')
        return LuceneCounts(counts.documents, 0) if is_merged else counts

    def _counts(self) -> LuceneCounts:
        stats = self._writer.getDocStats()
        return LuceneCounts(int(stats.numDocs), int(stats.maxDoc) - int(stats.numDocs))

    def __enter__(self) -> LuceneUpdate:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._is_closed:
            with java_calls():
                try:
                    self._writer.rollback()
                except Exception as failure:
                    logger.info('closing an index failed: %s', java_reason(failure))

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        import jnius

        try:
            yield
        except jnius.JavaException as error:
            raise failed_indexing(java_reason(error), self._folder.parent) from error


def check_lucene_index(folder: Path, docids: Iterable[str]) -> LuceneCounts:
    """Compare the checksums of an index's files, and look for documents; returns its counts.

    Raises JavaError if Lucene finds a damage, InputError for a docid that the index lacks.
    """
    with java_calls():
        quiet_java()
        path = java_class('java.io.File')(str(folder.absolute())).toPath()
        directory = java_class('org.apache.lucene.store.FSDirectory').open(path)
        reader = calling(java_class('org.apache.lucene.index.DirectoryReader').open, directory)
        try:
            for leaf in reader.leaves().toArray():
                calling(_code_reader(leaf.reader()).checkIntegrity)
            term = java_class('org.apache.lucene.index.Term')
            for docid in docids:
                if not reader.docFreq(term('id', docid)):
                    raise InputError(f"Lucene's index {folder} lacks document '{docid}'")
            return LuceneCounts(int(reader.numDocs()), int(reader.numDeletedDocs()))
        finally:
            reader.close()
            directory.close()


def _code_reader(reader: Any) -> Any:
    import jnius

    return jnius.cast('org.apache.lucene.index.CodecReader', reader)
