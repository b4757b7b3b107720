"""The data files of CEDR's code: `query<TAB>qid<TAB>text` and `doc<TAB>docid<TAB>text`.

Both kinds of line may come in one file. `topics.read_topics` and `passages.corpus_of_files` recognise such files, so
that every command takes them; CEDR's run files and qrels are TREC's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyserini_repbert.data.corpus import BadPassage, FilesCorpus, Passage, parsed_files

QUERY, DOCUMENT = 'query', 'doc'


class DataLine(NamedTuple):
    """A line of a data file: 'query' or 'doc', the identifier, the text (which may be empty)."""

    kind: str
    name: str
    text: str


def is_data_line(line: str) -> bool:
    """Whether a line has the form of a data file's line."""
    kind, *rest = line.split('\t', 2)
    return kind in (QUERY, DOCUMENT) and len(rest) == 2


def parse_data_line(line: str) -> DataLine:
    """A line's content; tabs inside the text are kept. Raises BadPassage for a line of another form."""
    if not is_data_line(line):
        raise BadPassage(f"expected 'query<TAB>qid<TAB>text' or 'doc<TAB>docid<TAB>text', found {line[:60]!r}")
    kind, name, text = line.split('\t', 2)
    return DataLine(kind, name.strip(), text.strip())


class CedrCorpus(FilesCorpus):
    """The documents of data files; queries in them are ignored."""

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        return parsed_files(self.paths, _document)


def _document(line: str) -> Passage | None:
    kind, name, text = parse_data_line(line)
    return Passage(name, text) if kind == DOCUMENT else None
