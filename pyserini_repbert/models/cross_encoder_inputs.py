"""What the inputs of cross-encoders share: the form of an input, and the check of its limits."""

from __future__ import annotations

from dataclasses import dataclass

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.cross_encoder import MAX_TOKENS
from pyserini_repbert.models.tokenizer import TokenSequence, WordPieceTokenizer

MIN_QUERY = 3  # one wordpiece beside [CLS] and [SEP], which some layouts count


@dataclass(frozen=True, slots=True)
class CrossEncoderInput:
    """A model input, and whether a candidate's text was truncated to fit."""

    sequence: TokenSequence
    truncated: bool


@dataclass(frozen=True)
class CrossEncoderInputs:
    """Builds the inputs of a cross-encoder; subclasses say how texts are cut.

    Attributes
    ----------
    layout : how texts are cut
    max_tokens : of the longest input, special tokens included
    max_query : wordpieces kept of a query
    """

    tokenizer: WordPieceTokenizer
    layout: str = ''
    max_tokens: int = MAX_TOKENS
    max_query: int = MIN_QUERY


def check_room(*, max_tokens: int, specials: int, max_query: int, candidates: int) -> None:
    """Raise InputError unless the limits leave room for a candidate.

    Parameters
    ----------
    max_tokens : of the longest input, special tokens included
    specials : special tokens of an input
    max_query : wordpieces kept of a query
    candidates : how many candidates an input has
    """
    smallest = specials + max_query + candidates
    if max_query < MIN_QUERY or max_tokens < smallest:
        raise InputError(
            f'a maximum of {max_tokens} tokens with {max_query} for the query leaves no room for '
            f'candidates: expected at least {MIN_QUERY} for the query and {smallest} in all'
        )
