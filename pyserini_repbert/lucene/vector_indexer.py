"""Writing one Lucene index of texts and vectors: Anserini's documents, each with its vector in a graph (HNSW).

Anserini indexes either texts or vectors, and vectors with DOT_PRODUCT only, which clips products below -1. Lucene's own
writer takes both, and MAXIMUM_INNER_PRODUCT for products of any size.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError, JavaError
from pyserini_repbert.lucene.indexer import buffer_size
from pyserini_repbert.lucene.jvm import java_class, java_reason, quiet_java
from pyserini_repbert.lucene.lucene_calls import calling

logger = logging.getLogger(__name__)

VECTOR = 'vector'  # Anserini's name of the field
MAX_DIMENSION = 1024  # of Lucene's default format


class LuceneVectorWriter:
    """Adds documents with vectors to a new index: five short calls into Java for each, and one for each batch.

    Texts are stored and analysed as by `LuceneWriter`. The graph has Lucene's and Anserini's default parameters: 16
    neighbours, chosen from 100. Vectors are buffered on Java's heap until they and the texts fill a quarter of it (2 GB
    at most); then a segment is written.

    Use it as a context: leaving it merges the segments into one and commits; after an exception nothing is committed.

    Parameters
    ----------
    folder : an empty folder, for the index

    Raises
    ------
    JavaError
        when Java cannot be started or Lucene cannot write
    """

    def __init__(self, folder: Path) -> None:
        quiet_java()
        settings = java_class('io.anserini.index.IndexCollection$Args')()
        settings.storePositions = settings.storeDocvectors = settings.storeRaw = True
        generator = java_class('io.anserini.index.generator.DefaultLuceneDocumentGenerator')(settings)
        self._document: Callable[[Any], Any] = generator.createDocument
        self._json = java_class('com.fasterxml.jackson.databind.ObjectMapper')()
        self._raw = java_class('io.anserini.collection.JsonCollection$Document')
        self._field = java_class('org.apache.lucene.document.KnnFloatVectorField')
        self._similarity = java_class('org.apache.lucene.index.VectorSimilarityFunction').MAXIMUM_INNER_PRODUCT
        config = java_class('org.apache.lucene.index.IndexWriterConfig')(
            java_class('io.anserini.analysis.DefaultEnglishAnalyzer').newDefaultInstance()
        )
        config.setRAMBufferSizeMB(float(buffer_size()))
        # merges run in this thread, one at a time, which bounds their memory
        config.setMergeScheduler(java_class('org.apache.lucene.index.SerialMergeScheduler')())
        place = java_class('java.nio.file.Paths').get(str(folder))
        self._directory = calling(java_class('org.apache.lucene.store.FSDirectory').open, place)
        self._java = calling(java_class('org.apache.lucene.index.IndexWriter'), self._directory, config)

    def add(self, documents: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add documents, JSON objects with `id` and `contents` as text, and their vectors, float32 (n, d).

        Raises InputError when Anserini refuses a document, JavaError when Lucene cannot write.
        """
        import jnius

        parsed = calling(self._json.readTree, f'[{",".join(documents)}]')
        for place, vector in enumerate(vectors.tolist()):
            try:
                document = self._document(self._raw(parsed.get(place)))
            except jnius.JavaException as error:
                refused = documents[place][:80]
                raise InputError(f'Anserini refused {refused!r} ({java_reason(error)}): mend the corpus') from error
            document.add(self._field(VECTOR, vector, self._similarity))
            calling(self._java.addDocument, document)

    def __enter__(self) -> LuceneVectorWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        import jnius

        try:
            if error is None:
                self._java.forceMerge(1)
                self._java.close()
            else:
                self._java.rollback()
            self._directory.close()
        except jnius.JavaException as failure:
            if error is None:
                raise JavaError(
                    f'Lucene could not finish the index ({java_reason(failure)}): check the free disk space, or set '
                    'PYSERINI_REPBERT_JAVA_HEAP'
                ) from failure
            logger.info('closing an unfinished index failed: %s', java_reason(failure))
