"""A corpus as a stream of passages, and how unusable lines are treated.

Memory grows with the corpus only by 12 to 24 bytes a passage, for the detection of duplicate
docids.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from enum import StrEnum
from typing import Any, NamedTuple, Self, TypeVar

from pyserini_repbert.data.documents import (
    DOCID_KEYS,
    TEXT_KEYS,
    Document,
    document_of_record,
)
from pyserini_repbert.data.values import has_surrogates, identifier_of, identifier_problem
from pyserini_repbert.errors import InputError

logger = logging.getLogger(__name__)


class Passage(NamedTuple):
    """A unit of retrieval: its identifier and its text (a title, where the corpus has one, leads
    the text).
    """

    docid: str
    text: str


_Item = TypeVar('_Item', Passage, Document)


class OnError(StrEnum):
    """What to do with a line that cannot be used."""

    REFUSE = 'refuse'
    SKIP = 'skip'


class BadPassage(ValueError):
    """One unusable line: raised by its parser, and in the place of its passage."""


class _SeenDocids:
    """A set of docids in 12 to 24 bytes each: open addressing over their 64-bit hashes.

    `add` returns whether the docid may have been seen; the caller has to tell a collision of hashes
    (for a million docids, of probability 3 x 10^-8) from a real duplicate.
    """

    def __init__(self) -> None:
        self._slots = array('Q', [0]) * 4096
        self._used = 0

    def add(self, docid: str) -> bool:
        if self._used * 3 > len(self._slots) * 2:
            before = self._slots
            self._slots = array('Q', [0]) * (2 * len(self._slots))
            self._used = 0
            for key in filter(None, before):
                self._insert(key)
        return self._insert((hash(docid) & 0xFFFFFFFFFFFFFFFF) or 1)

    def _insert(self, key: int) -> bool:
        slots = self._slots
        mask = len(self._slots) - 1
        position = key & mask
        while slots[position]:
            if slots[position] == key:
                return True
            position = (position + 1) & mask
        slots[position] = key
        self._used += 1
        return False


class Corpus(ABC):
    """A stream of passages that can be read again from the start.

    Subclasses yield `(place, Passage | BadPassage)`. This class owns the checks that all formats
    share: docids that a run file cannot hold, empty text, duplicate docids. It raises InputError at
    the first unusable line, or skips it.
    """

    def __init__(
        self, name: str, on_error: OnError | str = OnError.REFUSE, keep_empty: bool = False
    ) -> None:
        self.name = name  # what the user called it
        self.on_error = OnError(on_error)
        self.keep_empty = keep_empty
        self.skipped = 0  # how many passages or lines the last complete iteration left out
        self._part = (0, 1, 1)  # index, of, rows dealt out together

    def part(self, index: int, of: int, rows: int = 1) -> Self:
        """Part `index` of `of` parts, as a corpus: `rows` at a time are dealt out, or files, if
        there are as many.
        """
        part = copy(self)
        part._part = (index, of, rows)
        return part

    def _takes(self, row: int) -> bool:
        index, of, rows = self._part
        return row // rows % of == index

    def count_hint(self) -> int | None:
        """About how many passages there are, for a progress bar; None where counting would take
        long.
        """
        return None

    @abstractmethod
    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        """Yield (place, passage, or the reason why there is none); a place is 'corpus.jsonl:17'."""

    def _read_part(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        return (item for row, item in enumerate(self._read()) if self._takes(row))

    def __iter__(self) -> Iterator[Passage]:
        return self._usable(self._read_part())

    def documents(self) -> Iterator[Document]:
        """The documents, with titles and fields where the format has them."""
        return self._usable(self._read_documents())

    def _read_documents(self) -> Iterator[tuple[str, Document | BadPassage]]:
        """As `_read_part`, for documents; a format with titles or fields replaces this."""
        for place, item in self._read_part():
            if isinstance(item, Passage):
                yield place, Document(item.docid, item.text)
            else:
                yield place, item

    def _usable(self, items: Iterator[tuple[str, _Item | BadPassage]]) -> Iterator[_Item]:
        """The items that pass the checks; others are refused or skipped."""
        self.skipped = 0
        seen = _SeenDocids()
        for place, item in items:
            problem = self._problem(item)
            if problem is None and not isinstance(item, BadPassage):
                first = self._first_place(item.docid) if seen.add(item.docid) else place
                if first == place:  # also where only hashes are equal
                    yield item
                    continue
                problem = f"docid '{item.docid}' was used before, at {first}"
            if self.on_error is OnError.REFUSE:
                advice = 'mend the corpus, or skip what cannot be used'
                raise InputError(f'{place}: {problem}: {advice}', parameters=('on_error=skip',))
            self.skipped += 1
            logger.warning('%s: skipped: %s', place, problem)

    def _problem(self, item: Passage | Document | BadPassage) -> str | None:
        if isinstance(item, BadPassage):
            return str(item)
        if problem := identifier_problem(item.docid):
            return f'docid {item.docid[:60]!r} {problem}' if item.docid else 'the docid is empty'
        if has_surrogates(item.text):
            return f"passage '{item.docid}' has half of a surrogate pair, which is no character"
        if not self.keep_empty and not item.text.strip():
            return f"passage '{item.docid}' has no text"
        return None

    def _first_place(self, docid: str) -> str:
        passages = ((place, item) for place, item in self._read_part() if isinstance(item, Passage))
        return next(
            place for place, item in passages if item.docid == docid and self._problem(item) is None
        )


class GivenCorpus(Corpus):
    """Passages from Python: `Passage`s, pairs of a docid and a text, mappings, or a DataFrame.

    A mapping, and a row of a DataFrame, has the docid as `docid`, `docno`, `id` or `_id`, the text
    as `text` or `contents`, and may have a `title`, which leads the text.
    """

    def __init__(self, source: Iterable[Any]) -> None:
        super().__init__('of the passages given', keep_empty=True)
        self._source = source

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
        for values in frame.itertuples(index=False, name=None):
            yield dict(zip(names, values, strict=True))

    def _first_place(self, docid: str) -> str:
        if iter(self._source) is self._source:  # it cannot be read again
            return 'an earlier passage'
        return super()._first_place(docid)


def given_passage(item: Any) -> Passage | BadPassage:
    """The passage of an item of `GivenCorpus`, or why there is none."""
    if isinstance(item, Mapping):
        try:
            docid = identifier_of(item, DOCID_KEYS)
        except ValueError as error:
            return BadPassage(str(error))
        texts = [item.get(key) for key in TEXT_KEYS]
        text = next((text for text in texts if isinstance(text, str)), None)
        if text is None:
            return BadPassage(f"passage '{docid}' has no 'text' that is a text")
        parts = [item.get('title'), text]
        return Passage(docid, ' '.join(part for part in parts if isinstance(part, str) and part))
    is_pair = isinstance(item, (tuple, list)) and len(item) == 2
    if is_pair and all(isinstance(part, str) for part in item):
        return Passage(*item)
    return BadPassage(
        f'{ascii(item)[:60]} is no passage: a pair of texts (docid, text), or a mapping with both, '
        'was expected'
    )


def given_document(item: Any) -> Document | BadPassage:
    """The document of an item of `GivenCorpus`, or a `Document`; or why there is none.

    Other keys of a mapping, and other columns of a DataFrame, become fields.
    """
    if isinstance(item, Document):
        return item
    if not isinstance(item, Mapping):
        passage = given_passage(item)
        return Document(*passage) if isinstance(passage, Passage) else passage
    try:
        docid = identifier_of(item, DOCID_KEYS)
        text_key = next((key for key in TEXT_KEYS if isinstance(item.get(key), str)), None)
        if text_key is None:
            return BadPassage(f"document '{docid}' has no 'text' that is a text")
        docid_key = next(key for key in DOCID_KEYS if key in item)
        return document_of_record(docid, item, (text_key,), (docid_key,))
    except ValueError as error:
        return BadPassage(str(error))


def corpus_of(source: Iterable[Any], reread: bool = False) -> Corpus:
    """A corpus of what a caller gives: a `Corpus` as it is, or the passages of a `GivenCorpus`.

    With `reread`, what can be read only once is kept in memory. Raises InputError for what is no
    collection of passages, such as a text or a path.
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
