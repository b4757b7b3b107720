"""The data files of CEDR's code: `query<TAB>qid<TAB>text` and `doc<TAB>docid<TAB>text`, and training pairs `qid docid`.

Both kinds of line may come in one file. `topics.read_topics` and `passages.open_corpus` recognise such files, so that
every command takes them; CEDR's run files and qrels are TREC's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pyserini_repbert.corpus import BadPassage, Corpus, OnError, Passage
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, decoded_line, numbered_bytes, numbered_lines, open_binary
from pyserini_repbert.identifiers import columns, identifier_problem
from pyserini_repbert.ranking import Query

QUERY, DOCUMENT = 'query', 'doc'
Pairs = dict[str, list[str]]


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


def read_data_files(paths: Sequence[StrPath]) -> tuple[dict[str, Query], dict[str, str]]:
    """The queries by qid and the documents' texts by docid, from files that may hold both.

    Raises
    ------
    InputError
        with file and line: a malformed line, an identifier that a run file cannot hold or that comes again with
        another text
    """
    queries: dict[str, Query] = {}
    documents: dict[str, str] = {}
    for path in paths:
        for number, line in numbered_lines(path, 'data file'):
            if not line.strip():
                continue
            try:
                kind, name, text = parse_data_line(line)
            except BadPassage as error:
                raise InputError.at(path, number, str(error)) from error
            if problem := identifier_problem(name):
                raise InputError.at(path, number, f'the identifier {name[:60]!r} of a {kind} {problem}')
            if kind == QUERY:
                before = queries.setdefault(name, Query(name, text)).text
            else:
                before = documents.setdefault(name, text)
            if before != text:
                raise InputError.at(path, number, f"{kind} '{name}' was given before with another text")
    return queries, documents


def read_pairs(path: StrPath) -> Pairs:
    """Training pairs, `qid docid` a line: {qid: docids} in the file's order, each docid once.

    Raises InputError for a malformed line, or no lines.
    """
    pairs: dict[str, dict[str, None]] = {}
    for number, line in numbered_lines(path, 'pairs file'):
        try:
            values = columns(line)
            if not values:
                continue
            qid, docid = values
        except ValueError as error:
            raise InputError.at(path, number, f"expected 'qid docid', found {line[:60]!r} ({error})") from error
        pairs.setdefault(qid, {})[docid] = None
    if not pairs:
        raise InputError(f"pairs file {path} has no lines: expected 'qid docid'")
    return {qid: list(docids) for qid, docids in pairs.items()}


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
