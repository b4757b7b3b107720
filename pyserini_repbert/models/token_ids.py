"""Texts to token ids in flat arrays: in this process."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.long_texts import TextCutter

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Texts; it bounds the memory of the tokenizer's encodings, which hold more than ids.
_TOKENISED_AT_ONCE = 256
MOST_IDS = 65_536  # of a text, where a caller names no number: more than any model reads
# A text is tokenised in pieces of so many characters until it has enough wordpieces: a passage may
# be a whole file.
SHORTEST_PIECE = 4096
LONGEST_PIECE = 100_000
_CHARACTERS_OF_ID = 8  # of English text, 4.5 on average
_CHARACTERS_AT_ONCE = 1_000_000
# The fewest texts that a worker process gets at a time.
FEWEST = 64

Progress = Callable[[int], object]  # called with the number of sequences done since the last call


@dataclass(frozen=True)
class TokenIds:
    """The wordpiece ids of n texts, without special tokens, not truncated.

    Of a long text, at least the first wordpieces, as many as were asked for.
    """

    ids: NDArray[np.int32]  # (total,), text after text
    lengths: NDArray[np.int64]  # (n,), wordpieces of each text

    def __len__(self) -> int:
        return len(self.lengths)


def tokenised(backend: Tokenizer, texts: Sequence[str], most: int = MOST_IDS) -> TokenIds:
    """The ids of texts; of a long text, at least the first `most`.

    Raises InputError for anything but text, and for characters that UTF-8 cannot hold.
    """
    all_ids = array('i')
    lengths = array('q')
    for part in _small_groups(texts):
        try:
            ids_of_part = _ids_of(backend, part, most)
        except TypeError:
            _check_characters(part)
            raise
        for ids in ids_of_part:
            all_ids.fromlist(ids)
            lengths.append(len(ids))
    return TokenIds(np.array(all_ids, np.int32), np.array(lengths, np.int64))


def _check_characters(texts: Sequence[str]) -> None:
    bad = next(filter(has_surrogates, texts), None)
    if bad is not None:
        raise InputError(f'{ascii(bad)[:60]} is not text that UTF-8 can hold: fix or remove it')


def _small_groups(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in groups of bounded length, which are tokenised at once."""
    group: list[str] = []
    characters = 0
    for text in texts:
        # tokenizers take a pair, too, and read both parts as one input
        if not isinstance(text, str):
            raise InputError(f'a text was expected, {ascii(text)[:60]} was given')
        group.append(text)
        characters += min(len(text), LONGEST_PIECE)
        if len(group) == _TOKENISED_AT_ONCE or characters >= _CHARACTERS_AT_ONCE:
            yield group
            group = []
            characters = 0
    if group:
        yield group


def _ids_of(backend: Tokenizer, texts: list[str], most: int) -> list[list[int]]:
    """The ids of each text, of a long one at least the first `most`."""
    size = min(max(_CHARACTERS_OF_ID * most, SHORTEST_PIECE), LONGEST_PIECE)
    is_long = max(map(len, texts)) > size
    cutter = TextCutter.of(backend) if is_long else None
    if cutter is None:
        encodings = backend.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]
    _check_characters(texts)
    ids_of_texts: list[list[int]] = [[] for _ in texts]
    coming = {row: cutter.pieces(text, size) for row, text in enumerate(texts)}
    while coming:
        pieces = {row: next(rest, None) for row, rest in coming.items()}
        batch = {row: piece for row, piece in pieces.items() if piece is not None}
        encodings = backend.encode_batch_fast(list(batch.values()), add_special_tokens=False)
        for row, encoding in zip(batch, encodings, strict=True):
            ids_of_texts[row] += encoding.ids
        coming = {row: coming[row] for row in batch if len(ids_of_texts[row]) < most}
    return ids_of_texts
