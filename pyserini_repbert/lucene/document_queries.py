"""A document of a Lucene index as a query: its best terms by tf-idf."""

from __future__ import annotations

from typing import Any

from pyserini_repbert.lucene.jvm import calling, java_class

CONTENTS = 'contents'
# Terms of a query: the default of Lucene's MoreLikeThis, and of Elasticsearch's.
MAX_TERMS = 25
# A term that no other document has finds nothing.
MIN_DOCUMENTS = 2


class DocumentQueries:
    """Makes queries of an index's documents, as Lucene's MoreLikeThis does.

    A query has the terms of a document whose tf-idf is greatest, which all count alike. Calls are
    made within `java_calls`.

    Parameters
    ----------
    reader : Lucene's, of the index
    analyzer : of its texts
    """

    def __init__(self, reader: Any, analyzer: Any) -> None:
        self._reader = reader
        self._utilities = java_class('io.anserini.index.IndexReaderUtils')
        self._like = java_class('org.apache.lucene.queries.mlt.MoreLikeThis')(reader)
        self._like.setFieldNames([CONTENTS])
        self._like.setAnalyzer(analyzer)
        # The usual minimum of 2 would leave nothing of a short passage.
        self._like.setMinTermFreq(1)
        self._like.setMinDocFreq(MIN_DOCUMENTS)
        self._like.setMaxQueryTerms(MAX_TERMS)

    def number_of(self, docid: str) -> int:
        """Lucene's number of a document; -1 for one that the index lacks."""
        return int(self._utilities.convertDocidToLuceneDocid(self._reader, docid))

    def has_vector(self, number: int) -> bool:
        """Whether the index stores the terms of a document."""
        return self._reader.termVectors().get(number) is not None

    def has_vectors(self) -> bool:
        """Whether the index stores the terms of those documents that have any."""
        infos = java_class('org.apache.lucene.index.FieldInfos').getMergedFieldInfos(self._reader)
        field = infos.fieldInfo(CONTENTS)
        if field is None:
            return False
        # Lucene 10 has the second name.
        is_stored = getattr(field, 'hasVectors', None) or field.hasTermVectors
        return bool(is_stored())

    def of_vector(self, number: int) -> Any:
        """The query of a document whose terms are stored; None if it has no terms."""
        return _with_terms(calling(self._like.like, number))

    def of_text(self, text: str) -> Any:
        """The query of a text; None if it has no terms."""
        values = java_class('java.util.ArrayList')()
        values.add(text)
        fields = java_class('java.util.HashMap')()
        fields.put(CONTENTS, values)
        return _with_terms(calling(self._like.like, fields))


def _with_terms(query: Any) -> Any:
    """A query; None without terms."""
    return query if query.toString() else None
