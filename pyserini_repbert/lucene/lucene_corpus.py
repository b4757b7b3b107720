"""The passages that a Lucene index stores, as a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyserini_repbert.data.corpus import BadPassage, Corpus, Passage
from pyserini_repbert.files import StrPath


def is_lucene_index(folder: StrPath) -> bool:
    """Whether a folder is a Lucene index."""
    return Path(folder).is_dir() and any(Path(folder).glob('segments_*'))


class LuceneCorpus(Corpus):
    """The passages whose text a Lucene index stores, in Lucene's order. Reading it starts a JVM."""

    def count_hint(self) -> int:
        """The number of documents in the index."""
        from pyserini_repbert.lucene.searcher import stored_count

        return stored_count(self.name)

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        from pyserini_repbert.lucene.searcher import stored_passages

        for number, (docid, text) in enumerate(stored_passages(self.name)):
            place = f'{self.name}:{number}'
            yield place, BadPassage(f"passage '{docid}' has no stored text") if text is None else Passage(docid, text)
