"""Any corpus that a command takes: files, ir_datasets, or the passages stored in a Lucene index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.files import StrPath
from pyserini_repbert.passages import BadPassage, Corpus, OnError, Passage, open_corpus

LUCENE = 'lucene'


def is_lucene_index(folder: StrPath) -> bool:
    """Whether a folder is a Lucene index."""
    return Path(folder).is_dir() and any(Path(folder).glob('segments_*'))


class LuceneCorpus(Corpus):
    """The passages whose text a Lucene index stores, in Lucene's order. Reading it starts a JVM."""

    def count_hint(self) -> int:
        """The number of documents in the index."""
        from pyserini_repbert.pyserini_bridge.lucene import stored_count

        return stored_count(self.name)

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        from pyserini_repbert.pyserini_bridge.lucene import stored_passages

        for number, (docid, text) in enumerate(stored_passages(self.name)):
            place = f'{self.name}:{number}'
            yield place, BadPassage(f"passage '{docid}' has no stored text") if text is None else Passage(docid, text)


def open_any_corpus(
    source: StrPath,
    fmt: str = 'auto',
    fields: Iterable[str] = (),
    on_error: str = OnError.REFUSE,
    keep_empty: bool = False,
) -> Corpus:
    """A Lucene index folder's stored passages, a collection that ships, or whatever `passages.open_corpus` opens."""
    shipped = None if Path(source).exists() else catalog.find('collections', str(source))
    if shipped is not None and 'resource' in shipped.values:
        source = catalog.resource(shipped)
    if fmt == LUCENE or (fmt == 'auto' and is_lucene_index(source)):
        return LuceneCorpus(str(source), on_error, keep_empty)
    return open_corpus(source, fmt, fields, on_error, keep_empty)
