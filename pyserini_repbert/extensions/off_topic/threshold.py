"""When a question counts as one that is not about a collection.

Scores of different questions are compared, so each counts from its question's background: its mean
with the fixed passages, general texts of Wikipedia. Without it, only the words of a question can
decide: multilingual-e5-small gives random letters a cosine of .8 with any text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# How far the threshold is from what questions about anything find to what right answers have.
# Chosen on folders of persons and test collections, see regressions/studies/off_topic.py.
_SHARE = 0.1
# By how much of the rest of that way a hit lowers it that has all words of the question.
OF_WORDS = 0.5
# So many of a hundred right answers are below any threshold.
_OF_ANSWERS = 5


def choose_threshold(best: NDArray[np.float32], answers: NDArray[np.float32]) -> float:
    """The score above the background below which a question is not about a collection.

    A collection about one field has no passage for nearly all of the fixed questions, which are
    about anything. What a question of its field finds is better than what most of them find. A
    collection about anything answers some of them. There, their hits tell little, and the threshold
    is a value that right answers hardly ever fall below.

    Parameters
    ----------
    best : the score above the background of each fixed question's best passage in the collection,
        float32 (questions,)
    answers : the score of the answering passage above the background, at any rank, float32
        (questions,)
    """
    usual = float(np.median(best))
    between = usual + _SHARE * (float(np.median(answers)) - usual)
    return min(between, float(np.percentile(answers, _OF_ANSWERS)))
