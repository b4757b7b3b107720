"""How query and candidates share a cross-encoder's input: how each is cut before [CLS] and [SEP]
are added.

Layouts differ only for texts that are too long, and for empty candidates. A checkpoint works with
each, best with the one that it was trained with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.tokenizer import TokenSequence, WordPieceTokenizer

MAX_TOKENS = 512  # Multi-Stage section 3.2 and 3.3, special tokens included
MONO_QUERY_TOKENS = 64  # Multi-Stage section 3.2, wordpieces
DUO_QUERY_TOKENS = 62  # Multi-Stage section 3.3, wordpieces
_PAIR_SPECIALS = 3  # [CLS] query [SEP] candidate [SEP]
_TRIPLE_SPECIALS = 4  # [CLS] query [SEP] candidate i [SEP] candidate j [SEP]


class PairLayout(Choice, what='layout'):
    """How monoBERT's query and candidate are cut.

    `paper`: the query to 64 wordpieces, the candidate to what is left of 512 tokens. `dl4marco`: as
    in the authors' TensorFlow code, whose query limit counts [CLS] and [SEP], and which leaves the
    last position empty. `pygaggle`: no separate limit for the query; wordpieces are dropped from
    the longer of the two until both fit, from the candidate if they are equally long.
    `pygaggle_fast_tokenizer`: likewise, as Hugging Face's fast tokenizers do it: if both are cut to
    half, an odd wordpiece goes to the one that was longer (the candidate if they were equally
    long), not to the query; and an empty candidate has no [SEP] of its own.
    """

    PAPER = 'paper'
    DL4MARCO = 'dl4marco'
    PYGAGGLE = 'pygaggle'
    PYGAGGLE_FAST = 'pygaggle_fast_tokenizer'


class TripleLayout(Choice, what='layout'):
    """How duoBERT's query and candidates are cut.

    `paper`: to 62, 223 and 223 wordpieces. `code`: as in the authors' TensorFlow code: the query to
    62, and each candidate to 2 less than half of the positions that [CLS] query [SEP] leaves of
    512: more after a short query.
    """

    PAPER = 'paper'
    CODE = 'code'


class Built(NamedTuple):
    """A model input, and whether a text was cut for it (`PairInputs`, `TripleInputs`: a
    candidate's).
    """

    sequence: TokenSequence
    truncated: bool


@dataclass(frozen=True)
class PairInputs:
    """Builds monoBERT's inputs: `[CLS] query [SEP] candidate [SEP]`, token type 0 up to the first
    [SEP], then 1.

    Raises InputError for limits that leave no room for a candidate. `max_query` is how many
    wordpieces are kept of a query; `dl4marco` counts [CLS] and [SEP] among them, `pygaggle` has no
    such limit.
    """

    tokenizer: WordPieceTokenizer
    layout: str = PairLayout.PAPER
    max_tokens: int = MAX_TOKENS  # of the longest input, special tokens included
    max_query: int = MONO_QUERY_TOKENS

    def __post_init__(self) -> None:
        PairLayout(self.layout)
        _check_room(self.max_tokens, _PAIR_SPECIALS, self.max_query, 1)

    def build(self, query: Sequence[int], text: Sequence[int]) -> Built:
        """The input for the wordpiece ids of a query and of a candidate."""
        n_query, n_text = self._lengths(len(query), len(text))
        head = [self.tokenizer.cls, *query[:n_query], self.tokenizer.sep]
        if self.layout == PairLayout.PYGAGGLE_FAST and not text:
            return Built(TokenSequence(head, [0] * len(head)), False)
        tail = [*text[:n_text], self.tokenizer.sep]
        return Built(
            TokenSequence(head + tail, [0] * len(head) + [1] * len(tail)), n_text < len(text)
        )

    def _lengths(self, query: int, text: int) -> tuple[int, int]:
        """The most wordpieces that are kept of a query and a candidate of these lengths."""
        room = self.max_tokens - _PAIR_SPECIALS
        if self.layout == PairLayout.PAPER:
            kept = min(query, self.max_query)
            return kept, room - kept
        if self.layout == PairLayout.DL4MARCO:
            kept = min(query, self.max_query - 2)
            return kept, room - kept - 1
        if query + text <= room:
            return query, text
        short = room // 2
        long = room - room // 2
        if min(query, text) <= short:
            return (query, room - query) if query <= text else (room - text, text)
        return (
            (short, long)
            if self.layout == PairLayout.PYGAGGLE_FAST and query <= text
            else (long, short)
        )


@dataclass(frozen=True)
class TripleInputs:
    """Builds duoBERT's inputs: `[CLS] query [SEP] candidate i [SEP] candidate j [SEP]`, token types
    0, 1 and 2.

    Parameters and errors are those of `PairInputs`; `layout` is a TripleLayout.
    """

    tokenizer: WordPieceTokenizer
    layout: str = TripleLayout.PAPER
    max_tokens: int = MAX_TOKENS
    max_query: int = DUO_QUERY_TOKENS

    def __post_init__(self) -> None:
        TripleLayout(self.layout)
        _check_room(self.max_tokens, _TRIPLE_SPECIALS + 2, self.max_query, 2)

    def candidate_limit(self, query: int) -> int:
        """Wordpieces kept of each candidate, for a query of `query` wordpieces before cutting."""
        if self.layout == TripleLayout.PAPER:
            return (self.max_tokens - _TRIPLE_SPECIALS - self.max_query) // 2
        return (self.max_tokens - min(query, self.max_query) - 2) // 2 - 2

    def build(self, query: Sequence[int], first: Sequence[int], second: Sequence[int]) -> Built:
        """The input for the wordpiece ids of a query, of candidate i and of candidate j."""
        limit = self.candidate_limit(len(query))
        sep = self.tokenizer.sep
        head = [self.tokenizer.cls, *query[: self.max_query], sep]
        one = [*first[:limit], sep]
        two = [*second[:limit], sep]
        types = [0] * len(head) + [1] * len(one) + [2] * len(two)
        return Built(TokenSequence(head + one + two, types), max(len(first), len(second)) > limit)


def _check_room(max_tokens: int, specials: int, max_query: int, candidates: int) -> None:
    if max_query < 2 + 1 or max_tokens < specials + max_query + candidates:
        raise InputError(
            f'a maximum of {max_tokens} tokens with {max_query} for the query leaves no room for '
            f'candidates: '
            f'expected at least 3 for the query and {specials + max_query + candidates} in all'
        )
