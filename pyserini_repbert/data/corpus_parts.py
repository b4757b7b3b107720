"""A corpus cut by bytes into parts of a number of passages, each of which can be read alone."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pyserini_repbert.data.corpus import BadPassage, Corpus, OnError, Passage, parsed_lines
from pyserini_repbert.data.corpus_formats import LinesCorpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import BYTE_ORDER_MARK

_TOGETHER = 4096  # lines read at a time
_BLOCK = 1 << 20
_STRICT = ConfigDict(strict=True, extra='forbid')
_Number = Annotated[int, Field(ge=0, le=2**48)]


@dataclass(frozen=True, config=_STRICT)
class Span:
    """Consecutive whole lines of a file.

    Attributes
    ----------
    file : the position of the file in the corpus, from 0
    start, end : offsets in bytes of the first byte, and of the one after the last
    line : the number of the first line, from 1
    left_out : the numbers of the lines that were skipped as unusable; blank lines are not listed
    """

    file: _Number
    start: _Number
    end: _Number
    line: Annotated[int, Field(ge=1, le=2**48)]
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True, config=_STRICT)
class Cut:
    """A part of a corpus: its number of passages, the sha256 of its bytes, and the spans that hold them."""

    count: Annotated[int, Field(ge=1, le=2**48)]
    sha256: str
    spans: tuple[Span, ...]


def check_can_be_cut(corpus: Corpus) -> LinesCorpus:
    """The corpus, if it can be read from a byte offset: plain JSON lines or TSV. Raises InputError if not."""
    if not isinstance(corpus, LinesCorpus):
        raise InputError(
            f'corpus {corpus.name} cannot be read from its middle, as JSON lines or TSV can: convert it, or encode it '
            'in parts, each of which reads it from its beginning',
            parameters=('shard',),
        )
    if packed := [path for path in corpus.paths if path.suffix == '.gz']:
        raise InputError(
            f'{packed[0]} is packed and cannot be read from its middle: unpack it (gunzip -k {packed[0]}), or encode '
            'in parts, each of which reads it from its beginning',
            parameters=('shard',),
        )
    return corpus


def cut(corpus: LinesCorpus, size: int, on_progress: Callable[[int], object] | None = None) -> Iterator[Cut]:
    """The corpus in cuts of `size` passages; the last one may be smaller.

    Where unusable lines are refused, lines are only counted: each that is not blank counts as a passage, and reading
    the cut finds the unusable ones. Where they are skipped, the corpus is parsed to find them.

    Parameters
    ----------
    on_progress : called with the number of bytes read since the last call
    """
    builder = _Builder(size)
    used = None if corpus.on_error is OnError.REFUSE else (place for place, _ in corpus.placed())
    following = None if used is None else next(used, None)
    for file, path in enumerate(corpus.paths):
        start, line = 0, 1
        with open(path, 'rb') as stream:
            while lines := list(itertools.islice(stream, 1 if used else min(_TOGETHER, builder.room))):
                raw = b''.join(lines)
                if line == 1:
                    lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK) or b'\n'
                passages = len(lines) - sum(map(bytes.isspace, lines))
                left_out = False
                if used is not None and passages:
                    left_out = f'{path}:{line}' != following
                    following = following if left_out else next(used, None)
                builder.add(file, start, line, raw, 0 if left_out else passages, left_out)
                start, line = start + len(raw), line + len(lines)
                if on_progress is not None:
                    on_progress(len(raw))
                if not builder.room:
                    yield builder.taken()
    if builder.room < size:
        yield builder.taken()


class _Builder:
    """Gathers lines into a cut."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._begin()

    def _begin(self) -> None:
        self.room = self._size
        self._sum = hashlib.sha256()
        self._spans: list[Span] = []
        self._now: tuple[int, int, int, int, list[int]] | None = None  # file, start, end, line, left out

    def add(self, file: int, start: int, line: int, raw: bytes, passages: int, left_out: bool) -> None:
        """Add whole lines, which begin at byte `start` with line number `line`."""
        if self._now is None or self._now[0] != file:
            self._close()
            self._now = (file, start, start, line, [])
        own, first, _, number, out = self._now
        self._now = (own, first, start + len(raw), number, [*out, line] if left_out else out)
        self._sum.update(raw)
        self.room -= passages

    def _close(self) -> None:
        if self._now is not None:
            file, start, end, line, out = self._now
            self._spans.append(Span(file, start, end, line, tuple(out)))
            self._now = None

    def taken(self) -> Cut:
        """The cut gathered so far; the next one begins empty."""
        self._close()
        found = Cut(self._size - self.room, self._sum.hexdigest(), tuple(self._spans))
        self._begin()
        return found


def bytes_digest(paths: Sequence[Path], spans: Iterable[Span]) -> str:
    """sha256 over the bytes of spans of these files; a file that is shorter counts as far as it goes."""
    seen = hashlib.sha256()
    for span in spans:
        with open(paths[span.file], 'rb') as stream:
            stream.seek(span.start)
            left = span.end - span.start
            while left and (block := stream.read(min(left, _BLOCK))):
                seen.update(block)
                left -= len(block)
    return seen.hexdigest()


class PartOfCorpus(Corpus):
    """The passages of some spans of a corpus; an unusable line in them is refused.

    Parameters
    ----------
    corpus : the whole corpus
    spans : in the corpus's order
    """

    advice = 'mend the corpus and plan again, or plan without what cannot be used'
    parameters = ('plan', 'on_error=skip')

    def __init__(self, corpus: LinesCorpus, spans: Iterable[Span]) -> None:
        super().__init__(corpus.name, OnError.REFUSE, corpus.keep_empty)
        self._whole, self._spans = corpus, tuple(spans)

    def _read(self) -> Iterator[tuple[str, Passage | BadPassage]]:
        for span in self._spans:
            path = self._whole.paths[span.file]
            yield from parsed_lines(path, _lines(path, span), self._whole.parse)


def _lines(path: Path, span: Span) -> Iterator[tuple[int, bytes]]:
    left_out = frozenset(span.left_out)
    left = span.end - span.start
    with open(path, 'rb') as stream:
        stream.seek(span.start)
        for number, raw in enumerate(stream, span.line):
            if left <= 0:
                return
            left -= len(raw)
            if number not in left_out:
                yield number, raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
