"""The forms of answers in the OpenAPI document: those of Pyserini's and Anserini's servers, with
additions.

The answers themselves are plain values; a field that has a default here may be absent.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pyserini_repbert.serve.searching import Step


class Answered(BaseModel):
    """An answer of this version of the API."""

    api: Literal['v1'] = Field(description='the version of the API')


class OfIndex(Answered):
    """An answer of an index."""

    index: str = Field(description='name of the index')


class Place(BaseModel):
    """A hit's rank and score in a ranking; null if the ranking lacks the hit, or has it below
    rank `below`.
    """

    ranking: str = Field(description='name of the ranking')
    rank: int | None = Field(description='rank of the hit, from 1')
    score: float | None = Field(description='score of the hit in this ranking')
    below: int | None = Field(
        description='how many ranks are known, if the hit is below them; null if the ranking '
        'lacks the hit'
    )


class Part(BaseModel):
    """A part of a passage, of which the first 20,000 characters are shown."""

    text: str = Field(description='a word of the query, or the text between such words')
    match: bool = Field(description='whether it is a word of the query')


class PassageSpan(BaseModel):
    """Where a passage is in its document."""

    number: int = Field(description='number of the passage, from 0')
    start: int = Field(description="its first character of the document's text, from 0")
    end: int = Field(description='the character after its last')


class CandidateResponse(BaseModel):
    """A hit."""

    docid: str = Field(description='docid of the passage or document')
    doc: Any = Field(
        description='as in Pyserini: text, or an object where several fields are stored; of a '
        'collection: the best passage of the document'
    )
    title: str | None = Field(None, description="of a collection: the document's title")
    passage: PassageSpan | None = Field(
        None,
        description='of a collection: where the best passage is; null for a document without text',
    )
    fields: dict[str, Any] | None = Field(
        None, description="of a collection: the document's fields that were asked for"
    )
    score: float = Field(description='score in the last ranking')
    rank: int = Field(description='rank, from 1')
    display: list[Part] | None = Field(
        None,
        description='with display=true: the passage, cleaned up for reading; that of a document is '
        'cut around the words of the query',
    )
    provenance: list[Place] | None = Field(
        None, description='with provenance=true: its rank in each ranking'
    )
    grade: int | None = Field(
        None, description='with provenance=true: its grade, if the query is a judged topic'
    )


class Judged(BaseModel):
    """The judged topic whose text the query is."""

    qid: str = Field(description='qid of the topic')
    relevant: dict[str, int] = Field(description='the grade of each relevant passage')
    measures: dict[str, Any] = Field(
        description='nDCG@10, MRR@10 and R@100; of a comparison, those of each side'
    )


class SearchResponse(OfIndex):
    """Hits, in the form of Pyserini's server with additions."""

    query: dict[str, str] = Field(
        description='the question, as `text`; of a document in its place, its docid as `like`'
    )
    candidates: list[CandidateResponse] = Field(description='the hits, best first')
    system: list[str] = Field(description='the rankings that were asked for')
    fusion: str | None = Field(description='how they were fused; null for one ranking')
    rerank: list[str] = Field(description='the rerankers, in order')
    generation: int | None = Field(
        None, description='of a collection: the number of the generation that was searched'
    )
    warnings: list[str] | None = Field(
        None, description='warnings for the user, such as of a query without any word'
    )
    steps: list[Step] = Field(description='what each step cost')
    rankings: list[str] | None = Field(
        None, description='with provenance=true: the names of the rankings, in order'
    )
    judged: Judged | None = Field(
        None, description='with provenance=true, if the query is a judged topic'
    )
    explanations: list[dict[str, Any]] | None = Field(
        None, description='with explain=MODEL: explanations, in the form of /explain'
    )
    qid: str | None = Field(
        None, description='of a query of a batch: its qid, or its number from 0'
    )


class BatchResponse(OfIndex):
    """The answers, in the order of the queries."""

    results: list[SearchResponse] = Field(description='one for each query')


class CompareResponse(OfIndex):
    """Two answers side by side."""

    query: dict[str, str] = Field(
        description='the question, as `text`; of a document in its place, its docid as `like`'
    )
    a: SearchResponse = Field(description='the left side')
    b: SearchResponse = Field(description='the right side')
    overlap: float = Field(description='share of hits that both sides have')
    rbo: float = Field(description='rank-biased overlap, p=0.9')
    moves: list[dict[str, str | int | None]] = Field(
        description='ranks of each hit on both sides; null if a side lacks it, or has it below '
        '`depths`'
    )
    depths: dict[str, int | None] = Field(
        description='how many ranks of each side are known; null if all are'
    )
    judged: Judged | None = Field(description='if the query is a judged topic')


class ProgressResponse(Answered):
    """The progress of a stage of a request."""

    stage: str = Field(description='the reranker that is at work')
    done: int = Field(description='model inputs so far')
    total: int | None = Field(description='model inputs in all, if known')


class ExplainResponse(OfIndex):
    """Why hits rank where they do; more fields depend on the system."""

    model_config = ConfigDict(extra='allow')

    model: str = Field(description="the reranker's name")
    system: str = Field(
        description='epic, cedr, duobert or monobert; own for another reranker, with scores and '
        'perhaps tables'
    )
    query: str = Field(description='the question')
    passages: list[dict[str, Any]] | None = Field(
        None, description='of EPIC and CEDR: an explanation of each passage'
    )
    docids: list[str] | None = Field(None, description='of monoBERT and duoBERT: the passages')


class ValueCountResponse(BaseModel):
    """A value of a field, as a filter names it."""

    value: str = Field(description='the value')
    documents: int = Field(description='how many documents have it')


class FieldCountResponse(BaseModel):
    """How many documents have a field."""

    documents: int = Field(description='with any value of it')
    values: list[ValueCountResponse] = Field(
        description='its values, the most frequent first; empty where there are more than 20, or '
        'one has more than 200 characters'
    )


class WriteResponse(OfIndex):
    """A write, and how far it is."""

    job: str = Field(description='names the write in /v1/{index}/writes/{job}')
    state: Literal['waiting', 'writing', 'done', 'failed'] = Field(description='how far it is')
    documents: int = Field(
        description='how many documents it adds, replaces or deletes; 0 for a sync'
    )
    generation: int | None = Field(
        description='the generation in which searches find it; null before it is done'
    )
    changes: dict[str, int] | None = Field(
        description='added, changed, deleted and unchanged documents, with other writes of the '
        'same generation; null before it is done'
    )
    error: str | None = Field(description='why it failed')


class IndexInfo(BaseModel):
    """What may be asked of an index."""

    name: str = Field(description='name of the index')
    index_type: str = Field(description='tf (Lucene), dense, faiss, impact or collection')
    passages: int = Field(description='how many passages it holds')
    encoder: str | None = Field(description='the encoder of a dense index')
    base_index: str | None = Field(description='the index that gives texts and sparse rankings')
    systems: list[str] = Field(description='the rankings that may be asked for')
    default: list[str] = Field(description='the rankings that are fused if a search names none')
    like: list[str] = Field(description='the rankings that take a document in place of a question')
    fusions: list[str] = Field(description='ways to fuse rankings')
    rerankers: list[dict[str, str]] = Field(description='the name and the system of each')
    topics: int = Field(description='how many topics it has')
    judging: bool = Field(description='whether it takes judgments')
    learning: bool = Field(description='whether it learns from judgments')
    judged_topics: int = Field(description='how many topics have judgments')
    limits: dict[str, int] = Field(description='the greatest values that are accepted')
    documents: int | None = Field(None, description='of a collection: how many documents it holds')
    language: str | None = Field(
        None, description="of Lucene's analyzer; null for an index without words"
    )
    generation: int | None = Field(
        None, description='of a collection: the number of the generation that is served'
    )
    fields: dict[str, list[str]] | None = Field(
        None,
        description="of a collection: its documents' fields, each with the types of its values; "
        'of more than 1,000, those that most documents have',
    )
    field_counts: dict[str, FieldCountResponse] | None = Field(
        None, description='of a collection: how many documents have each field and its values'
    )
    fusion: str | None = Field(
        None, description='of a collection: how its rankings are fused if a search does not say it'
    )
    weights: list[float] | None = Field(
        None, description='of a collection: the weight of each ranking in that fusion'
    )


class IndexesResponse(Answered):
    """The indexes of a service."""

    indexes: list[IndexInfo] = Field(description='all indexes')


class IndexResponse(Answered, IndexInfo):
    """An index."""


class DocumentResponse(OfIndex):
    """A document."""

    docid: str = Field(description='docid of the document')
    doc: Any = Field(
        description='as in Pyserini: text, or an object where several fields are stored; of a '
        'collection: an object of title, text and fields, or the text where there is nothing else'
    )
    display: list[Part] | None = Field(
        None, description='with display=true: the document, cleaned up for reading'
    )


class TopicsResponse(OfIndex):
    """Questions to try."""

    topics: list[dict[str, Any]] = Field(description='qid, text, and whether it is judged')


class QrelsResponse(OfIndex):
    """The judgments of a topic: docid -> grade."""

    qid: str = Field(description='qid of the topic')
    text: str | None = Field(description='the question, if known')
    grades: dict[str, int] = Field(description='the grade of each judged passage')


class QuestionState(BaseModel):
    """A question to judge."""

    text: str = Field(description='the question')
    judged: int = Field(description='documents that the judge has judged for it')
    pooled: int | None = Field(description='documents of its newest pool; null without one')


class QuestionsResponse(OfIndex):
    """The questions to judge, in order."""

    judge: str = Field(description='whose judgments are counted')
    questions: list[QuestionState] = Field(description='those that were given, then the topics')
    total: int = Field(description='how many there are')
    judged: int = Field(description='questions with at least one judgment of the judge')


class PooledDocument(BaseModel):
    """A document to judge: neither rank nor score, nor who found it, is said."""

    docid: str = Field(description='docid of the passage or document')
    title: str | None = Field(description='its title')
    text: str = Field(description='of a collection the best passage, else the whole text')
    start: int | None = Field(description='of a collection: first character of the passage')
    end: int | None = Field(description='of a collection: the character after its last')
    display: list[Part] = Field(description='the text in parts, words of the question marked')
    fields: dict[str, Any] = Field(description="of a collection: the document's fields")
    grade: int | None = Field(description='that the judge gave; null if she has not judged it')
    comment: str = Field(description='of the judge')


class PoolResponse(OfIndex):
    """The best documents of every ranking, in an order that favours none."""

    pool: str = Field(description='to be sent with judgments')
    question: str = Field(description='the question')
    documents: list[PooledDocument] = Field(description='to be judged, in this order')


class JudgmentInfo(BaseModel):
    """A grade of a document for a question."""

    question: str = Field(description='the question')
    docid: str = Field(description='docid of the document')
    grade: int = Field(description='0: not relevant')
    judge: str = Field(description='who judged')
    comment: str = Field(description='of the judge')
    pool: str = Field(description='from which the document was shown; empty for none')
    judged: str = Field(description="when, in ISO's form")
    is_older: bool = Field(description='whether the document has changed since')


class AgreementInfo(BaseModel):
    """How far two judges agree."""

    judges: list[str] = Field(description='their names')
    documents: int = Field(description='that both judged')
    kappa: float | None = Field(description="Cohen's kappa; null where it is not defined")


class JudgmentsResponse(OfIndex):
    """Judgments, and how far judges agree."""

    judgments: list[JudgmentInfo] = Field(description='by question and time')
    agreement: list[AgreementInfo] = Field(description='of each two judges')


class StoredResponse(OfIndex):
    """What was stored."""

    stored: int = Field(description='judgments')


class DeletedResponse(OfIndex):
    """What was taken back."""

    deleted: int = Field(description='judgments')


class QuestionGain(BaseModel):
    """A question's nDCG@10."""

    question: str = Field(description='the question')
    before: float = Field(description='by the best ranking that learned nothing')
    after: float = Field(description='by what was learned from other questions')


class LearningReport(BaseModel):
    """What a learning gained on questions held out."""

    gain: float = Field(description='mean nDCG@10 over that of `baseline`')
    standard_error: float = Field(description='of the gain')
    p: float = Field(description='of the paired t-test, two-sided')
    is_convincing: bool = Field(description='whether the gain is more than noise')
    baseline: str = Field(description='the best ranking that learned nothing')
    topics: int = Field(description='questions that were learned from')
    means: dict[str, float] = Field(description='mean nDCG@10 of each ranking')
    questions: list[QuestionGain] = Field(description='each question')
    sentence: str = Field(description='what that says')


class LearningResponse(OfIndex):
    """How far a learning is, what it gained, and whether it is in use."""

    state: Literal['none', 'running', 'done', 'failed'] = Field(description='of the last one')
    done: int = Field(description='steps that are done')
    total: int = Field(description='steps in all')
    error: str | None = Field(description='why it failed')
    due: str | None = Field(description='why it is time to learn again')
    in_use: bool = Field(description='whether searches are answered as it learned')
    questions_judged: int = Field(description='questions with a relevant document')
    questions_needed: int = Field(description='how many are needed')
    report: LearningReport | None = Field(description='of the last one that was done')
