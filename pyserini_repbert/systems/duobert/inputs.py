"""duoBERT's input, from a query and two candidates: how each text is cut.

Layouts differ only for texts that are too long, and for empty candidates. A checkpoint works with
each, best with the one that it was trained with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyserini_repbert.data.values import Choice
from pyserini_repbert.models.cross_encoder import MAX_TOKENS
from pyserini_repbert.models.cross_encoder_inputs import (
    CrossEncoderInput,
    CrossEncoderInputs,
    check_room,
)
from pyserini_repbert.models.tokenizer import TokenSequence

QUERY_TOKENS = 62  # Multi-Stage section 3.3, wordpieces
SPECIALS = 4  # [CLS] query [SEP] candidate i [SEP] candidate j [SEP]


class TripleLayout(Choice, what='layout'):
    """How duoBERT's query and candidates are cut.

    `paper`: to 62, 223 and 223 wordpieces. `code`: as in the authors' TensorFlow code: the query to
    62, and each candidate to 2 less than half of the positions that [CLS] query [SEP] leaves of
    512: more after a short query.
    """

    PAPER = 'paper'
    CODE = 'code'


@dataclass(frozen=True)
class TripleInputs(CrossEncoderInputs):
    """Builds duoBERT's inputs: `[CLS] query [SEP] candidate i [SEP] candidate j [SEP]`, token types
    0, 1 and 2.

    Takes the parameters of `PairInputs`, and raises its errors; `layout` is a TripleLayout.
    """

    layout: str = TripleLayout.PAPER
    max_tokens: int = MAX_TOKENS
    max_query: int = QUERY_TOKENS

    def __post_init__(self) -> None:
        TripleLayout(self.layout)
        check_room(
            max_tokens=self.max_tokens,
            specials=SPECIALS + 2,
            max_query=self.max_query,
            candidates=2,
        )

    def candidate_limit(self, query: int) -> int:
        """Wordpieces kept of each candidate, for a query of `query` wordpieces before cutting."""
        if self.layout == TripleLayout.PAPER:
            return (self.max_tokens - SPECIALS - self.max_query) // 2
        return (self.max_tokens - min(query, self.max_query) - 2) // 2 - 2

    def build(
        self, query: Sequence[int], first: Sequence[int], second: Sequence[int]
    ) -> CrossEncoderInput:
        """The input for the wordpiece ids of a query, of candidate i and of candidate j."""
        limit = self.candidate_limit(len(query))
        sep = self.tokenizer.sep
        head = [self.tokenizer.cls, *query[: self.max_query], sep]
        one = [*first[:limit], sep]
        two = [*second[:limit], sep]
        types = [0] * len(head) + [1] * len(one) + [2] * len(two)
        return CrossEncoderInput(
            TokenSequence(head + one + two, types), max(len(first), len(second)) > limit
        )
