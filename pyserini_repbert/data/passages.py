"""What a passage is, how a corpus of passages is read, and passage text by docid.

A corpus is a stream: memory does not grow with it. Files of passages are opened in
`corpus_files.py`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from pyserini_repbert.data.documents import (
    DOCID_KEYS,
    TEXT_KEYS,
    Document,
    document_of_record,
    plain_fields,
    size_problem,
)
from pyserini_repbert.data.file_records import FileRecords
from pyserini_repbert.data.readings import Reading
from pyserini_repbert.data.seen_docids import SeenDocids
from pyserini_repbert.data.unread_files import UnreadFiles
from pyserini_repbert.data.values import (
    HALF_PAIR,
    Choice,
    first_key,
    has_surrogates,
    identifier_of,
    identifier_problem,
)
from pyserini_repbert.errors import InputError

logger = logging.getLogger(__name__)


class Passage(NamedTuple):
    """A unit of retrieval: its identifier and its text, which begins with the title if there is
    one.
    """

    docid: str
    text: str


_Item = TypeVar('_Item', Passage, Document)


class OnError(Choice, what='on_error'):
    """What to do with a line that cannot be used."""

    REFUSE = 'refuse'
    SKIP = 'skip'


class BadFiles(Choice, what='bad_files'):
    """What to do with a file of a folder that cannot be read as a whole.

    `PART`: what can be read is read, and a line that cannot be used is as `OnError` says. `KEEP`:
    nothing of the file is read, and it is named, so that its documents stay as they were. `REFUSE`:
    it is an error.
    """

    PART = 'part'
    KEEP = 'keep'
    REFUSE = 'refuse'


class BadPassage(ValueError):
    """One unusable line: its parser raises it, and a corpus has it instead of the passage."""


class Corpus(ABC):
    """A stream of passages that can be read again from the start.

    Subclasses yield `(location, Passage | BadPassage)`. This class owns the checks that all formats
    share: docids that a run file cannot hold, empty text, duplicate docids. It raises InputError at
    the first unusable line, or skips it.

    Attributes
    ----------
    name : what the user called it
    on_error, keep_empty : as in `names.corpora.open_corpus`
    skipped : how many passages or lines the last complete iteration left out
    unread : the files of a folder that are not read; those that could not be are known once the
        corpus was read
    encodings : the encodings of files that are not in Unicode, as far as they were read
    reading : how the files are read, if that could differ: it is stored with a source
    reopen : gives the corpus, read in another way, except for what the caller chose; None: there is
        one way
    records : of the files of a corpus; files that are unchanged are then passed over by
        `documents`; None: all files are read
    by_file : gives the corpus for a collection that is kept up to date: a file that cannot be read
        as a whole is not read at all (`BadFiles`); None: it is not one of several files
    """

    @property
    def can_be_read_again(self) -> bool:
        """Whether a second iteration gives the same passages."""
        return True

    def __init__(
        self, name: str, on_error: OnError | str = OnError.REFUSE, keep_empty: bool = False
    ) -> None:
        self.name = name
        self.on_error = OnError(on_error)
        self.keep_empty = keep_empty
        self.skipped = 0
        self.unread = UnreadFiles()
        self.encodings: dict[Path, str] = {}
        self.reading = Reading()
        self.reopen: Callable[[Reading], Corpus] | None = None
        self.by_file: Callable[[BadFiles], Corpus] | None = None
        self.records: FileRecords | None = None
        self._part = _Part()

    def part(self, index: int, of: int, rows: int = 1) -> Self:
        """Part `index` of `of` parts, as a corpus.

        `rows` passages at a time are dealt out to the parts, or files, if there are as many.
        """
        part = copy(self)
        part._part = _Part(index, of, rows)
        return part

    def count_hint(self) -> int | None:
        """About how many passages there are, for a progress bar.

        None if counting would take long.
        """
        return None

    @abstractmethod
    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        """Yield (location, passage or the reason why there is none).

        A location is 'corpus.jsonl:17'.
        """

    def _read_part(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        return (item for row, item in enumerate(self._read()) if self._part.takes(row))

    def __iter__(self) -> Iterator[Passage]:
        return self._usable(self._read_part())

    def documents(self) -> Iterator[Document]:
        """The documents, with titles and fields where the format has them."""
        return self._usable(self._read_documents())

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        """As `_read_part`, for documents; a format with titles or fields replaces this."""
        for location, item in self._read_part():
            if isinstance(item, Passage):
                yield location, Document(item.docid, item.text)
            else:
                yield location, item

    def as_stored(self, reading: Reading) -> Corpus:
        """The corpus, read as it was before, except for what the caller chose."""
        if self.reopen is None or reading in (self.reading, Reading()):
            return self
        return self.reopen(reading)

    def _usable(self, items: Iterator[tuple[str, _Item | BadPassage]]) -> Iterator[_Item]:
        """The items that pass the checks; others are refused or skipped."""
        self.skipped = 0
        seen = SeenDocids()
        for location, item in items:
            if isinstance(item, BadPassage):
                self._leave_out(location, str(item))
                continue
            problem = self._problem(item)
            if problem is None and seen.add(item.docid):
                problem = self._repetition(location, item)
            if problem:
                self._leave_out(location, problem)
            else:
                yield item

    def _problem(self, passage: Passage | Document) -> str | None:
        """Why a passage cannot be used; None if it can."""
        if not passage.docid:
            return 'the docid is empty'
        problem = identifier_problem(passage.docid)
        if problem:
            return f'docid {passage.docid[:60]!r} {problem}'
        if has_surrogates(passage.text) or has_surrogates(getattr(passage, 'title', '')):
            return f"passage '{passage.docid}' has {HALF_PAIR}"
        if not self.keep_empty and not passage.text.strip():
            return f"passage '{passage.docid}' has no text"
        if isinstance(passage, Document):
            size = size_problem(passage)
            return f"document '{passage.docid[:60]}' {size}" if size else None
        return None

    def _repetition(self, location: str, passage: Passage | Document) -> str | None:
        """Where a docid that seems to have been used before was, in words; None if it was not."""
        first = self._first_location(passage.docid)
        if first == location:
            # Only the hashes of two docids are equal.
            return None
        return f"docid '{passage.docid}' was used before, at {first}"

    def _first_location(self, docid: str) -> str:
        """Where the corpus has a docid for the first time. Reads it again."""
        for location, item in self._read_part():
            if isinstance(item, BadPassage) or item.docid != docid:
                continue
            if self._problem(item) is None:
                return location
        raise InputError(f"corpus {self.name} changed while it was read: docid '{docid}' is gone")

    def _leave_out(self, location: str, problem: str) -> None:
        """Skip an unusable line, or raise InputError."""
        if self.on_error is OnError.REFUSE:
            advice = 'fix the corpus, or skip what cannot be used'
            raise InputError(f'{location}: {problem}: {advice}', parameters=('on_error=skip',))
        self.skipped += 1
        logger.warning('%s: skipped: %s', location, problem)


@dataclass(frozen=True)
class _Part:
    """Which rows of a corpus a part takes: of every `of` runs of `rows` rows, number `index`."""

    index: int = 0
    of: int = 1
    rows: int = 1

    def takes(self, row: int) -> bool:
        return row // self.rows % self.of == self.index

    def share(self, total: int) -> int:
        """How many of `total` rows or files the part takes, rounded up."""
        return -(-total // self.of)


class GivenCorpus(Corpus):
    """Passages from Python: `Passage`s, pairs of a docid and a text, mappings, or a DataFrame.

    The DataFrame is of pandas or of polars.

    A mapping, and a row of a DataFrame, has the docid as `id`, `_id`, `docid` or `docno`, the text
    as `text` or `contents`, and may have a `title`, which leads the text.
    """

    def __init__(self, source: Iterable[Any]) -> None:
        super().__init__('of the passages given', keep_empty=True)
        self._source = source

    @property
    def can_be_read_again(self) -> bool:
        return iter(self._source) is not self._source

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for number, item in enumerate(self._rows(), 1):
            yield f'passage {number}', given_passage(item)

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        for number, item in enumerate(self._rows(), 1):
            yield f'document {number}', given_document(item)

    def _rows(self) -> Iterable[Any]:
        rows = self._source
        if hasattr(rows, 'to_dict') and hasattr(rows, 'columns'):
            return self._rows_of_frame(rows)
        return rows

    def _rows_of_frame(self, frame: Any) -> Iterator[dict[str, Any]]:
        names = [str(name) for name in frame.columns]
        is_polars = hasattr(frame, 'iter_rows')
        rows = frame.iter_rows() if is_polars else frame.itertuples(index=False, name=None)
        for values in rows:
            yield dict(zip(names, values, strict=True))

    def _first_location(self, docid: str) -> str:
        if not self.can_be_read_again:
            return 'an earlier passage'
        return super()._first_location(docid)


def given_passage(item: Any) -> Passage | BadPassage:
    """The passage of an item of `GivenCorpus`, or why there is none."""
    if isinstance(item, Mapping):
        return _passage_of_mapping(item)
    is_pair = isinstance(item, (tuple, list)) and len(item) == 2
    if is_pair and all(isinstance(part, str) for part in item):
        return Passage(*item)
    return BadPassage(
        f'{ascii(item)[:60]} is not a passage: expected a pair of texts (docid, text), or a '
        'mapping with both'
    )


def _passage_of_mapping(item: Mapping[str, Any]) -> Passage | BadPassage:
    try:
        docid = identifier_of(item, DOCID_KEYS)
    except ValueError as error:
        return BadPassage(str(error))
    text = item.get('text')
    if not isinstance(text, str):
        text = item.get('contents')
    if not isinstance(text, str):
        return BadPassage(f"passage '{docid}' has no 'text' that is a text")
    parts = [item.get('title'), text]
    return Passage(docid, ' '.join(part for part in parts if isinstance(part, str) and part))


def given_document(item: Any) -> Document | BadPassage:
    """The document of an item of `GivenCorpus`, or a `Document`; or why there is none.

    Other keys of a mapping, and other columns of a DataFrame, become fields.
    """
    try:
        if isinstance(item, Document):
            return replace(item, fields=plain_fields(item.fields))
        if not isinstance(item, Mapping):
            passage = given_passage(item)
            return Document(*passage) if isinstance(passage, Passage) else passage
        docid = identifier_of(item, DOCID_KEYS)
        text_key = next((key for key in TEXT_KEYS if isinstance(item.get(key), str)), None)
        if text_key is None:
            return BadPassage(f"document '{docid}' has no 'text' that is a text")
        return document_of_record(docid, item, (text_key,), first_key(item, DOCID_KEYS))
    except ValueError as error:
        return BadPassage(str(error))


def corpus_of(source: Iterable[Any], reread: bool = False) -> Corpus:
    """The corpus that a caller gives: a `Corpus`, which is returned, or the passages of a
    `GivenCorpus`.

    With `reread`, what can be read only once is kept in memory. Raises InputError for anything
    else, such as text or a path.
    """
    if isinstance(source, Corpus):
        return source
    if isinstance(source, (str, bytes)) or not isinstance(source, Iterable):
        raise InputError(
            f'passages were expected, {ascii(source)[:60]} was given: open a file with '
            '`names.corpora.open_corpus`'
        )
    if reread and iter(source) is source:
        source = list(source)
    return GivenCorpus(source)


class PassageTexts(Protocol):
    """What gives passage text by docid: a bundle with text, a Lucene index, a corpus file."""

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order of `docids`; None for a docid that does not exist."""


class CorpusTexts:
    """Passage text by docid from a corpus: one pass stores the texts of the `wanted` docids."""

    def __init__(self, corpus: Iterable[Passage], wanted: Iterable[str]) -> None:
        needed = set(wanted)
        self._texts = {passage.docid: passage.text for passage in corpus if passage.docid in needed}

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """The texts in the order of `docids`.

        None for a docid that the corpus lacks, and for one that was not wanted.
        """
        return [self._texts.get(docid) for docid in docids]
