"""The inputs of cross-encoders of sentence-transformers: a query, separators, a text.

Long pairs are cut as the package tokenizers does, from the longer text first.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_repbert.models.tokenizer import ModelInputs, TokenSequence, WordPieceTokenizer
from pyserini_repbert.systems.sentence_transformers.folder import Unsupported
from pyserini_repbert.systems.sentence_transformers.tokenizing import FolderTokenizer


@dataclass(frozen=True)
class BuiltPairs:
    """The inputs of pairs, and how many texts were cut for them."""

    inputs: ModelInputs
    n_truncated: int


@dataclass(frozen=True)
class KeptLengths:
    """How many wordpieces are kept of a query and of a text."""

    query: int
    text: int


def read_second_type(opened: FolderTokenizer) -> int:
    """The token type of a pair's text and its separator.

    Raises Unsupported for a folder that leaves it to the release of transformers.
    """
    if opened.second_type is None:
        raise Unsupported('its tokenizer does not say whether it gives token types')
    return opened.second_type


class PairBuilder:
    """Builds `[CLS] query [SEP] text [SEP]`.

    Parameters
    ----------
    opened : the tokenizer, and what its folder says of pairs
    max_tokens : of the longest input, special tokens included

    Raises Unsupported for a folder that does not say the token type of the text.
    """

    def __init__(self, opened: FolderTokenizer, max_tokens: int) -> None:
        self._second_type = read_second_type(opened)
        self._tokenizer: WordPieceTokenizer = opened.tokenizer
        self._separators = opened.separators
        specials = 2 + opened.separators
        self._room = max(0, max_tokens - specials)

    def build(self, pairs: Sequence[tuple[str, str]]) -> BuiltPairs:
        """The inputs of (query, text) pairs. Each distinct text is tokenised once."""
        distinct = list(dict.fromkeys(itertools.chain.from_iterable(pairs)))
        # Lengths are compared: one wordpiece more than there is room for is enough.
        ids = dict(zip(distinct, self._tokenizer.ids(distinct, self._room + 1), strict=True))
        sequences = []
        n_truncated = 0
        for query, text in pairs:
            kept = kept_lengths(len(ids[query]), len(ids[text]), self._room)
            n_truncated += kept.text < len(ids[text])
            sequences.append(self._sequence(ids[query][: kept.query], ids[text][: kept.text]))
        return BuiltPairs(ModelInputs.of(sequences), n_truncated)

    def _sequence(self, query: list[int], text: list[int]) -> TokenSequence:
        sep = self._tokenizer.sep
        head = [self._tokenizer.cls, *query, *[sep] * self._separators]
        tail = [*text, sep]
        types = [0] * len(head) + [self._second_type] * len(tail)
        return TokenSequence(head + tail, types)


def kept_lengths(query: int, text: int, room: int) -> KeptLengths:
    """How many wordpieces of two texts are kept where there is room for so many.

    'longest_first' of the package tokenizers (`utils/truncation.rs`): the longer text is cut to
    what the shorter leaves; where both have more than half of the room, each gets half, and the
    longer one an odd wordpiece.
    """
    if query + text <= room:
        return KeptLengths(query, text)
    shorter = min(query, text)
    longer = room - shorter
    if longer < shorter:
        shorter = room // 2
        longer = room - shorter
    if query > text:
        return KeptLengths(longer, shorter)
    return KeptLengths(shorter, longer)
