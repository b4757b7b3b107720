"""Which passage of a document answers a question, and which part of it, where headings cut it.

Vectors find the document that answers, and less often the section: they read no heading. So a
person is shown the part with the best mean of two scores. One score is how far its passage's vector
is above the background. The other counts the question's words in the part and in the headings
above. Each score is scaled so that its best value is 1. `benchmarks/sections.py` measures this.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyserini_repbert.data.snippets import find_words

# A longer passage is a whole document, which its encoder reads completely.
MOST_PARTS = 200
# Of a document, the nearest to the question: words are looked for in these.
MOST_PASSAGES = 10


@dataclass(frozen=True)
class PassagePart:
    """A part of a passage.

    Attributes
    ----------
    number : of the passage in its document
    row : of the part in its passage
    text : of the part
    headings : the headings above it, joined
    """

    number: int
    row: int
    text: str
    headings: str


def answering_part(
    query: str, scores: Mapping[int, float], parts: Sequence[PassagePart]
) -> PassagePart:
    """The part of a document that answers a question.

    A word counts the more, the fewer parts have it, and twice where a heading has it. Of equal
    parts, the longest counts, then the one of the nearest passage.

    Parameters
    ----------
    query : the question
    scores : what passages have above the background of the vectors' scores, by their numbers
    parts : the parts of these passages
    """
    words = _word_scores(query, parts)
    best = max(scores.values())
    values = []
    for part, of_words in zip(parts, words, strict=True):
        nearness = scores[part.number] / best if best > 0 else 0.0
        value = round((nearness + of_words) / 2, 9)
        values.append((value, len(part.text), scores[part.number]))
    return parts[values.index(max(values))]


def _word_scores(query: str, parts: Sequence[PassagePart]) -> list[float]:
    """How much of a question's words each part and its headings have; 1.0 for most."""
    words_of_parts = []
    n_having: Counter[str] = Counter()
    for part in parts:
        in_headings = _words(query, part.headings)
        words = in_headings | _words(query, part.text)
        words_of_parts.append([*sorted(words), *sorted(in_headings)])
        n_having.update(words)
    scores = []
    for words_of_part in words_of_parts:
        weights = [math.log(1 + len(parts) / n_having[word]) for word in words_of_part]
        scores.append(sum(weights))
    most = max(scores, default=0.0) or 1.0
    return [score / most for score in scores]


def _words(query: str, part: str) -> set[str]:
    """The words of a question that a part has, by their stems."""
    return {match.stem for match in find_words(query, part)}
