"""A corpus as a stream of passages, and how unusable lines are treated.

Memory grows with the corpus only by 12 to 24 bytes a passage, for the detection of duplicate docids.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import NamedTuple, Self

from pyserini_repbert.data.identifiers import has_surrogates, identifier_problem
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import decoded_line, numbered_bytes, open_binary

logger = logging.getLogger(__name__)


class Passage(NamedTuple):
    """A unit of retrieval: its identifier and its text (a title, where the corpus has one, leads the text)."""

    docid: str
    text: str


class OnError(StrEnum):
    """What to do with a line that cannot be used."""

    REFUSE = 'refuse'
    SKIP = 'skip'


class BadPassage(Exception):
    """Raised by a parser for one unusable line."""


class _SeenDocids:
    """A set of docids in 12 to 24 bytes each: open addressing over their 64-bit hashes.

    `add` returns whether the docid may have been seen; the caller has to tell a collision of hashes (for a million
    docids, of probability 3 x 10^-8) from a real duplicate.
    """

    def __init__(self) -> None:
        self._slots = array('Q', bytes(8 << 12))
        self._used = 0

    def add(self, docid: str) -> bool:
        if self._used * 3 > len(self._slots) * 2:
            before, self._slots, self._used = self._slots, array('Q', bytes(16 * len(self._slots))), 0
            for key in filter(None, before):
                self._insert(key)
        return self._insert((hash(docid) & 0xFFFFFFFFFFFFFFFF) or 1)

    def _insert(self, key: int) -> bool:
        slots, mask = self._slots, len(self._slots) - 1
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

    Subclasses yield `(place, Passage | BadPassage)`; this class owns the checks that all formats share: docids that a
    run file cannot hold, empty text, duplicate docids; and it refuses or skips unusable lines.

    Attributes
    ----------
    name : what the user called it
    skipped : how many passages or lines the last complete iteration left out
    advice, parameters : what errors advise to do about an unusable line, and the parameters that they name
    """

    advice = 'mend the corpus, or skip what cannot be used'
    parameters: tuple[str, ...] = ('on_error=skip',)

    def __init__(self, name: str, on_error: OnError | str = OnError.REFUSE, keep_empty: bool = False) -> None:
        self.name = name
        self.on_error = OnError(on_error)
        self.keep_empty = keep_empty
        self.skipped = 0
        self._rows = (0, 1)  # which rows: those with number % second == first

    def part(self, index: int, of: int) -> Self:
        """Part `index` of `of` parts, as a corpus: rows dealt out in turn, or files, where there are as many."""
        part = copy(self)
        part._rows = (index, of)
        return part

    def _takes(self, row: int) -> bool:
        return row % self._rows[1] == self._rows[0]

    def count_hint(self) -> int | None:
        """About how many passages there are, for a progress bar; None where counting would take long."""
        return None

    @abstractmethod
    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        """Yield (place, passage, or the reason why there is none); a place is 'corpus.jsonl:17'."""

    def _read_rows(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        """What `_read` yields, of this part's rows."""
        return (item for row, item in enumerate(self._read()) if self._takes(row))

    def __iter__(self) -> Iterator[Passage]:
        return (passage for _, passage in self.placed())

    def placed(self) -> Iterator[tuple[str, Passage]]:
        """(place, passage) of each passage; a place is 'corpus.jsonl:17'.

        Raises InputError at the first unusable line, unless such lines are skipped.
        """
        self.skipped = 0
        seen = _SeenDocids()
        repeated: dict[str, str] = {}
        for place, item in self._read_rows():
            problem = self._problem(item)
            if problem is None and isinstance(item, Passage):
                if not seen.add(item.docid):
                    yield place, item
                    continue
                if item.docid not in repeated:
                    repeated[item.docid] = self._first_place(item.docid)
                if repeated[item.docid] == place:  # a collision of hashes
                    yield place, item
                    continue
                problem = f"docid '{item.docid}' was used before, at {repeated[item.docid]}"
            if self.on_error is OnError.REFUSE:
                raise InputError(f'{place}: {problem}: {self.advice}', parameters=self.parameters)
            self.skipped += 1
            logger.warning('%s: skipped: %s', place, problem)

    def _problem(self, item: Passage | BadPassage) -> str | None:
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
        passages = ((place, item) for place, item in self._read_rows() if isinstance(item, Passage))
        return next(place for place, item in passages if item.docid == docid and self._problem(item) is None)


def parsed_files(
    paths: Iterable[Path], parse: Callable[[str], Passage | None], takes: Callable[[int], bool] = lambda row: True
) -> Iterator[tuple[str, Passage | BadPassage]]:
    """`parsed_lines` of several files, one after the other.

    Parameters
    ----------
    takes : whether the line of this number, from 0 over all files and without blank ones, is wanted
    """
    rows = count()
    for path in paths:
        with open_binary(path) as stream:
            lines = ((n, raw) for n, raw in numbered_bytes(stream) if raw and not raw.isspace() and takes(next(rows)))
            yield from parsed_lines(path, lines, parse)


def parsed_lines(
    path: Path, lines: Iterable[tuple[int, bytes]], parse: Callable[[str], Passage | None]
) -> Iterator[tuple[str, Passage | BadPassage]]:
    """(place, passage or the reason why there is none) of each line of a file that is not blank.

    Parameters
    ----------
    lines : (number from 1, line)
    parse : a line's passage, or None for a line to ignore; raises BadPassage or ValueError for an unusable line
    """
    for number, raw in lines:
        if not raw or raw.isspace():
            continue
        found: Passage | BadPassage | None
        try:
            found = parse(decoded_line(raw))
        except (BadPassage, ValueError) as error:
            found = BadPassage(str(error))
        if found is not None:
            yield f'{path}:{number}', found


class FilesCorpus(Corpus):
    """A corpus of files, read in the order of `paths`."""

    def __init__(
        self, name: str, paths: Sequence[Path], on_error: OnError | str = OnError.REFUSE, keep_empty: bool = False
    ) -> None:
        super().__init__(name, on_error, keep_empty)
        self.paths = list(paths)

    def part(self, index: int, of: int) -> Self:
        if len(self.paths) < of:
            return super().part(index, of)
        part = copy(self)
        part.paths = self.paths[index::of]
        return part
