"""The forms of answers: as Pyserini's and Anserini's servers have them, with additions.

An answer is a dictionary of such a form from the moment it is made, and its fields are sent in the
order in which it was made. The OpenAPI document describes the same forms. `NotRequired`: the field
may be absent.
"""

from __future__ import annotations

from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,  # pydantic needs this one below Python 3.12
)

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from pyserini_repbert.serve.added_fields import with_added_fields

API: Final = 'v1'


class Answered(TypedDict):
    """An answer of this version of the API."""

    api: Annotated[Literal['v1'], Field(description='the version of the API')]


class OfIndex(Answered):
    """An answer of an index."""

    index: Annotated[str, Field(description='name of the index')]


class Place(TypedDict):
    """A hit's rank and score in a ranking; null if the ranking lacks the hit, or has it below
    rank `below`.
    """

    ranking: Annotated[str, Field(description='name of the ranking')]
    rank: Annotated[int | None, Field(description='rank of the hit, from 1')]
    score: Annotated[float | None, Field(description='score of the hit in this ranking')]
    below: Annotated[
        int | None,
        Field(
            description='the number of known ranks, if the hit is below them; null if the ranking '
            'lacks the hit'
        ),
    ]


class Part(TypedDict):
    """A part of a passage. Parts show its first 20,000 characters."""

    text: Annotated[str, Field(description='a word of the query, or the text between such words')]
    match: Annotated[bool, Field(description='whether it is a word of the query')]


class PassageSpan(TypedDict):
    """Where a passage is in its document."""

    number: Annotated[int, Field(description='number of the passage, from 0')]
    start: Annotated[int, Field(description="its first character of the document's text, from 0")]
    end: Annotated[int, Field(description='the character after its last')]
    shown: Annotated[
        list[int],
        Field(
            description='the first character of its part that answers the question, such as a '
            'section or a function, and the one after its last'
        ),
    ]
    headings: Annotated[
        list[str], Field(description='the headings of that part, the highest first')
    ]
    anchor: Annotated[
        str, Field(description="of the last heading, such as 'ports'; '' if it has none")
    ]
    file: Annotated[str, Field(description="of the document, in its source; '' if unknown")]
    line: Annotated[
        int | None,
        Field(
            description='the line of the file at which that part begins, from 1; null without lines'
        ),
    ]
    row: Annotated[
        int | None,
        Field(
            description='of Parquet and Excel: the number of the row in the file, from 1; '
            'otherwise null'
        ),
    ]
    last_page: Annotated[
        int | None,
        Field(
            description='of a PDF, if no word tells which of its printed pages answers: the page '
            'on which the passage ends (the anchor names the page on which it begins); otherwise '
            'null'
        ),
    ]
    is_code: Annotated[bool, Field(description='whether the file is the source of a program')]


@with_added_fields('hit_fields')
class CandidateResponse(TypedDict):
    """A hit."""

    docid: Annotated[str, Field(description='docid of the passage or document')]
    doc: Annotated[
        Any,
        Field(
            description='as in Pyserini: text, or an object if several fields are stored; of a '
            'collection: the best passage of the document'
        ),
    ]
    title: NotRequired[
        Annotated[str | None, Field(description="of a collection: the document's title")]
    ]
    passage: NotRequired[
        Annotated[
            PassageSpan | None,
            Field(
                description='of a collection: where the best passage is; null for a document '
                'without text'
            ),
        ]
    ]
    url: NotRequired[
        Annotated[
            str | None,
            Field(
                description="of a collection: the address of the document's source, at the "
                "passage; '' if it has none"
            ),
        ]
    ]
    fields: NotRequired[
        Annotated[
            dict[str, Any] | None,
            Field(description='of a collection: the requested fields of the document'),
        ]
    ]
    also_in: NotRequired[
        Annotated[
            list[str],
            Field(description='with group_copies=true: docids of other files with the same text'),
        ]
    ]
    score: Annotated[float, Field(description='score in the last ranking')]
    rank: Annotated[int, Field(description='rank, from 1')]
    display: NotRequired[
        Annotated[
            list[Part] | None,
            Field(
                description="with display=true: the passage, cleaned up for reading; a document's "
                'is cut around the words of the query'
            ),
        ]
    ]
    provenance: NotRequired[
        Annotated[
            list[Place] | None, Field(description='with provenance=true: its rank in each ranking')
        ]
    ]
    grade: NotRequired[
        Annotated[
            int | None,
            Field(description='with provenance=true: its grade, if the query is a judged topic'),
        ]
    ]


class Judged(TypedDict):
    """The judged topic with the query's text."""

    qid: Annotated[str, Field(description='qid of the topic')]
    relevant: Annotated[dict[str, int], Field(description='the grade of each relevant passage')]
    measures: Annotated[
        dict[str, Any],
        Field(description='nDCG@10, MRR@10 and R@100; of a comparison, for each side'),
    ]


class Step(TypedDict):
    """The cost of a step of an answer."""

    step: Annotated[str, Field(description='a ranking, the fusion, or a reranker with its depth')]
    ms: Annotated[float, Field(description='milliseconds of wall clock, waiting included')]
    inferences: Annotated[int, Field(description='model inputs')]
    candidates: Annotated[
        int, Field(description='hits of the ranking, or the number that a reranker read')
    ]
    tokens: NotRequired[Annotated[int | None, Field(description='tokens that a reranker read')]]
    truncated: NotRequired[
        Annotated[int | None, Field(description='passages that a reranker truncated')]
    ]
    precision: NotRequired[
        Annotated[
            str | None, Field(description='number format of a reranker, such as float32 or int8')
        ]
    ]


@with_added_fields('answer_fields')
class SearchResponse(OfIndex):
    """Hits, in the form of Pyserini's server with additions."""

    query: Annotated[
        dict[str, str],
        Field(description='the question, as `text`; for a document instead, its docid as `like`'),
    ]
    candidates: Annotated[list[CandidateResponse], Field(description='the hits, best first')]
    system: Annotated[list[str], Field(description='the requested rankings')]
    fusion: Annotated[str | None, Field(description='how they were fused; null for one ranking')]
    rerank: Annotated[list[str], Field(description='the rerankers, in order')]
    generation: NotRequired[
        Annotated[
            int | None,
            Field(description='of a collection: the number of the searched generation'),
        ]
    ]
    warnings: NotRequired[
        Annotated[
            list[str] | None,
            Field(description='warnings for the user, for example about a query without words'),
        ]
    ]
    steps: Annotated[list[Step], Field(description='what each step cost')]
    rankings: NotRequired[
        Annotated[
            list[str] | None,
            Field(description='with provenance=true: the names of the rankings, in order'),
        ]
    ]
    judged: NotRequired[
        Annotated[
            Judged | None, Field(description='with provenance=true, if the query is a judged topic')
        ]
    ]
    explanations: NotRequired[
        Annotated[
            list[dict[str, Any]] | None,
            Field(description='with explain=MODEL: explanations, in the form of /explain'),
        ]
    ]
    qid: NotRequired[
        Annotated[
            str | None, Field(description='of a query of a batch: its qid, or its number from 0')
        ]
    ]


class BatchResponse(OfIndex):
    """The answers, in the order of the queries."""

    results: Annotated[list[SearchResponse], Field(description='one for each query')]


class CompareResponse(OfIndex):
    """Two answers side by side."""

    query: Annotated[
        dict[str, str],
        Field(description='the question, as `text`; for a document instead, its docid as `like`'),
    ]
    a: Annotated[SearchResponse, Field(description='the left side')]
    b: Annotated[SearchResponse, Field(description='the right side')]
    overlap: Annotated[float, Field(description='share of hits on both sides')]
    rbo: Annotated[float, Field(description='rank-biased overlap, p=0.9')]
    moves: Annotated[
        list[dict[str, str | int | None]],
        Field(
            description='ranks of each hit on both sides; null if a side lacks it, or has it below '
            '`depths`'
        ),
    ]
    depths: Annotated[
        dict[str, int | None],
        Field(description='the number of known ranks on each side; null if all are known'),
    ]
    judged: Annotated[Judged | None, Field(description='if the query is a judged topic')]


class ProgressResponse(Answered):
    """The progress of a stage of a request."""

    stage: Annotated[str, Field(description='the reranker at work')]
    done: Annotated[int, Field(description='model inputs so far')]
    total: Annotated[int | None, Field(description='model inputs in all, if known')]


class WordWeightResponse(TypedDict):
    """A word, and what it adds to a score."""

    word: Annotated[str, Field(description='of the question, or of the sentence')]
    weight: Annotated[
        float,
        Field(description='what it adds; for a sentence, how much its score falls without it'),
    ]


class ReasonResponse(TypedDict):
    """Why a ranking ranks a document where it does."""

    docid: Annotated[str, Field(description='docid of the document')]
    kind: Annotated[
        str,
        Field(
            description='words: of the question, with their weights (BM25); terms and tokens: of a '
            'model, with theirs; sentence: the nearest to the question (vectors)'
        ),
    ]
    ranking: Annotated[str, Field(description='its name')]
    words: Annotated[
        list[WordWeightResponse], Field(description='at most 20, the greatest weight first')
    ]
    sentence: NotRequired[Annotated[str | None, Field(description='of the kind sentence')]]
    start: NotRequired[
        Annotated[int | None, Field(description="its first character of the document's text")]
    ]
    end: NotRequired[Annotated[int | None, Field(description='the character after its last')]]


class ExplainResponse(OfIndex):
    """Why hits rank where they do; more fields depend on the system."""

    __pydantic_config__ = ConfigDict(extra='allow')  # type: ignore[misc]

    model: Annotated[str, Field(description="the reranker's name")]
    system: Annotated[
        str,
        Field(
            description='epic, cedr, duobert or monobert; own for another reranker, with scores '
            "and perhaps tables; rankings for a collection's rankings"
        ),
    ]
    query: Annotated[str, Field(description='the question')]
    passages: NotRequired[
        Annotated[
            list[dict[str, Any]] | None,
            Field(description='of EPIC and CEDR: an explanation of each passage'),
        ]
    ]
    docids: NotRequired[
        Annotated[list[str] | None, Field(description='of monoBERT and duoBERT: the passages')]
    ]
    reasons: NotRequired[
        Annotated[
            list[ReasonResponse] | None,
            Field(description='for rankings: why each ranks the document'),
        ]
    ]


class ValueCountResponse(TypedDict):
    """A value of a field, as a filter names it."""

    value: Annotated[str, Field(description='the value')]
    documents: Annotated[int, Field(description='the number of documents that have it')]


class SourceResponse(TypedDict):
    """Where documents of a collection come from."""

    name: Annotated[str, Field(description='its name, or the last part of its path')]
    documents: Annotated[int, Field(description='the number of its documents in the collection')]
    files: Annotated[int, Field(description='the number of files that they come from')]
    rows: Annotated[int, Field(description='the number of documents that are rows of tables')]
    synced: Annotated[str, Field(description="when it was last synced; '' if unknown")]
    unread: Annotated[
        str,
        Field(description="the files that were not read then, in one line; '' if all were read"),
    ]


class FieldCountResponse(TypedDict):
    """How many documents have a field."""

    documents: Annotated[int, Field(description='with any value of it')]
    values: Annotated[
        list[ValueCountResponse],
        Field(
            description='its values, the most frequent first; empty if there are more than 20, or '
            'if one has more than 200 characters'
        ),
    ]


WriteState = Literal['waiting', 'writing', 'done', 'failed']


class WriteResponse(OfIndex):
    """A write and its progress."""

    job: Annotated[str, Field(description='names the write in /v1/{index}/writes/{job}')]
    state: Annotated[WriteState, Field(description='its progress')]
    documents: Annotated[
        int,
        Field(
            description='the number of documents that it adds, replaces or deletes; 0 for a sync'
        ),
    ]
    generation: Annotated[
        int | None,
        Field(description='the generation in which searches find it; null until it is done'),
    ]
    changes: Annotated[
        dict[str, int] | None,
        Field(
            description='added, changed, deleted and unchanged documents, including other writes '
            'of the same generation; null until it is done'
        ),
    ]
    error: Annotated[str | None, Field(description='why it failed')]


@with_added_fields('index_fields')
class IndexInfo(TypedDict):
    """What you may ask of an index."""

    name: Annotated[str, Field(description='name of the index')]
    index_type: Annotated[str, Field(description='tf (Lucene), dense, faiss, impact or collection')]
    passages: Annotated[int, Field(description='the number of its passages')]
    encoder: Annotated[str | None, Field(description='the encoder of a dense index')]
    base_index: Annotated[
        str | None, Field(description='the index that provides texts and sparse rankings')
    ]
    systems: Annotated[list[str], Field(description='the rankings that a search may name')]
    default: Annotated[
        list[str], Field(description='the rankings that a search fuses if it names none')
    ]
    like: Annotated[
        list[str], Field(description='the rankings that accept a document instead of a question')
    ]
    fusions: Annotated[list[str], Field(description='ways to fuse rankings')]
    rerankers: Annotated[list[dict[str, str]], Field(description='the name and the system of each')]
    topics: Annotated[int, Field(description='the number of its topics')]
    judging: Annotated[bool, Field(description='whether it takes judgments')]
    learning: Annotated[bool, Field(description='whether it learns from judgments')]
    judged_topics: Annotated[int, Field(description='the number of topics with judgments')]
    limits: Annotated[dict[str, int], Field(description='the greatest values accepted')]
    documents: NotRequired[
        Annotated[int | None, Field(description='of a collection: the number of its documents')]
    ]
    language: NotRequired[
        Annotated[
            str | None, Field(description="of Lucene's analyzer; null for an index without words")
        ]
    ]
    generation: NotRequired[
        Annotated[
            int | None,
            Field(description='of a collection: the number of the served generation'),
        ]
    ]
    fields: NotRequired[
        Annotated[
            dict[str, list[str]] | None,
            Field(
                description="of a collection: its documents' fields, each with the types of its "
                'values; of more than 1,000, those that most documents have'
            ),
        ]
    ]
    field_counts: NotRequired[
        Annotated[
            dict[str, FieldCountResponse] | None,
            Field(description='of a collection: the number of documents with each field and value'),
        ]
    ]
    sources: NotRequired[
        Annotated[
            list[SourceResponse] | None,
            Field(description='of a collection: where its documents come from'),
        ]
    ]
    fusion: NotRequired[
        Annotated[
            str | None,
            Field(description='of a collection: how its rankings are fused by default'),
        ]
    ]
    weights: NotRequired[
        Annotated[
            list[float] | None,
            Field(description='of a collection: the weight of each ranking in that fusion'),
        ]
    ]
    normalize: NotRequired[
        Annotated[
            str | None,
            Field(description='of a collection: what that fusion does to scores first'),
        ]
    ]


class IndexesResponse(Answered):
    """The indexes of a service."""

    indexes: Annotated[list[IndexInfo], Field(description='all indexes')]


class IndexResponse(IndexInfo, Answered):
    """An index."""


class DocumentResponse(OfIndex):
    """A document."""

    docid: Annotated[str, Field(description='docid of the document')]
    doc: Annotated[
        Any,
        Field(
            description='as in Pyserini: text, or an object if several fields are stored; of a '
            'collection: an object of title, text and fields, or only the text if it has nothing '
            'else'
        ),
    ]
    display: NotRequired[
        Annotated[
            list[Part] | None,
            Field(description='with display=true: the document, cleaned up for reading'),
        ]
    ]


class TextPartResponse(OfIndex):
    """A part of the text of a document."""

    docid: Annotated[str, Field(description='docid of the document')]
    start: Annotated[int, Field(description='its first character, from 0')]
    end: Annotated[int, Field(description='the character after its last')]
    length: Annotated[int, Field(description='characters of the whole text')]
    text: Annotated[str, Field(description='the part')]
    words: Annotated[
        list[list[int]],
        Field(
            description='of each word of the query in it, its first character in the whole text, '
            'and the character after its last'
        ),
    ]
    code: Annotated[
        list[list[int]],
        Field(
            description='of the lines that are code, the first character in the whole text, and '
            'the character after the last'
        ),
    ]


class OutlinedHeading(TypedDict):
    """A heading of a document."""

    start: Annotated[int, Field(description='the character of the text at which it begins')]
    level: Annotated[int, Field(description='from 1, the highest')]
    title: Annotated[str, Field(description='its words')]
    anchor: Annotated[str, Field(description="its address in the page; '' if it has none")]


class OutlinedPage(TypedDict):
    """A printed page of a document, such as a PDF."""

    start: Annotated[int, Field(description='the character of the text at which it begins')]
    page: Annotated[int, Field(description='its number, from 1')]


class OutlinedPassage(TypedDict):
    """The part of a document's passage that answers a question, such as a section."""

    start: Annotated[int, Field(description='its first character of the text, from 0')]
    end: Annotated[int, Field(description='the character after its last')]
    rank: Annotated[
        int,
        Field(description="among the document's parts, from 1: first the one that hits show"),
    ]


class OutlineResponse(OfIndex):
    """A document without its text."""

    docid: Annotated[str, Field(description='docid of the document')]
    title: Annotated[str, Field(description="its title; '' if it has none")]
    length: Annotated[int, Field(description='characters of its text')]
    file: Annotated[str, Field(description="its file in its source; '' if unknown")]
    line: Annotated[
        int | None,
        Field(description='the line of the file at which it begins, from 1; null without lines'),
    ]
    row: Annotated[
        int | None,
        Field(
            description='of Parquet and Excel: the number of the row in the file, from 1; '
            'otherwise null'
        ),
    ]
    url: Annotated[str, Field(description="the address of its source; '' if it has none")]
    is_code: Annotated[bool, Field(description='whether it is the source of a program')]
    fields: Annotated[
        dict[str, Any],
        Field(description='of a collection: its fields, such as the sender of a mail'),
    ]
    headings: Annotated[
        list[OutlinedHeading],
        Field(description='in their order; without the lower levels if there are many'),
    ]
    pages: Annotated[
        list[OutlinedPage],
        Field(description='of a PDF: its printed pages with text, in their order'),
    ]
    passages: Annotated[
        list[OutlinedPassage],
        Field(description='of a collection: the best ones for the query, in their order'),
    ]


class TopicsResponse(OfIndex):
    """Questions to try."""

    topics: Annotated[
        list[dict[str, Any]], Field(description='qid, text, and whether it is judged')
    ]


class QrelsResponse(OfIndex):
    """The judgments of a topic: docid -> grade."""

    qid: Annotated[str, Field(description='qid of the topic')]
    text: Annotated[str | None, Field(description='the question, if known')]
    grades: Annotated[dict[str, int], Field(description='the grade of each judged passage')]


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
