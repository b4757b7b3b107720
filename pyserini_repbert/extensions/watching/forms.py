"""The forms of the history of a collection, over HTTP."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.serve.answer_models import OfIndex


class MeanResponse(TypedDict):
    """A mean over questions, and its 95% interval."""

    mean: Annotated[float, Field(description='over the questions')]
    low: Annotated[float, Field(description='bootstrap percentile over questions, 2.5%')]
    high: Annotated[float, Field(description='bootstrap percentile over questions, 97.5%')]


class QuestionFigures(TypedDict):
    """How well a question was answered."""

    ndcg: Annotated[float, Field(description='nDCG@10; unjudged documents are not relevant')]
    condensed: Annotated[float, Field(description='nDCG@10 of only the judged documents')]
    answered: Annotated[
        float | None, Field(description='probability of being answered; null if unknown')
    ]


class MovedQuestionResponse(TypedDict):
    """A question whose answer has changed."""

    question: Annotated[str, Field(description='the question')]
    before: Annotated[QuestionFigures, Field(description='in the previous generation')]
    after: Annotated[QuestionFigures, Field(description='in this generation')]
    left: Annotated[
        list[str], Field(description='relevant documents that are no longer among the best ten')
    ]
    deleted: Annotated[list[str], Field(description='the ones that the collection no longer has')]
    entered: Annotated[list[str], Field(description='documents that are newly among the best ten')]
    unjudged: Annotated[list[str], Field(description='the ones that nobody has judged')]


class ChangeResponse(TypedDict):
    """A generation compared with the previous measured one."""

    since: Annotated[int, Field(description='number of the previous generation')]
    ndcg: Annotated[MeanResponse, Field(description='difference in nDCG@10')]
    condensed: Annotated[
        MeanResponse, Field(description='difference in nDCG@10 of only the judged documents')
    ]
    questions: Annotated[
        list[MovedQuestionResponse],
        Field(description='the ones that moved, the greatest loss of judged documents first'),
    ]


class UnansweredQuestion(TypedDict):
    """A question without a relevant document among the best ten."""

    question: Annotated[str, Field(description='the question')]
    answered: Annotated[
        float | None, Field(description='probability of being answered; null if unknown')
    ]


class GenerationFigures(TypedDict):
    """What the judged questions found in a generation."""

    generation: Annotated[int, Field(description='its number')]
    measured: Annotated[str, Field(description="when they were measured, in ISO's form")]
    questions: Annotated[int, Field(description='the number of questions measured')]
    with_relevant: Annotated[
        int,
        Field(
            description='the number of them with a relevant document, for which nDCG@10 has a value'
        ),
    ]
    judged_share: Annotated[float, Field(description='of the documents among the best ten')]
    ndcg: Annotated[MeanResponse, Field(description='nDCG@10; unjudged are not relevant')]
    condensed: Annotated[MeanResponse, Field(description='nDCG@10 of only the judged documents')]
    answered: Annotated[
        float | None, Field(description='mean probability of being answered; null if unknown')
    ]
    unanswered: Annotated[
        list[UnansweredQuestion],
        Field(
            description='questions without a relevant document among the best ten, the '
            'probably answered ones first'
        ),
    ]
    change: Annotated[
        ChangeResponse | None,
        Field(
            description='null unless the previous generation was measured with the same judgments'
        ),
    ]


class HistoryResponse(OfIndex):
    """How well the judged questions were answered, generation by generation."""

    generations: Annotated[
        list[GenerationFigures], Field(description='the measured generations, the newest last')
    ]
    is_newest: Annotated[
        bool,
        Field(
            description='whether the last one matches the present documents, judgments and settings'
        ),
    ]
