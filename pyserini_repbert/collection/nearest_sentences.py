"""Why vectors find a passage: its sentence that is nearest to the question, and the words that
bring it there.

For a passage, at most `MOST_INPUTS` texts are encoded, none of them longer than the passage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.passages import boundary_ends
from pyserini_repbert.ranking import WordWeight

# Of a passage; of one that has more, neighbours are read together.
MOST_SENTENCES = 16
# How many words of a sentence are left out, one after the other; the longest if it has more.
MOST_WORDS = 16
MOST_INPUTS = MOST_SENTENCES + MOST_WORDS
# Words of a sentence; a longer one is read in parts.
_LONGEST = 30
_WORD = re.compile(r'\w+')

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""The vectors of texts, float32 (n, d), as the collection's passages have them."""


@dataclass(frozen=True)
class NearestSentence:
    """The sentence of a passage that is nearest to a question.

    Attributes
    ----------
    start, end : where it is: characters of the passage
    words : those without which it is further away, with the difference of the scores, the greatest
        first
    """

    start: int
    end: int
    words: tuple[WordWeight, ...]


def nearest_sentences(
    query: NDArray[np.float32], passages: Sequence[str], embed: Embed
) -> list[NearestSentence]:
    """The nearest sentence of each passage, by inner products of vectors.

    Parameters
    ----------
    query : the vector of the question, float32 (d,)
    passages : texts
    embed : encodes sentences: all of them, then each without one of its words
    """
    spans_by_passage = [sentence_spans(passage) for passage in passages]
    sentences = []
    for passage, spans in zip(passages, spans_by_passage, strict=True):
        sentences += [passage[start:end] for start, end in spans]
    if not sentences:
        return []
    scores = embed(sentences) @ query
    nearest = []
    first = 0
    for passage, spans in zip(passages, spans_by_passage, strict=True):
        best = first + int(np.argmax(scores[first : first + len(spans)]))
        start, end = spans[best - first]
        nearest.append(_Scored(start, end, passage[start:end], float(scores[best])))
        first += len(spans)
    return _with_words(query, nearest, embed)


@dataclass(frozen=True)
class _Scored:
    """A sentence of a passage, with its score."""

    start: int
    end: int
    text: str
    score: float


def _with_words(
    query: NDArray[np.float32], sentences: Sequence[_Scored], embed: Embed
) -> list[NearestSentence]:
    """Sentences with the words that bring them near."""
    words_by_sentence = [_words(sentence.text) for sentence in sentences]
    shorter = []
    for sentence, words in zip(sentences, words_by_sentence, strict=True):
        shorter += [_without(sentence.text, word) for word in words]
    scores = embed(shorter) @ query if shorter else np.empty(0, np.float32)
    found = []
    first = 0
    for sentence, words in zip(sentences, words_by_sentence, strict=True):
        differences = sentence.score - scores[first : first + len(words)]
        weights = [WordWeight(*pair) for pair in zip(words, differences.tolist(), strict=True)]
        weights = [own for own in weights if own.weight > 0]
        weights.sort(key=lambda own: -own.weight)
        found.append(NearestSentence(sentence.start, sentence.end, tuple(weights)))
        first += len(words)
    return found


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) of a text's sentences without white space around them, at most `MOST_SENTENCES`;
    of the whole text if it has no sentences.
    """
    ends = {len(text)}
    for positions in boundary_ends(text).values():
        ends.update(positions)
    spans = []
    start = 0
    for end in sorted(ends):
        words = list(_WORD.finditer(text, start, end))
        for row in range(0, len(words), _LONGEST):
            last = words[row + _LONGEST].start() if row + _LONGEST < len(words) else end
            first = start if row == 0 else words[row].start()
            part = text[first:last]
            spans.append((first + len(part) - len(part.lstrip()), first + len(part.rstrip())))
        start = end
    n_together = -(-len(spans) // MOST_SENTENCES)
    if n_together > 1:
        groups = [spans[row : row + n_together] for row in range(0, len(spans), n_together)]
        spans = [(group[0][0], group[-1][1]) for group in groups]
    return spans or [(0, len(text))]


def _words(sentence: str) -> list[str]:
    """The distinct words of a sentence, in order; only the longest if there are many."""
    by_key: dict[str, str] = {}
    for word in _WORD.findall(sentence):
        by_key.setdefault(word.casefold(), word)
    words = list(by_key.values())
    if len(words) > MOST_WORDS:
        longest = set(sorted(words, key=len, reverse=True)[:MOST_WORDS])
        words = [word for word in words if word in longest]
    return words if len(words) > 1 else []


def _without(sentence: str, word: str) -> str:
    """A sentence without any occurrence of a word."""
    key = word.casefold()
    return _WORD.sub(
        lambda match: '' if match.group().casefold() == key else match.group(), sentence
    )
