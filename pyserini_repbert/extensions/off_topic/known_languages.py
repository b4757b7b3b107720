"""Whether an encoder knows the language of a question and of its hits.

The vectors of other texts tell nothing: for all-MiniLM-L6-v2, which knows English, a German answer
is as far from a question as anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from tokenizers import Tokenizer

from pyserini_repbert.collection.known_words import KnownWords
from pyserini_repbert.collection.passages import cutting_tokenizer
from pyserini_repbert.errors import InputError
from pyserini_repbert.search.dense import QueryEncoder

# Of a question's words. A question has few: a third to two thirds of the words of a French one are
# English as well.
_KNOWN_SHARE = 0.75
# A tokenizer is copied for some encoders, which takes as long as many questions.
_tokenizers: WeakKeyDictionary[Any, Tokenizer | None] = WeakKeyDictionary()


def knows_languages(encoder: QueryEncoder, question: str, texts: Sequence[str]) -> bool:
    """Whether an encoder knows the words of a question, and of all texts that have enough of them.

    An encoder whose tokenizer does not tell is taken to know all.
    """
    tokenizer = _tokenizer_of(encoder)
    if tokenizer is None:
        return True
    known_words = KnownWords(tokenizer)
    if not known_words.tells:
        return True
    of_question = known_words.count(question)
    if of_question.known < _KNOWN_SHARE * of_question.words:
        return False
    for text in texts:
        counts = known_words.count(text)
        if counts.are_enough and not counts.are_known:
            return False
    return True


def _tokenizer_of(encoder: QueryEncoder) -> Tokenizer | None:
    """The tokenizer of an encoder; None if it has none of the package tokenizers."""
    if encoder not in _tokenizers:
        try:
            _tokenizers[encoder] = cutting_tokenizer(encoder)
        except InputError:
            _tokenizers[encoder] = None
    return _tokenizers[encoder]
