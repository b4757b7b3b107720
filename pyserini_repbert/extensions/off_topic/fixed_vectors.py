"""The fixed questions and passages as an encoder sees them: computed once for each collection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Encoding = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True)
class FixedVectors:
    """What an encoder makes of the fixed questions and their answers.

    Attributes
    ----------
    questions : their vectors, float32 (questions, d)
    background : the mean of the passages' vectors, float32 (d,): its product with a question's
        vector is the question's background
    backgrounds : of the fixed questions, each without its own answer, float32 (questions,)
    answers : the score of each question's answer, above its background, float32 (questions,)
    """

    questions: NDArray[np.float32]
    background: NDArray[np.float32]
    backgrounds: NDArray[np.float32]
    answers: NDArray[np.float32]

    @classmethod
    def encoded(cls, encode_queries: Encoding, encode_passages: Encoding) -> Self:
        """Encode the questions and the passages."""
        from pyserini_repbert.extensions.off_topic.fixed_questions import answered_questions

        answered = answered_questions()
        questions = encode_queries([each.question for each in answered])
        passages = encode_passages([each.passage for each in answered])
        products = questions @ passages.T
        own = products.diagonal()
        backgrounds = (products.sum(axis=1) - own) / (len(answered) - 1)
        return cls(questions, passages.mean(axis=0), backgrounds, own - backgrounds)
