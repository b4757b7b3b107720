"""What the judged questions of a collection found, generation by generation."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pyserini_repbert.collection.judging.asking import MeanOfQuestions

_CONFIG = ConfigDict(strict=True, extra='forbid', defer_build=True)
_Count = Annotated[int, Field(ge=0)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, config=_CONFIG)
class MeasuredQuestion:
    """How well a judged question was answered.

    Attributes
    ----------
    qid, question : of the judgments
    ndcg : nDCG@10; unjudged documents count as not relevant
    condensed : nDCG@10 of only the judged documents
    answered : P(answered); None if it is not known
    """

    qid: str
    question: str
    ndcg: _Share
    condensed: _Share
    answered: _Share | None


@dataclass(frozen=True, config=_CONFIG)
class MovedQuestion:
    """A question whose answer differs from the one in the previous generation.

    Attributes
    ----------
    before, after : the measured values
    left : relevant documents that were among the best ten, and no longer are
    deleted : which of them the collection no longer has
    entered : documents that are among the best ten, and were not, best first
    unjudged : which of them nobody has judged for the question
    """

    before: MeasuredQuestion
    after: MeasuredQuestion
    left: tuple[str, ...]
    deleted: tuple[str, ...]
    entered: tuple[str, ...]
    unjudged: tuple[str, ...]

    @property
    def loss(self) -> float:
        """How much the nDCG@10 of the judged documents fell; below 0 if it rose."""
        return self.before.condensed - self.after.condensed


@dataclass(frozen=True, config=_CONFIG)
class GenerationChange:
    """A generation against the one that was measured before it, by the same judgments.

    Attributes
    ----------
    since : the number of the generation before
    ndcg, condensed : the differences of the means
    questions : those that moved, the greatest loss first
    """

    since: _Count
    ndcg: MeanOfQuestions
    condensed: MeanOfQuestions
    questions: tuple[MovedQuestion, ...]

    @property
    def n_fallen(self) -> int:
        """How many questions lost, by their judged documents."""
        return sum(question.loss > 0 for question in self.questions)


@dataclass(frozen=True, config=_CONFIG)
class MeasuredGeneration:
    """What the judged questions found in a generation.

    Attributes
    ----------
    generation : its number
    manifest_sha256 : digest of the generation
    measured : when, in ISO's form and UTC
    asked : digest of the judgments, and of the way of searching
    judged_share : of the documents among the best ten
    ndcg, condensed : means of the questions' values
    answered : mean P(answered); None if it is not known
    questions : those with a relevant document, in the order of the judgments
    change : since the generation before; None if that was not measured by the same judgments
    without_relevant : the judged questions for which nobody judged a document relevant; they found
        nothing, and no measure has a value for them
    """

    generation: _Count
    manifest_sha256: str
    measured: str
    asked: str
    judged_share: _Share
    ndcg: MeanOfQuestions
    condensed: MeanOfQuestions
    answered: _Share | None
    questions: tuple[MeasuredQuestion, ...]
    change: GenerationChange | None = None
    without_relevant: tuple[MeasuredQuestion, ...] = ()

    @property
    def n_asked(self) -> int:
        """How many judged questions were asked."""
        return len(self.questions) + len(self.without_relevant)

    @property
    def unanswered(self) -> list[MeasuredQuestion]:
        """The questions without a relevant document among the best ten, the surest first.

        These are wrong answers that look right.
        """
        questions = [question for question in self.questions if question.ndcg == 0]
        questions += self.without_relevant
        return sorted(questions, key=lambda question: -(question.answered or 0.0))
