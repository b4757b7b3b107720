"""The data files of CEDR's code: `query<TAB>qid<TAB>text` and `doc<TAB>docid<TAB>text`.

Both kinds of line may come in one file. `topics.read_topics` and `passages.corpus_of_files` recognise such files, so
that every command takes them; CEDR's run files and qrels are TREC's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pyserini_repbert.files import decoded_line, numbered_bytes, open_binary
from pyserini_repbert.formats.corpus import BadPassage, Corpus, OnError, Passage

QUERY, DOCUMENT = 'query', 'doc'


class DataLine(NamedTuple):
    """A line of a data file: 'query' or 'doc', the identifier, the text (which may be empty)."""

    kind: str
    name: str
    text: str


def is_data_line(line: str) -> bool:
    """Whether a line has the form of a data file's."""
    kind, *rest = line.split('\t', 2)
    return kind in (QUERY, DOCUMENT) and len(rest) == 2


def parse_data_line(line: str) -> DataLine:
    """A line's content; a tab inside a text is kept. Raises BadPassage where it has another form."""
    if not is_data_line(line):
        raise BadPassage(f"expected 'query<TAB>qid<TAB>text' or 'doc<TAB>docid<TAB>text', found {line[:60]!r}")
    kind, name, text = line.split('\t', 2)
    return DataLine(kind, name.strip(), text.strip())


class CedrCorpus(Corpus):
    """The documents of data files; their queries are passed over."""

    def __init__(
        self, name: str, paths: Sequence[Path], on_error: OnError | str = OnError.REFUSE, keep_empty: bool = False
    ) -> None:
        super().__init__(name, on_error, keep_empty)
        self.paths = list(paths)

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for path in self.paths:
            with open_binary(path) as stream:
                for number, raw in numbered_bytes(stream):
                    place = f'{path}:{number}'
                    if not raw or raw.isspace():
                        continue
                    try:
                        line = parse_data_line(decoded_line(raw))
                    except BadPassage as error:
                        yield place, error
                    except ValueError as error:
                        yield place, BadPassage(str(error))
                    else:
                        if line.kind == DOCUMENT:
                            yield place, Passage(line.name, line.text)
