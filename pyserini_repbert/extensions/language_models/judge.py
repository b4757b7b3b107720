"""Grades by a language model, 0 to 3, on the scale of UMBRELA.

UMBRELA: Upadhyay et al. 2024, https://arxiv.org/abs/2406.06519, an open form of Bing's assessor
(Thomas et al. 2023, https://arxiv.org/abs/2309.10621). The shipped prompt says its scale in other
words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyserini_repbert.collection.judging.model_grades import ModelJudge
from pyserini_repbert.collection.judgments import MAX_MODEL_GRADE
from pyserini_repbert.extensions.language_models.answers import AnswerTotals
from pyserini_repbert.extensions.language_models.model import LanguageModel, Reply
from pyserini_repbert.extensions.language_models.permutation import without_thought
from pyserini_repbert.extensions.language_models.prompts import cut_words, read_prompt
from pyserini_repbert.extensions.language_models.settings import LanguageModelSettings

# Words of a passage that the model reads, as in reranking.
WORDS = 300
# A grade takes one token; a model that thinks first needs the rest.
_MOST_TOKENS = 2048
# How often a model is asked if it gives no grade.
TRIES = 3
_REMINDER = '\n\nThe answer is one digit, 0, 1, 2 or 3, and nothing else.'
# An answer may say the scale again.
_SCALE = re.compile(r'\(?\b0\s?(?:-|–|to)\s?3\b\)?')
# 'the grade is 1', 'Final answer: **2**': a statement, before what only mentions a grade.
_STATED = re.compile(
    r'(?:grade|score|answer)(?:\s+is|\s*[:=])\W{0,5}(?<!-)(\d{1,6})(?!\d|\.\d)', re.IGNORECASE
)
_NAMED = re.compile(r'(?:grade|score)\W{0,5}(?<!-)(\d{1,6})(?!\d|\.\d)', re.IGNORECASE)
_NUMBER = re.compile(r'(?<![\d.-])\d{1,6}(?![\d.]?\d)')


@dataclass
class JudgingWork(AnswerTotals):
    """What a judge did; answers that were kept from before count, too.

    Attributes
    ----------
    calls : requests to its address
    malformed : answers without a grade
    """

    calls: int = 0
    malformed: int = 0


class LanguageModelJudge:
    """A language model that grades passages.

    Parameters
    ----------
    llm : which model, where, and the file of its answers
    prompt : a text file instead of the shipped prompt, with {query} and {passage}

    Attributes
    ----------
    judge : under which its grades are stored
    work : its work so far
    """

    def __init__(self, llm: LanguageModelSettings, prompt: str | None = None) -> None:
        self._model = LanguageModel(llm)
        self._prompt = read_prompt('judge', prompt, ('query', 'passage'))
        self.judge = ModelJudge(llm.model, self._prompt.sha256)
        self.work = JudgingWork()

    def grade(self, question: str, passage: str) -> int | None:
        """The grade of a passage, 0 to 3; None if the model gives none in `TRIES` answers.

        A further request has a reminder of the form, so that its answer is kept, too. Raises the
        errors of `LanguageModel.ask`.
        """
        prompt = self._prompt.fill({'query': question, 'passage': cut_words(passage, WORDS)})
        for n_reminders in range(TRIES):
            reply = self._model.ask(question, prompt + n_reminders * _REMINDER, _MOST_TOKENS)
            grade = parse_grade(reply.answer.text)
            self._count(reply, grade is None)
            if grade is not None:
                return grade
        return None

    def _count(self, reply: Reply, is_malformed: bool) -> None:
        """Count an answer."""
        self.work.add(reply.answer)
        self.work.calls += reply.is_new
        self.work.malformed += is_malformed


def parse_grade(text: str) -> int | None:
    """The grade in an answer; None if it gives none, or one beyond 0 to 3.

    A stated number counts, 'the grade is 1' or 'answer: 2'; otherwise a number after 'grade' or
    'score'. Of several, the last one counts. Without these words, the number which the answer has
    counts, if it has one only.
    """
    answer = _SCALE.sub('', without_thought(text))
    named = _STATED.findall(answer) or _NAMED.findall(answer)
    numbers = named[-1:] or sorted(set(_NUMBER.findall(answer)))
    if len(numbers) != 1:
        return None
    grade = int(numbers[0])
    return grade if grade <= MAX_MODEL_GRADE else None
