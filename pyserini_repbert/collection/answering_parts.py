"""Which part of a passage answers a question, where headings cut the passage into parts.

A passage may span several short sections. The part that has the rarest words of the question is
what a hit shows. Without such words, it is the longest part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from pyserini_repbert.data.snippets import find_words

# A longer passage is no passage, but a document whose encoder reads all of it.
_MOST_PARTS = 200


def answering_parts(query: str, passages: Sequence[Sequence[str]]) -> list[int]:
    """The part of each passage that answers a question, by its position.

    A word counts the more, the fewer of all parts have it.

    Parameters
    ----------
    query : the question
    passages : the parts of each passage, in their order
    """
    words_by_passage = []
    n_having: Counter[str] = Counter()
    n_parts = 0
    for parts in passages:
        words = [_words(query, part) for part in parts[:_MOST_PARTS]]
        words_by_passage.append(words)
        n_parts += len(words)
        for stems in words:
            n_having.update(stems)
    chosen = []
    for parts, words in zip(passages, words_by_passage, strict=True):
        weights = []
        for stems in words:
            weights.append(sum(math.log(1 + n_parts / n_having[stem]) for stem in sorted(stems)))
        lengths = [len(part) for part in parts[:_MOST_PARTS]]
        order = sorted(
            range(len(weights)), key=lambda row: (-round(weights[row], 9), -lengths[row], row)
        )
        chosen.append(order[0])
    return chosen


def _words(query: str, part: str) -> set[str]:
    """The words of a question that a part has, by their stems."""
    return {match.stem for match in find_words(query, part)}
