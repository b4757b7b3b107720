"""Many values that go to Java, or come from it, as one text of JSON.

A call into Java takes some 7 microseconds for each value. Jackson, which Anserini's jar has, reads
or writes all of them in one call.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any

from pyserini_repbert.lucene.jvm import java_class

_BYTES = 'org.apache.lucene.util.BytesRef'
# Loading Jackson takes longer than handing over so many texts one by one.
_CALLED_EACH = 5_000
# So few texts are always handed over one by one.
_FEW = 20


class ByteLists:
    """Makes Java's lists of texts as Lucene's bytes."""

    def __init__(self) -> None:
        self._n_texts = 0
        self._reader: Any = None

    def make(self, texts: Sequence[str]) -> Any:
        """The list of texts."""
        self._n_texts += len(texts)
        if len(texts) <= _FEW or self._n_texts <= _CALLED_EACH:
            make_bytes = java_class(_BYTES)
            return java_list([make_bytes(text.encode()) for text in texts])
        values = []
        for text in texts:
            content = text.encode()
            values.append({'bytes': base64.b64encode(content).decode(), 'length': len(content)})
        if self._reader is None:
            kind = java_class('java.lang.Class').forName(_BYTES)
            self._reader = _object_mapper().readerForListOf(kind)
        return self._reader.readValue(json.dumps(values))


class HitsReader:
    """Reads what Anserini found for many questions."""

    def __init__(self) -> None:
        self._mapper: Any = None

    def read(self, hits_of: Any) -> dict[str, list[dict[str, Any]]]:
        """The hits of each question by its qid: mappings with `docid` and `score`.

        `hits_of` is a Java map from qids to arrays of Anserini's `ScoredDoc`.
        """
        if self._mapper is None:
            self._mapper = _object_mapper()
            document = java_class('java.lang.Class').forName('org.apache.lucene.document.Document')
            true = java_class('java.lang.Boolean')(True)
            self._mapper.configOverride(document).setIsIgnoredType(true)
        hits: dict[str, list[dict[str, Any]]] = json.loads(self._mapper.writeValueAsString(hits_of))
        return hits


def java_list(values: Iterable[Any]) -> Any:
    """Java's list of values, which does not change.

    pyjnius takes 6 ms to find out what an interface has, and 14 ms for `java.util.ArrayList`.
    """
    return java_class('java.util.List').of(*values)


def _object_mapper() -> Any:
    return java_class('com.fasterxml.jackson.databind.ObjectMapper')()
