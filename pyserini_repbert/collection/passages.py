"""Long texts cut into passages by the wordpieces of an encoder's tokenizer.

A text is tokenised once, with the offsets of its wordpieces. A passage ends before a heading, or
after a paragraph or sentence, if there is one in its second half. Otherwise it ends after a word.
The next passage repeats its last wordpieces. So no encoder has to cut a passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

PASSAGE_TOKENS = 200
_OVERLAP_SHARE = 5  # by default, a passage repeats a fifth of the one before
# A text, or its rest, is not cut if it is at most a quarter longer than a passage. Otherwise short
# rests, which are mostly overlap, would become passages.
_LONGEST = 5 / 4
_TITLE_SHARE = 4  # a title takes at most a quarter of what the encoder reads
_TOKENISED_AT_ONCE = 100_000  # characters, which bound the memory of a long text's wordpieces
_SPACE = re.compile(r'\s')
# Where passages may begin, after one of: a line before a heading, an empty line, the end of a
# sentence, and a line before an item of a list, which `_ItemFinder` finds.
_BOUNDARY = re.compile(
    r"""(?P<heading>\n(?=\#{1,6}[ ]))
    |(?P<paragraph>\n[ \t]*\r?\n\s*)
    |(?P<sentence>[.!?…]["'”’»)\]]*\s+|[。！？]["”’」』）]*\s*)
    |(?P<line>\n)""",
    re.VERBOSE,
)
_SPACES = re.compile(r'\s*+')
_ITEM = re.compile(r'(?:[-*+]|\d++[.)])[ ]')
_LEVELS = ('heading', 'paragraph', 'sentence')


@dataclass(frozen=True)
class CutPassage:
    """A part of a document: `text[start:end]`, and `input`, what the encoder reads for it."""

    start: int
    end: int
    input: str


@dataclass(frozen=True)
class _Part:
    """A part of a text that was tokenised separately, and the character at which it begins."""

    start: int
    encoding: Encoding


class _Wordpieces:
    """A text's wordpieces.

    Most texts become one passage: for these, the arrays are not made.
    """

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self._count = sum(len(part.encoding) for part in parts)

    def __len__(self) -> int:
        return self._count

    @property
    def start(self) -> int:
        """The character at which the first of them begins."""
        for part in self._parts:
            if len(part.encoding):
                return part.start + int(part.encoding.offsets[0][0])
        return 0

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The character at which each begins."""
        starts = [np.empty(0, np.int64)]
        for part in self._parts:
            offsets = np.array(part.encoding.offsets, np.int64).reshape(-1, 2)
            starts.append(offsets[:, 0] + part.start)
        return np.concatenate(starts)

    @cached_property
    def is_word(self) -> NDArray[np.bool_]:
        """Whether a word begins with each."""
        return np.concatenate([_begin_words(part.encoding.word_ids) for part in self._parts])


def cutting_tokenizer(encoder: Any) -> Tokenizer:
    """The tokenizer of an encoder, with offsets, without truncation and padding.

    Raises InputError for an encoder without a tokenizer of the package tokenizers.
    """
    own: Tokenizer | None = getattr(getattr(encoder, 'tokenizer', None), 'backend', None)
    if own is not None:
        # Nobody makes the backend of a WordPieceTokenizer truncate.
        return own
    backend = getattr(getattr(encoder, 'text_tokenizer', None), 'backend_tokenizer', None)
    if backend is None:
        raise InputError(
            f"encoder '{encoder.name}' has no tokenizer of the package tokenizers, "
            'which cuts texts into passages: choose another encoder'
        )
    # Its owner sets how it truncates, text by text.
    copied: Tokenizer = type(backend).from_str(backend.to_str())
    copied.no_truncation()
    copied.no_padding()
    return copied


class PassageCutter:
    """Cuts texts into passages for one encoder.

    Parameters
    ----------
    tokenizer : as `cutting_tokenizer` gives it
    capacity : wordpieces that the encoder reads of an input, special tokens not counted
    tokens : wordpieces of a passage, its title not counted
    overlap : wordpieces of a passage that the next one repeats; default: a fifth of a passage

    Raises InputError for an overlap of more than half a passage.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        capacity: int,
        tokens: int = PASSAGE_TOKENS,
        overlap: int | None = None,
    ) -> None:
        overlap = default_overlap(tokens) if overlap is None else overlap
        check_lengths(tokens, overlap)
        self._tokenizer = tokenizer
        self._capacity = capacity
        self._tokens = tokens
        self._overlap = overlap

    def cut(
        self,
        titles: Sequence[str],
        texts: Sequence[str],
        headings: Sequence[Sequence[int]] | None = None,
    ) -> list[list[CutPassage]]:
        """The passages of each text, in order; none if both title and text are empty.

        Parameters
        ----------
        titles : of the texts
        texts : those to cut
        headings : the characters of each text at which headings begin that have no marks of
            Markdown; None: no text has such headings
        """
        title_wordpieces = self._wordpieces(titles)
        text_wordpieces = self._wordpieces(texts)
        passages = []
        for number, text in enumerate(texts):
            title = titles[number]
            title_length = min(len(title_wordpieces[number]), self._capacity // _TITLE_SHARE)
            title = _first_wordpieces(title, title_wordpieces[number], title_length)
            size = self._capacity - title_length
            starts = headings[number] if headings is not None else ()
            passages.append(self._passages(title, text, text_wordpieces[number], size, starts))
        return passages

    def _passages(
        self,
        title: str,
        text: str,
        wordpieces: _Wordpieces,
        capacity: int,
        headings: Sequence[int],
    ) -> list[CutPassage]:
        if not len(wordpieces):
            return [CutPassage(0, 0, title)] if title else []
        size = min(self._tokens, capacity)
        longest = min(int(size * _LONGEST), capacity)
        if len(wordpieces) <= longest:
            return [_passage(title, text, wordpieces.start, len(text))]
        ranges = _PassageRanges(
            wordpieces=wordpieces,
            boundaries=_find_boundaries(text, wordpieces, headings),
            size=size,
            overlap=min(self._overlap, size // 2),
            longest=longest,
        )
        passages = []
        for first, after in ranges:
            start = int(wordpieces.starts[first])
            end = int(wordpieces.starts[after]) if after < len(wordpieces) else len(text)
            passages.append(_passage(title, text, start, end))
        return passages

    def _wordpieces(self, texts: Sequence[str]) -> list[_Wordpieces]:
        """The wordpieces of each text."""
        parts: list[str] = []
        starts_by_text: list[list[int]] = []
        for text in texts:
            starts = []
            for start, end in _cut_at_spaces(text):
                parts.append(text[start:end])
                starts.append(start)
            starts_by_text.append(starts)
        encodings = iter(self._tokenizer.encode_batch(parts, add_special_tokens=False))
        wordpieces = []
        for starts in starts_by_text:
            wordpieces.append(_Wordpieces([_Part(start, next(encodings)) for start in starts]))
        return wordpieces


def _passage(title: str, text: str, start: int, end: int) -> CutPassage:
    """The passage `text[start:end]`, without white space at its end, below a title."""
    part = text[start:end].rstrip()
    passage_input = f'{title} {part}' if title else part
    return CutPassage(start, start + len(part), passage_input)


def default_overlap(tokens: int) -> int:
    """The wordpieces that passages of so many wordpieces repeat, if nobody says how many."""
    return tokens // _OVERLAP_SHARE


def check_lengths(tokens: int, overlap: int) -> None:
    """Raises InputError for lengths of passages that do not fit."""
    if tokens < 1:
        raise InputError(f'passages of {tokens} wordpieces: expected at least 1')
    if not 0 <= overlap <= tokens // 2:
        raise InputError(
            f'passages of {tokens} wordpieces with an overlap of {overlap}: expected an overlap of '
            f'at most half of a passage, {tokens // 2}',
            parameters=('passage_tokens', 'overlap'),
        )


class _PassageRanges:
    """The passages of a text as (first wordpiece, last wordpiece + 1), in order."""

    def __init__(
        self,
        wordpieces: _Wordpieces,
        boundaries: dict[str, NDArray[np.int64]],
        size: int,
        overlap: int,
        longest: int,
    ) -> None:
        self._count = len(wordpieces)
        self._words = np.flatnonzero(wordpieces.is_word)
        self._by_level = [boundaries[level] for level in _LEVELS]
        self._size = size
        self._overlap = overlap
        self._longest = longest

    def __iter__(self) -> Iterator[tuple[int, int]]:
        first = 0
        while self._count - first > self._longest:
            after = self._end(first)
            yield first, after
            first = self._next_start(after)
        yield first, self._count

    def _end(self, first: int) -> int:
        """The last boundary in the second half of a passage, of the highest level there is."""
        most = first + self._size
        for positions in (*self._by_level, self._words):
            number = np.searchsorted(positions, most, side='right') - 1
            if number >= 0 and positions[number] > first + self._size // 2:
                return int(positions[number])
        return most

    def _next_start(self, after: int) -> int:
        """The first sentence within the overlap; if none begins there, the first word."""
        if self._overlap == 0:
            return after
        least = after - self._overlap
        firsts = []
        for positions in self._by_level:
            firsts += _first_within(positions, least, after)
        if not firsts:
            firsts = _first_within(self._words, least, after)
        return min(firsts, default=least)


def _first_within(positions: NDArray[np.int64], least: int, below: int) -> list[int]:
    """The first of some positions that is at least `least` and lies below `below`, in a list."""
    number = np.searchsorted(positions, least)
    if number < len(positions) and positions[number] < below:
        return [int(positions[number])]
    return []


class _ItemFinder:
    """Tells whether the next text after a line's end is an item of a list.

    White space is read only once, however many lines end in it, because positions are asked for in
    ascending order.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._end_of_spaces = -1
        self._is_item = False

    def begins_after(self, position: int) -> bool:
        """Whether an item begins at a position, or after the white space there."""
        if position > self._end_of_spaces:
            spaces = _SPACES.match(self._text, position)
            self._end_of_spaces = position if spaces is None else spaces.end()
            self._is_item = _ITEM.match(self._text, self._end_of_spaces) is not None
        return self._is_item


def boundary_ends(text: str) -> dict[str, list[int]]:
    """The characters at which parts of a text end, ascending, by the level of the part."""
    positions: dict[str, list[int]] = {level: [] for level in _LEVELS}
    items = _ItemFinder(text)
    for match in _BOUNDARY.finditer(text):
        level = str(match.lastgroup)
        if level != 'line':
            positions[level].append(match.end())
        elif items.begins_after(match.end()):
            positions['sentence'].append(match.end())
    return positions


def _find_boundaries(
    text: str, wordpieces: _Wordpieces, headings: Sequence[int]
) -> dict[str, NDArray[np.int64]]:
    """The wordpieces before which a part of the text ends, by the level of the part."""
    positions = boundary_ends(text)
    positions['heading'] = sorted({*positions['heading'], *headings})
    boundaries = {}
    for level in _LEVELS:
        numbers = np.searchsorted(wordpieces.starts, np.array(positions[level], np.int64))
        numbers = np.unique(numbers[numbers < len(wordpieces)])
        boundaries[level] = numbers[wordpieces.is_word[numbers]]
    return boundaries


def _begin_words(word_ids: Sequence[int | None]) -> NDArray[np.bool_]:
    """Of each wordpiece, whether it begins a word."""
    # an added token such as [SEP] in a text does not belong to a word: NaN, which is unlike any
    # number
    numbers = np.array(word_ids, np.float64)
    begins = np.ones(len(numbers), np.bool_)
    begins[1:] = numbers[1:] != numbers[:-1]
    return begins


def _first_wordpieces(text: str, wordpieces: _Wordpieces, count: int) -> str:
    """The words of a text that have at most `count` wordpieces together."""
    if len(wordpieces) <= count:
        return text
    while count and not wordpieces.is_word[count]:
        count -= 1
    return text[: wordpieces.starts[count]].rstrip()


def _cut_at_spaces(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of parts of bounded length, which end at white space where there is any."""
    start = 0
    while len(text) - start > _TOKENISED_AT_ONCE:
        end = start + _TOKENISED_AT_ONCE
        # a word is rarely longer than this, and then it is cut
        for position in range(end, end - 1000, -1):
            if _SPACE.match(text, position):
                end = position
                break
        yield start, end
        start = end
    yield start, len(text)
