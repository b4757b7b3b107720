"""Readers of the formats of corpora, a class each.

JSON lines, MS MARCO's collection.tsv, CEDR's data files, TREC text, text files, HTML.
"""

from __future__ import annotations

import tarfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, TypeVar

from pyserini_repbert.archives import open_tar, refuse_sparse
from pyserini_repbert.data.documents import DOCID_KEYS, Document, document_of_record
from pyserini_repbert.data.html_documents import document_of_html
from pyserini_repbert.data.markdown_documents import document_of_markdown, document_of_text
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.data.origins import Origin, docid_of_path, name_in_corpus
from pyserini_repbert.data.page_encodings import decode_page, read_page
from pyserini_repbert.data.passages import BadPassage, Corpus, Passage
from pyserini_repbert.data.suffixes import (
    MARKDOWN,
    PAGES,
    has_suffix,
    has_suffix_or_packed,
    without_suffix,
)
from pyserini_repbert.data.text_encodings import decode_text
from pyserini_repbert.data.trec_text import read_documents
from pyserini_repbert.data.unread_files import UnreadableFile, UnreadFile, UnreadFiles
from pyserini_repbert.data.values import first_key, identifier_of, parse_json
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.files import (
    decoded_line,
    files_below,
    numbered_bytes,
    open_binary,
)

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

    `id` (or `_id`, `docid`) and `contents`, or text fields joined by a space. `fields` are those of
    the text; by default `contents`, else `title` and `text`.
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

        Raises BadPassage for a field that is no text, or no field.
        """
        fields = list(self.fields)
        if not fields:
            usual_fields = ('contents',) if 'contents' in record else ('title', 'text')
            for field in usual_fields:
                if record.get(field) is not None:
                    fields.append(field)
            if fields == ['title'] and 'text' not in record and _has_other_text(record):
                fields = []
        if not fields:
            raise BadPassage(
                f"no 'contents' in passage '{docid[:60]}': name the fields that hold its text"
            )
        for field in fields:
            text = record.get(field)
            if not isinstance(text, str):
                wrong = 'is not there' if text is None else 'is no text: put it in quotes'
                raise BadPassage(f"field '{field}' of passage '{docid[:60]}' {wrong}")
        return fields


def _has_other_text(record: Mapping[str, Any]) -> bool:
    """Whether a record has a text that is neither a docid nor a title."""
    return any(
        isinstance(value, str) and name not in (*DOCID_KEYS, 'title')
        for name, value in record.items()
    )


def _parse_record(line: str) -> dict[str, Any]:
    """The JSON object of a line. Raises BadPassage for a line that is none."""
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


class TextCorpus(FilesCorpus):
    """Text files, Markdown among them: each is a document, whose docid is its path in the folder.

    White space and % in a path are written as in addresses: 'my notes.md' is 'my%20notes.md'.
    """

    def count_hint(self) -> int | None:
        """The number of files."""
        return self._part.share(len(self.paths))

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        return self._read_files(self.paths, self._passage)

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        paths = [path for row, path in enumerate(self.paths) if self._part.takes(row)]
        return self._read_files(paths, self._document)

    def _read_files(
        self, paths: Sequence[Path], read: Callable[[Path], _Item]
    ) -> Iterator[tuple[str, _Item | BadPassage]]:
        """What files become. A file of a folder that cannot be read is one of `unread`."""
        is_folder = Path(self.name).is_dir()
        for path in paths:
            try:
                yield str(path), read(path)
            except (ValueError, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                if is_folder:
                    self._add_unread(path, str(reason))
                elif isinstance(error, OSError):
                    raise
                else:
                    yield str(path), BadPassage(reason)

    def _add_unread(self, path: Path, reason: str) -> None:
        known = [file for file in self.unread if file.path != path]
        failed = UnreadFile.of_error(path, self._docid(path), UnreadableFile(reason))
        self.unread = UnreadFiles([*known, failed])

    def _passage(self, path: Path) -> Passage:
        """The passage of a file. Raises ValueError for one that cannot be read."""
        return Passage(self._docid(path), self._text(path).strip())

    def _document(self, path: Path) -> Document:
        """The document of a file. Raises ValueError for one that cannot be read."""
        if has_suffix_or_packed(path.name, MARKDOWN):
            name = without_suffix(path.name, MARKDOWN)
            document = document_of_markdown(self._docid(path), self._text(path), name)
        else:
            document = document_of_text(self._docid(path), self._text(path))
        return document.in_file(name_in_corpus(self.name, path))

    def _docid(self, path: Path) -> str:
        folder = Path(self.name)
        name = path.relative_to(folder).as_posix() if folder.is_dir() else path.name
        return docid_of_path(name)

    def _text(self, path: Path) -> str:
        """A file's text. Raises ValueError for bytes that are no text."""
        with open_binary(path) as stream:
            decoded = decode_text(stream.read())
        if decoded.encoding:
            self.encodings[path] = decoded.encoding
        return decoded.text


class _Page(NamedTuple):
    """A page of HTML.

    Attributes
    ----------
    docid : what it is called
    place : where it lies, for messages
    file : its path in the corpus
    raw : the file
    """

    docid: str
    place: str
    file: str
    raw: bytes


class HtmlCorpus(FilesCorpus):
    """Folders and tar archives of HTML files, each a passage, or a document with fields.

    A docid is a file's path in the folder, or its name in an archive, without .html or .htm. CACM
    comes in this form, for Anserini's HtmlCollection. White space and % are written as in
    addresses. With `main_content`, navigation, headers and footers of pages are no text.
    """

    main_content = False

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for path in self.paths:
            for page in self._pages(path):
                yield page.place, Passage(page.docid, visible_text(decode_page(page.raw)))

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        row = 0
        for path in self.paths:
            for page in self._pages(path):
                if self._part.takes(row):
                    markup = decode_page(page.raw)
                    document = document_of_html(page.docid, markup, self.main_content)
                    yield page.place, document.in_file(page.file)
                row += 1

    def _pages(self, path: Path) -> Iterator[_Page]:
        """The pages; a link in an archive leads to another of its files."""
        if path.is_dir():
            yield from self._pages_below(path)
            return
        if has_suffix_or_packed(path.name, PAGES):
            docid = docid_of_path(without_suffix(path.name, PAGES))
            yield _Page(docid, str(path), name_in_corpus(self.name, path), read_page(path))
            return
        try:
            with open_tar(path) as archive:
                yield from _pages_in(archive, path)
        except DamagedFileError as error:
            raise InputError(str(error)) from error

    def _pages_below(self, folder: Path) -> Iterator[_Page]:
        """The pages of a folder; one of two with the same docid keeps its suffix."""
        names = [file.relative_to(folder).as_posix() for file in files_below(folder)]
        pages = [name for name in names if has_suffix_or_packed(name, PAGES)]
        pages_by_docid = Counter(without_suffix(name, PAGES) for name in pages)
        for name in pages:
            docid = without_suffix(name, PAGES)
            if pages_by_docid[docid] > 1 and not name.endswith(PAGES[0]):
                docid = name
            raw = read_page(folder / name)
            yield _Page(docid_of_path(docid), f'{folder}:{name}', name, raw)


def _pages_in(archive: tarfile.TarFile, path: Path) -> Iterator[_Page]:
    for member in archive:
        if not has_suffix(member.name, PAGES):
            continue
        refuse_sparse(member, path)
        stream = archive.extractfile(member)
        if stream is not None:
            docid = docid_of_path(without_suffix(Path(member.name).name, PAGES))
            yield _Page(docid, f'{path}:{member.name}', member.name, stream.read())
