"""monoBERT's input, from a query and a candidate: how each text is cut.

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

# Wordpieces kept of a query (Multi-Stage section 3.2).
QUERY_TOKENS = 64
# Special tokens in `[CLS] query [SEP] candidate [SEP]`.
SPECIALS = 3


class PairLayout(Choice, what='layout'):
    """How monoBERT's query and candidate are cut.

    Attributes
    ----------
    paper : the query to 64 wordpieces, the candidate to what is left of 512 tokens
    dl4marco : as in the authors' TensorFlow code, whose query limit counts [CLS] and [SEP], and
        which leaves the last position empty
    pygaggle : no separate limit for the query; wordpieces are dropped from the longer of the two
        until both fit, from the candidate if they are equally long
    pygaggle_fast_tokenizer : as `pygaggle`, cut as by Hugging Face's fast tokenizers: if both are
        cut to half, an odd wordpiece goes to the one that was longer (the candidate if they were
        equally long), not to the query; and an empty candidate has no separate [SEP]
    """

    PAPER = 'paper'
    DL4MARCO = 'dl4marco'
    PYGAGGLE = 'pygaggle'
    PYGAGGLE_FAST = 'pygaggle_fast_tokenizer'


@dataclass(frozen=True)
class PairInputs(CrossEncoderInputs):
    """Builds monoBERT's inputs: `[CLS] query [SEP] candidate [SEP]`.

    Token type 0 up to the first [SEP], then 1.

    Attributes
    ----------
    layout : how texts are cut, a `PairLayout`
    max_tokens : of the longest input, special tokens included
    max_query : wordpieces kept of a query; `dl4marco` counts [CLS] and [SEP] among them,
        `pygaggle` has no such limit

    Raises
    ------
    InputError : limits that leave no room for a candidate
    """

    layout: str = PairLayout.PAPER
    max_tokens: int = MAX_TOKENS
    max_query: int = QUERY_TOKENS

    def __post_init__(self) -> None:
        PairLayout(self.layout)
        check_room(
            max_tokens=self.max_tokens,
            specials=SPECIALS,
            max_query=self.max_query,
            candidates=1,
        )

    def build(self, query: Sequence[int], text: Sequence[int]) -> CrossEncoderInput:
        """The input for the wordpiece ids of a query and of a candidate."""
        n_query, n_text = self._limits(len(query), len(text))
        head = [self.tokenizer.cls, *query[:n_query], self.tokenizer.sep]
        if self.layout == PairLayout.PYGAGGLE_FAST and not text:
            return CrossEncoderInput(TokenSequence(head, [0] * len(head)), False)
        tail = [*text[:n_text], self.tokenizer.sep]
        types = [0] * len(head) + [1] * len(tail)
        return CrossEncoderInput(TokenSequence(head + tail, types), n_text < len(text))

    def _limits(self, query: int, text: int) -> tuple[int, int]:
        """The most wordpieces that are kept of a query and a candidate of these lengths."""
        room = self.max_tokens - SPECIALS
        if self.layout == PairLayout.PAPER:
            kept = min(query, self.max_query)
            return kept, room - kept
        if self.layout == PairLayout.DL4MARCO:
            kept = min(query, self.max_query - 2)
            return kept, room - kept - 1
        return self._pygaggle_limits(query, text, room)

    def _pygaggle_limits(self, query: int, text: int, room: int) -> tuple[int, int]:
        """The wordpieces kept when the longer of the two is cut until both fit into `room`."""
        if query + text <= room:
            return query, text
        half = room // 2
        if query <= half and query <= text:
            return query, room - query
        if text <= half and text < query:
            return room - text, text
        if self.layout == PairLayout.PYGAGGLE_FAST and query <= text:
            return half, room - half
        return room - half, half
