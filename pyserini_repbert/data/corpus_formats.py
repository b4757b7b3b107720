"""Readers of the formats of corpora, a class each.

JSON lines, MS MARCO's collection.tsv, CEDR's data files, TREC text.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, TypeVar

from pyserini_repbert.data.documents import DOCID_KEYS, Document, document_of_record
from pyserini_repbert.data.origins import Origin, name_in_corpus
from pyserini_repbert.data.passages import BadPassage, Corpus, Passage
from pyserini_repbert.data.trec_text import read_documents
from pyserini_repbert.data.values import first_key, identifier_of, parse_json
from pyserini_repbert.files import decoded_line, numbered_bytes, open_binary

# Kinds of lines in CEDR's data files.
QUERY = 'query'
DOCUMENT = 'doc'
_QUICK_GZIP = 50_000_000  # bytes: larger .gz files are not unpacked just to count their lines
_BLOCK = 1 << 20

_Item = TypeVar('_Item', Passage, Document)


class FilesCorpus(Corpus):
    """A corpus of files, read in the order of `paths`.

    `Corpus` explains the parameters name, on_error and keep_empty.
    """

    def __init__(self, name: str, paths: Sequence[Path], on_error: str, keep_empty: bool) -> None:
        super().__init__(name, on_error, keep_empty)
        self.paths = list(paths)

    def part(self, index: int, of: int, rows: int = 1) -> Self:
        if len(self.paths) < of:
            return super().part(index, of, rows)
        part = super().part(0, 1)
        part.paths = self.paths[index::of]
        return part


class LinesCorpus(FilesCorpus):
    """A corpus of files in which a line is a passage."""

    def count_hint(self) -> int | None:
        """The number of lines; None for large .gz files."""
        packed = [path for path in self.paths if path.suffix.lower() == '.gz']
        if any(path.stat().st_size > _QUICK_GZIP for path in packed):
            return None
        lines = 0
        for path in self.paths:
            with open_binary(path) as stream:
                while block := stream.read(_BLOCK):
                    lines += block.count(b'\n')
        return self._part.share(lines)

    @abstractmethod
    def parse(self, line: str) -> Passage | None:
        """A line's passage; None for a line to ignore.

        Raises ValueError for an unusable line.
        """

    def parse_document(self, line: str) -> Document | None:
        """A line's document; None for a line to ignore.

        Raises ValueError for an unusable line.
        """
        passage = self.parse(line)
        return None if passage is None else Document(*passage)

    def _read_part(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        return self._read()

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        """Parses no line of another part."""
        for line in self._lines():
            item = _parsed(self.parse, line.raw)
            if item is not None:
                yield f'{line.path}:{line.number}', item

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        names = {path: name_in_corpus(self.name, path) for path in self.paths}
        for line in self._lines():
            item = _parsed(self.parse_document, line.raw)
            if isinstance(item, Document):
                origin = Origin(names[line.path], record=line.number)
                item = replace(item, origin=origin)
            if item is not None:
                yield f'{line.path}:{line.number}', item

    def _lines(self) -> Iterator[_Line]:
        """The lines of this part."""
        rows = count()
        in_parts = self._part.of > 1
        for path in self.paths:
            with open_binary(path) as stream:
                for number, raw in numbered_bytes(stream):
                    if not raw or raw.isspace():
                        continue
                    if not in_parts or self._part.takes(next(rows)):
                        yield _Line(path, number, raw)


class _Line(NamedTuple):
    """A line of a file, with its number from 1."""

    path: Path
    number: int
    raw: bytes


def _parsed(parse: Callable[[str], _Item | None], raw: bytes) -> _Item | BadPassage | None:
    try:
        return parse(decoded_line(raw))
    except ValueError as error:
        return BadPassage(str(error))


class JsonlCorpus(LinesCorpus):
    """JSON lines as Pyserini reads them.

    `id` (or `_id`, `docid`) and `contents`, or text fields joined by a space. `fields` are the
    fields of the text; by default `contents`, otherwise `title` and `text`.
    """

    fields: Sequence[str] = ()

    def parse(self, line: str) -> Passage:
        record = _parse_record(line)
        docid = identifier_of(record, DOCID_KEYS)
        texts = [record[field] for field in self._text_fields(record, docid)]
        return Passage(docid, ' '.join(text for text in texts if text))

    def parse_document(self, line: str) -> Document:
        """A line's document: a `title` apart from the text, other keys as fields.

        Raises ValueError for an unusable line.
        """
        record = _parse_record(line)
        docid = identifier_of(record, DOCID_KEYS)
        text_fields = self._text_fields(record, docid)
        if not self.fields and len(text_fields) > 1:
            text_fields = [name for name in text_fields if name != 'title']
        return document_of_record(docid, record, text_fields, first_key(record, DOCID_KEYS))

    def _text_fields(self, record: Mapping[str, Any], docid: str) -> Sequence[str]:
        """The fields of the record's text.

        Raises BadPassage for a field that is not text, or no field.
        """
        fields = list(self.fields)
        if not fields:
            usual_fields = ('contents',) if 'contents' in record else ('title', 'text')
            fields = [field for field in usual_fields if record.get(field) is not None]
            if fields == ['title'] and 'text' not in record and _has_other_text(record):
                fields = []
        if not fields:
            raise BadPassage(
                f"no 'contents' in passage '{docid[:60]}': name the fields that hold its text"
            )
        for field in fields:
            text = record.get(field)
            if not isinstance(text, str):
                wrong = 'is missing' if text is None else 'is not text: put it in quotes'
                raise BadPassage(f"field '{field}' of passage '{docid[:60]}' {wrong}")
        return fields


def _has_other_text(record: Mapping[str, Any]) -> bool:
    """Whether a record has a text that is neither a docid nor a title."""
    return any(
        isinstance(value, str) and name not in (*DOCID_KEYS, 'title')
        for name, value in record.items()
    )


def _parse_record(line: str) -> dict[str, Any]:
    """The JSON object of a line. Raises BadPassage for any other line."""
    try:
        record = parse_json(line)
    except ValueError as error:
        raise BadPassage(f'not JSON ({error}): {line[:60]!r}') from error
    if not isinstance(record, dict):
        raise BadPassage(f'expected a JSON object on each line, found {line[:60]!r}')
    return record


class TsvCorpus(LinesCorpus):
    """MS MARCO's collection.tsv: `docid<TAB>text`."""

    def parse(self, line: str) -> Passage:
        docid, tab, text = line.partition('\t')
        if not tab:
            raise BadPassage(f"expected 'docid<TAB>text', found {line[:60]!r}")
        return Passage(docid, text)


class DataLine(NamedTuple):
    """A line of CEDR's data files."""

    kind: str  # `QUERY` or `DOCUMENT`
    identifier: str
    text: str


def is_data_line(line: str) -> bool:
    """Whether a line is one of CEDR's data files."""
    return line.startswith((f'{QUERY}\t', f'{DOCUMENT}\t')) and line.count('\t') > 1


def parse_data_line(line: str) -> DataLine:
    """A line of CEDR's data files. Raises ValueError for a line of another form."""
    if not is_data_line(line):
        raise BadPassage(
            f"expected 'query<TAB>qid<TAB>text' or 'doc<TAB>docid<TAB>text', found {line[:60]!r}"
        )
    kind, identifier, text = line.split('\t', 2)
    return DataLine(kind, identifier.strip(), text.strip())


class CedrCorpus(LinesCorpus):
    """CEDR's data files: lines `doc<TAB>docid<TAB>text`.

    Lines `query<TAB>qid<TAB>text` are passed over.
    """

    def parse(self, line: str) -> Passage | None:
        data_line = parse_data_line(line)
        if data_line.kind != DOCUMENT:
            return None
        return Passage(data_line.identifier, data_line.text)


class TrecCorpus(FilesCorpus):
    """TREC text: `<DOC> <DOCNO>…</DOCNO> … </DOC>`; other tags are dropped, their content is kept.

    Text outside of a <DOC> is refused or skipped like a bad passage.
    """

    def opened(self, path: Path) -> AbstractContextManager[IO[bytes]]:
        """A file's content."""
        return open_binary(path)

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for path in self.paths:
            with self.opened(path) as stream:
                for document in read_documents(numbered_bytes(stream)):
                    location = f'{path}:{document.line}'
                    if document.problem:
                        yield location, BadPassage(document.problem)
                    else:
                        yield location, Passage(document.docid, document.text)

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        for location, item in super()._read_documents():
            if isinstance(item, Document):
                path, _, line = location.rpartition(':')
                item = item.at_line(int(line)).in_file(name_in_corpus(self.name, Path(path)))
            yield location, item
