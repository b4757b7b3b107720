"""Corpora, streamed: JSON lines, TSV, TREC text, HTML, the data files of CEDR, ir_datasets; and text by docid.

A corpus is read once, passage by passage, in memory that does not grow with it (but for eight bytes a passage, which
find duplicate docids). Every line that cannot be used is either refused or skipped and counted, with file and line.
"""

from __future__ import annotations

import gzip
import html
import json
import logging
import re
import tarfile
import zlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from pyserini_repbert.errors import InputError, MissingDependencyError
from pyserini_repbert.files import StrPath, existing_file, open_binary

logger = logging.getLogger(__name__)

# A comment, or '<' with a letter, '/', '!' or '?' after it, as HTML has it: the 'm < n' of an abstract is text.
_TAG = re.compile(r'<!--.*?-->|<[a-zA-Z/!?][^>]*>', re.DOTALL)

_QUICK_GZIP = 50_000_000  # bytes that are unpacked just to count their lines


class Passage(NamedTuple):
    """A unit of retrieval: its identifier and its text (a title, where the corpus has one, leads the text)."""

    docid: str
    text: str


class OnError(StrEnum):
    """What to do with a line that cannot be used."""

    REFUSE = 'refuse'
    SKIP = 'skip'


class CorpusFormat(StrEnum):
    """The formats that `open_corpus` knows."""

    JSONL = 'jsonl'
    TSV = 'tsv'
    TREC = 'trec'
    CEDR = 'cedr'
    HTML = 'html'
    IR_DATASETS = 'ir_datasets'


class PassageTexts(Protocol):
    """Anything that gives passage text by docid: a bundle with text, a Lucene index, a corpus file."""

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order asked for; None for a docid that is not there."""


class BadPassage(Exception):
    """Raised by a parser for one unusable line."""


class _SeenDocids:
    """A set of docids in 8 to 16 bytes each: open addressing over their 64-bit hashes.

    `add` answers whether the docid may have been seen; a clash of hashes (one in 10^12 for a million docids) has to be
    told from a real duplicate by its caller.
    """

    def __init__(self) -> None:
        self._slots = array('Q', bytes(8 << 12))
        self._used = 0

    def add(self, docid: str) -> bool:
        slots = self._slots
        key = (hash(docid) & 0xFFFFFFFFFFFFFFFF) or 1
        mask = len(slots) - 1
        position = key & mask
        while slots[position]:
            if slots[position] == key:
                return True
            position = (position + 1) & mask
        slots[position] = key
        self._used += 1
        if self._used * 3 > len(slots) * 2:
            self._grow()
        return False

    def _grow(self) -> None:
        old = self._slots
        self._slots = array('Q', bytes(16 * len(old)))
        mask = len(self._slots) - 1
        for key in old:
            if key:
                position = key & mask
                while self._slots[position]:
                    position = (position + 1) & mask
                self._slots[position] = key


class Corpus(ABC):
    """A stream of passages that can be read again from the start.

    Subclasses yield `(place, Passage | BadPassage)`; this class owns the checks that all formats share: an empty docid,
    white space in a docid, empty text, duplicate docids, and what becomes of a line that cannot be used.

    Attributes
    ----------
    name : what the user called it
    skipped : how many lines the last complete iteration left out
    """

    def __init__(self, name: str, on_error: OnError | str = OnError.REFUSE, keep_empty: bool = False) -> None:
        self.name = name
        self.on_error = OnError(on_error)
        self.keep_empty = keep_empty
        self.skipped = 0

    def count_hint(self) -> int | None:
        """About how many passages there are, for a progress bar; None where it would take long to know."""
        return None

    @abstractmethod
    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        """Yield each passage, or why there is none, with its place ('corpus.jsonl:17')."""

    def __iter__(self) -> Iterator[Passage]:
        self.skipped = 0
        seen = _SeenDocids()
        repeated: dict[str, str] = {}
        for place, item in self._read():
            problem = self._problem(item)
            if problem is None and isinstance(item, Passage):
                if not seen.add(item.docid):
                    yield item
                    continue
                if item.docid not in repeated:
                    repeated[item.docid] = self._first_place(item.docid)
                if repeated[item.docid] == place:  # two docids with one hash
                    yield item
                    continue
                problem = f"docid '{item.docid}' was used before, at {repeated[item.docid]}"
            if self.on_error is OnError.REFUSE:
                raise InputError(f'{place}: {problem}: mend the corpus, or pass --on-error skip')
            self.skipped += 1
            logger.warning('%s: skipped: %s', place, problem)

    def _problem(self, item: Passage | BadPassage) -> str | None:
        if isinstance(item, BadPassage):
            return str(item)
        if not item.docid:
            return 'the docid is empty'
        if len(item.docid.split()) != 1 or item.docid != item.docid.strip():
            return f'docid {item.docid!r} contains white space, which run files cannot hold'
        if not self.keep_empty and not item.text.strip():
            return f"passage '{item.docid}' has no text"
        return None

    def _first_place(self, docid: str) -> str:
        for place, item in self._read():
            if isinstance(item, Passage) and item.docid == docid and self._problem(item) is None:
                return place
        raise AssertionError('unreachable: the docid was just read')


class _LinesCorpus(Corpus):
    """A corpus of files in which a line is a passage."""

    def __init__(self, name: str, paths: Sequence[Path], **options: bool | str) -> None:
        super().__init__(name, **options)  # type: ignore[arg-type]
        self.paths = list(paths)

    def count_hint(self) -> int | None:
        """The number of lines, where they can be counted in a few seconds."""
        if any(path.suffix == '.gz' and path.stat().st_size > _QUICK_GZIP for path in self.paths):
            return None
        lines = 0
        for path in self.paths:
            with open_binary(path) as stream:
                lines += sum(block.count(b'\n') for block in iter(lambda: stream.read(1 << 20), b''))
        return lines

    @abstractmethod
    def parse(self, line: str) -> Passage:
        """One line's passage; raises `BadPassage` or ValueError, KeyError where there is none."""

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for path in self.paths:
            with open_binary(path) as stream:
                for number, raw in enumerate(stream, 1):
                    if raw.isspace():
                        continue
                    place = f'{path}:{number}'
                    try:
                        yield place, self.parse(raw.decode('utf-8').rstrip('\r\n'))
                    except UnicodeDecodeError as error:
                        yield place, BadPassage(f'not valid UTF-8 ({error.reason})')
                    except BadPassage as error:
                        yield place, error


class JsonlCorpus(_LinesCorpus):
    """JSON lines as Pyserini reads them: `id` (or `_id`, `docid`) and `contents`, or text fields joined by a space."""

    def __init__(self, name: str, paths: Sequence[Path], fields: Sequence[str] = (), **options: bool | str) -> None:
        super().__init__(name, paths, **options)
        self.fields = tuple(fields)

    def parse(self, line: str) -> Passage:
        try:
            record = json.loads(line)
        except ValueError as error:
            raise BadPassage(f'not JSON ({error}): {line[:60]!r}') from error
        if not isinstance(record, dict):
            raise BadPassage(f'expected a JSON object, found {line[:60]!r}')
        docid = next((record[key] for key in ('id', '_id', 'docid') if key in record), None)
        if docid is None or isinstance(docid, (dict, list)):
            raise BadPassage(f"no 'id' in {line[:60]!r}")
        fields = self.fields or (('contents',) if 'contents' in record else ('title', 'text'))
        parts = [record.get(field) for field in fields]
        if self.fields and None in parts:
            raise BadPassage(f"no field '{self.fields[parts.index(None)]}' in passage '{docid}'")
        texts = [part for part in parts if isinstance(part, str)]
        if not texts:
            raise BadPassage(f"no 'contents' in passage '{docid}': name the text fields with --fields")
        return Passage(str(docid), ' '.join(text for text in texts if text))


class TsvCorpus(_LinesCorpus):
    """MS MARCO's collection.tsv: `docid<TAB>text`."""

    def parse(self, line: str) -> Passage:
        docid, tab, text = line.partition('\t')
        if not tab:
            raise BadPassage(f"expected 'docid<TAB>text', found {line[:60]!r}")
        return Passage(docid, text)


class TrecCorpus(Corpus):
    """TREC text: `<DOC> <DOCNO>…</DOCNO> … </DOC>`; other tags are dropped, their content is kept."""

    def __init__(self, name: str, paths: Sequence[Path], **options: bool | str) -> None:
        super().__init__(name, **options)  # type: ignore[arg-type]
        self.paths = list(paths)

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for path in self.paths:
            lines: list[bytes] = []
            start = 0
            with open_binary(path) as stream:
                for number, raw in enumerate(stream, 1):
                    opening = raw.lstrip()[:5].upper() == b'<DOC>'
                    if raw.upper().count(b'<DOC>') > opening:
                        yield f'{path}:{number}', BadPassage('<DOC> inside a line: start a line with it')
                    if opening and lines:
                        yield f'{path}:{start}', BadPassage('<DOC> without </DOC>')
                        lines = []
                    if opening or lines:
                        start = start if lines else number
                        lines.append(raw)
                        if b'</DOC>' in raw.upper():
                            yield f'{path}:{start}', self._parse(b''.join(lines))
                            lines = []
            if lines:
                yield f'{path}:{start}', BadPassage('<DOC> without </DOC>')

    @staticmethod
    def _parse(raw: bytes) -> Passage | BadPassage:
        try:
            document = raw.decode('utf-8')
        except UnicodeDecodeError as error:
            return BadPassage(f'not valid UTF-8 ({error.reason})')
        number = re.search(r'<DOCNO>\s*(.*?)\s*</DOCNO>', document, re.DOTALL | re.IGNORECASE)
        if number is None:
            return BadPassage('no <DOCNO>')
        rest = document[: number.start()] + ' ' + document[number.end() :]
        return Passage(number.group(1), ' '.join(_TAG.sub(' ', rest).split()))


class HtmlCorpus(Corpus):
    """A folder or .tar.gz of HTML files, one a passage, named by its file (as CACM for Anserini's HtmlCollection)."""

    def __init__(self, name: str, path: Path, **options: bool | str) -> None:
        super().__init__(name, **options)  # type: ignore[arg-type]
        self.path = path

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for file_name, raw in self._files():
            place = f'{self.path}:{file_name}'
            text = ' '.join(html.unescape(_TAG.sub(' ', raw.decode('utf-8', 'replace'))).split())
            yield place, Passage(Path(file_name).name.removesuffix('.html'), text)

    def _files(self) -> Iterator[tuple[str, bytes]]:
        if self.path.is_dir():
            for file in sorted(self.path.rglob('*.html')):
                yield str(file.relative_to(self.path)), file.read_bytes()
            return
        try:
            with tarfile.open(self.path) as archive:
                for member in archive:
                    stream = archive.extractfile(member) if member.isfile() else None
                    if stream is not None and member.name.endswith('.html'):
                        yield member.name, stream.read()
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f'{self.path} is not a whole tar archive ({error}): fetch it again') from error


class IrDatasetsCorpus(Corpus):
    """The documents of an ir_datasets id ('beir/scifact'); their default text."""

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        try:
            import ir_datasets
        except ImportError as error:
            raise MissingDependencyError.of(
                'ir_datasets', f"corpus '{self.name}'", "'pyserini-repbert[datasets]'"
            ) from error
        try:
            documents = ir_datasets.load(self.name).docs_iter()
        except KeyError as error:
            raise InputError(f"ir_datasets has no data set '{self.name}': see https://ir-datasets.com") from error
        for number, document in enumerate(documents, 1):
            yield f'{self.name}:{number}', Passage(document.doc_id, document.default_text())


def open_corpus(
    source: StrPath,
    fmt: str = 'auto',
    fields: Iterable[str] = (),
    on_error: str = OnError.REFUSE,
    keep_empty: bool = False,
) -> Corpus:
    """A corpus file, a folder of such files, or `ir_datasets:ID`.

    Parameters
    ----------
    fmt : a CorpusFormat, or 'auto': by the file's name, then by its first character
    fields : for JSON lines: the text fields, joined by a space (default: `contents`, else `title` and `text`)
    on_error : 'refuse' raises InputError at the first line that cannot be used, 'skip' warns and counts
    keep_empty : passages without text are passages, not errors

    Raises
    ------
    InputError
        for a path that does not exist, an unknown format, a folder without corpus files
    """
    options: dict[str, bool | str] = {'on_error': on_error, 'keep_empty': keep_empty}
    name = str(source)
    if fmt == CorpusFormat.IR_DATASETS or name.startswith('ir_datasets:'):
        return IrDatasetsCorpus(name.removeprefix('ir_datasets:'), **options)  # type: ignore[arg-type]
    path = Path(source)
    if not path.exists():
        raise InputError(f'corpus {path} does not exist: give a file, a folder, or ir_datasets:ID')
    paths = _corpus_files(path)
    if fmt == 'auto':
        fmt = _guess_format(path, paths)
    if fmt == CorpusFormat.HTML:
        return HtmlCorpus(name, path, **options)
    if not paths:
        raise InputError(f'folder {path} holds no corpus files (.json, .jsonl, .tsv, .trec, .txt, each also .gz)')
    if fmt == CorpusFormat.JSONL:
        return JsonlCorpus(name, paths, tuple(fields), **options)
    if fmt == CorpusFormat.TSV:
        return TsvCorpus(name, paths, **options)
    if fmt == CorpusFormat.TREC:
        return TrecCorpus(name, paths, **options)
    if fmt == CorpusFormat.CEDR:
        from pyserini_repbert.cedr_data import CedrCorpus

        return CedrCorpus(name, paths, **options)  # type: ignore[arg-type]
    raise InputError(f"corpus format '{fmt}' is unknown: expected auto, {', '.join(CorpusFormat)}")


def _corpus_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    known = ('.json', '.jsonl', '.tsv', '.trec', '.txt')
    return sorted(file for file in path.rglob('*') if file.is_file() and file.name.removesuffix('.gz').endswith(known))


def _guess_format(path: Path, paths: list[Path]) -> str:
    if path.name.endswith(('.tar.gz', '.tgz', '.tar')) or (path.is_dir() and not paths and any(path.rglob('*.html'))):
        return CorpusFormat.HTML
    if not paths:
        return CorpusFormat.JSONL
    with open_binary(existing_file(paths[0], 'corpus')) as stream:
        start = stream.read(4096).lstrip()
    if start[:1] == b'{':
        return CorpusFormat.JSONL
    if re.match(rb'(doc|query)\t[^\t\n]*\t', start):
        return CorpusFormat.CEDR
    return CorpusFormat.TREC if start[:5].upper() == b'<DOC>' else CorpusFormat.TSV


class CorpusTexts:
    """Passage text by docid from a corpus file: one pass, keeping only the docids that will be asked for."""

    def __init__(self, corpus: Iterable[Passage], wanted: Iterable[str]) -> None:
        needed = set(wanted)
        self._texts = {passage.docid: passage.text for passage in corpus if passage.docid in needed}

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order asked for; None for a docid that the corpus lacks."""
        return [self._texts.get(docid) for docid in docids]
