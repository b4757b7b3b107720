"""The forms of answers about judging and learning, as in `answer_models`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from pyserini_repbert.serve.answer_models import OfIndex, Part


class QuestionState(TypedDict):
    """A question to judge."""

    text: Annotated[str, Field(description='the question')]
    judged: Annotated[
        int, Field(description='the number of documents that the judge has judged for it')
    ]
    pooled: Annotated[
        int | None, Field(description='documents of its newest pool; null without one')
    ]


class QuestionsResponse(OfIndex):
    """The questions to judge, in order."""

    judge: Annotated[str, Field(description='whose judgments are counted')]
    questions: Annotated[
        list[QuestionState], Field(description='the given questions, then the topics')
    ]
    total: Annotated[int, Field(description='their number')]
    judged: Annotated[int, Field(description='questions with at least one judgment of the judge')]


class PooledDocument(TypedDict):
    """A document to judge, without its rank, its score, or the ranking that found it."""

    docid: Annotated[str, Field(description='docid of the passage or document')]
    title: Annotated[str | None, Field(description='its title')]
    text: Annotated[
        str,
        Field(
            description='of a collection the part of its best passage that answers, as of a hit, '
            'otherwise the whole text'
        ),
    ]
    start: Annotated[int | None, Field(description='of a collection: first character of that part')]
    end: Annotated[int | None, Field(description='of a collection: the character after its last')]
    headings: Annotated[
        list[str],
        Field(description='of a collection: the headings of that part, the highest first'),
    ]
    display: Annotated[
        list[Part], Field(description='the text in parts, words of the question marked')
    ]
    fields: Annotated[dict[str, Any], Field(description="of a collection: the document's fields")]
    same_as: Annotated[
        str | None,
        Field(
            description='docid of the first document of the pool with the same title and text; '
            'null for that one, and if there is no other'
        ),
    ]
    grade: Annotated[
        int | None, Field(description="the judge's grade; null if the judge has not graded it")
    ]
    comment: Annotated[str, Field(description='of the judge')]


class PoolResponse(OfIndex):
    """The best documents of every ranking, in an order that favours none."""

    pool: Annotated[str, Field(description='to be sent with judgments')]
    question: Annotated[str, Field(description='the question')]
    documents: Annotated[list[PooledDocument], Field(description='to be judged, in this order')]


class JudgmentInfo(TypedDict):
    """A grade of a document for a question."""

    question: Annotated[str, Field(description='the question')]
    docid: Annotated[str, Field(description='docid of the document')]
    grade: Annotated[int, Field(description='0: not relevant')]
    judge: Annotated[str, Field(description='who judged')]
    comment: Annotated[str, Field(description='of the judge')]
    pool: Annotated[str, Field(description='from which the document was shown; empty for none')]
    judged: Annotated[str, Field(description="when, in ISO's form")]
    is_older: Annotated[bool, Field(description='whether the document has changed since')]


class AgreementInfo(TypedDict):
    """How far two judges agree."""

    judges: Annotated[list[str], Field(description='their names')]
    documents: Annotated[int, Field(description='that both judged')]
    kappa: Annotated[float | None, Field(description="Cohen's kappa; null if it is undefined")]


class JudgmentsResponse(OfIndex):
    """Judgments, and how far judges agree."""

    judgments: Annotated[list[JudgmentInfo], Field(description='by question and time')]
    agreement: Annotated[list[AgreementInfo], Field(description='of each pair of judges')]


class StoredResponse(OfIndex):
    """The judgments stored."""

    stored: Annotated[int, Field(description='judgments')]


class DeletedResponse(OfIndex):
    """The judgments taken back."""

    deleted: Annotated[int, Field(description='judgments')]


class QuestionGain(TypedDict):
    """A question's nDCG@10."""

    question: Annotated[str, Field(description='the question')]
    before: Annotated[float, Field(description='with the present search')]
    after: Annotated[float, Field(description='with the offered search, chosen by other questions')]


class LearningReport(TypedDict):
    """What a learning gained on held-out questions."""

    gain: Annotated[float, Field(description='mean nDCG@10 minus the mean nDCG@10 of `baseline`')]
    standard_error: Annotated[float, Field(description='of the gain')]
    low: Annotated[float, Field(description='of the 95% interval of the gain')]
    high: Annotated[float, Field(description='of the 95% interval of the gain')]
    p: Annotated[float, Field(description='of the paired t-test, two-sided')]
    is_convincing: Annotated[bool, Field(description='whether the gain is more than noise')]
    is_worth_using: Annotated[
        bool,
        Field(
            description='whether the gain is more than noise, or likely at little risk; otherwise '
            'it is used only with `even_if_worse`'
        ),
    ]
    baseline: Annotated[str, Field(description='the present search, a name of `means`')]
    winner: Annotated[
        str, Field(description='the best search, a name of `means`; `baseline`: the present one')
    ]
    topics: Annotated[int, Field(description='questions that were learned from')]
    means: Annotated[dict[str, float], Field(description='mean nDCG@10 of each ranking')]
    questions: Annotated[list[QuestionGain], Field(description='each question')]
    sentence: Annotated[str, Field(description='its words')]


class LearningResponse(OfIndex):
    """The progress of learning, its gain, and whether it is in use."""

    state: Annotated[
        Literal['none', 'running', 'done', 'failed'], Field(description='of the last one')
    ]
    done: Annotated[int, Field(description='finished steps')]
    total: Annotated[int, Field(description='steps in all')]
    error: Annotated[str | None, Field(description='why it failed')]
    due: Annotated[str | None, Field(description='why it is time to learn again')]
    in_use: Annotated[bool, Field(description='whether searches use what it learned')]
    questions_judged: Annotated[int, Field(description='questions with a relevant document')]
    questions_needed: Annotated[int, Field(description='the number needed')]
    report: Annotated[LearningReport | None, Field(description='of the last finished one')]
