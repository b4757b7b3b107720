"""The forms of requests and answers, for validation and for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pyserini_repbert.formats.identifiers import has_surrogates


def _characters(text: str) -> str:
    if has_surrogates(text):
        raise ValueError('half of a surrogate pair is no character')
    return text


Text = Annotated[str, AfterValidator(_characters)]
Fusion = Literal['interleave', 'rrf', 'interpolation']


class _Sent(BaseModel):
    model_config = ConfigDict(extra='forbid')


class ErrorResponse(BaseModel):
    """Why there is no answer."""

    error: str


class Step(BaseModel):
    """What a step of an answer took."""

    step: str
    ms: float = Field(description='wall clock, waiting included')
    inferences: int = Field(description='model inputs')
    candidates: int
    tokens: int | None
    truncated: int | None
    precision: str | None


class Place(BaseModel):
    """Where a hit stands in one of the rankings; nulls where it is not in it."""

    ranking: str
    rank: int | None
    score: float | None


class Part(BaseModel):
    """A part of a passage; joined the parts are its text."""

    text: str
    match: bool


class CandidateResponse(BaseModel):
    """A hit."""

    docid: str
    score: float
    rank: int
    doc: Any = Field(description='as in Pyserini: text, or an object where several fields are stored')
    display: list[Part] | None = Field(None, description='with display=true: the passage mended for reading')
    provenance: list[Place] | None = Field(None, description='with provenance=true')
    grade: int | None = Field(None, description='with provenance=true, where the query is a judged topic')


class QueryText(BaseModel):
    """The query of an answer."""

    text: str


class Judged(BaseModel):
    """The judged topic that a query is."""

    qid: str
    relevant: dict[str, int]
    measures: dict[str, Any]


class SearchResponse(BaseModel):
    """Hits, in the shape of Pyserini's server with additions."""

    api: Literal['v1']
    index: str
    query: QueryText
    candidates: list[CandidateResponse]
    system: list[str]
    fusion: str | None
    rerank: list[str]
    steps: list[Step]
    rankings: list[str] | None = Field(None, description="with provenance=true: the rankings' names, in their order")
    judged: Judged | None = None
    explanations: list[dict[str, Any]] | None = Field(None, description='with explain=MODEL')


class DocumentResponse(BaseModel):
    """A document."""

    api: Literal['v1']
    index: str
    docid: str
    doc: Any
    display: list[Part] | None = Field(None, description='with display=true: the passage mended for reading')


class RerankerInfo(BaseModel):
    """A reranker that may be asked for."""

    name: str
    system: str


class IndexInfo(BaseModel):
    """What may be asked of an index."""

    name: str
    index_type: str
    passages: int
    encoder: str | None
    base_index: str | None
    systems: list[str] = Field(description='the default first')
    fusions: list[str]
    rerankers: list[RerankerInfo]
    topics: int
    judged_topics: int
    limits: dict[str, int]


class IndexesResponse(BaseModel):
    """The indexes of a service."""

    api: Literal['v1']
    indexes: list[IndexInfo]


class IndexResponse(IndexInfo):
    """An index."""

    api: Literal['v1']


class ProgressResponse(BaseModel):
    """How far a stage of a request is."""

    api: Literal['v1']
    stage: str
    done: int = Field(description='model inputs')
    total: int | None


class Price(BaseModel):
    """What a stage would take; nulls for speeds that are not known yet."""

    stage: str
    system: str
    candidates: int
    inferences: int
    inferences_per_second: float | None
    seconds: float | None


class CostResponse(BaseModel):
    """What reranking stages would take."""

    api: Literal['v1']
    index: str
    stages: list[Price]


class ExplainResponse(BaseModel):
    """Why passages are where they are; the rest depends on the system."""

    model_config = ConfigDict(extra='allow')

    api: Literal['v1']
    index: str
    model: str
    system: str
    query: str
    passages: list[dict[str, Any]] | None = Field(None, description='of EPIC and CEDR, one entry a passage')
    docids: list[str] | None = Field(None, description='of monoBERT and duoBERT')


class TopicInfo(BaseModel):
    """A topic of an index."""

    qid: str
    text: str
    judged: bool


class TopicsResponse(BaseModel):
    """Questions to try."""

    api: Literal['v1']
    index: str
    topics: list[TopicInfo]


class QrelsResponse(BaseModel):
    """The judgments of a topic: docid -> grade."""

    api: Literal['v1']
    index: str
    qid: str
    text: str | None
    grades: dict[str, int]


class Pipeline(_Sent):
    """What searches: systems, their fusion, and rerankers."""

    system: list[Text] = Field([], max_length=8)
    fusion: Fusion = 'interleave'
    alpha: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    rrf_k: float | None = Field(None, ge=0, le=1e6, allow_inf_nan=False)
    rerank: list[Text] = Field([], max_length=4, description='NAME@K or NAME@K:METHOD')


class BatchQuery(_Sent):
    """A query of a batch."""

    text: Text
    qid: Text | None = None


class BatchRequest(Pipeline):
    """Queries that are answered together."""

    queries: list[BatchQuery] = Field(min_length=1)
    hits: int = Field(10, ge=1)
    parse: bool = True
    provenance: bool = False
    display: bool = False


class BatchResult(SearchResponse):
    """One query's hits."""

    qid: str


class BatchResponse(BaseModel):
    """The answers, in the order of the queries."""

    api: Literal['v1']
    index: str
    results: list[BatchResult]


class CompareRequest(_Sent):
    """Two ways to answer one question."""

    query: Text
    hits: int = Field(10, ge=1)
    a: Pipeline = Field(default_factory=lambda: Pipeline.model_validate({}))
    b: Pipeline = Field(default_factory=lambda: Pipeline.model_validate({}))
    display: bool = False


class Move(BaseModel):
    """A hit's rank on both sides, null where it is absent."""

    docid: str
    a: int | None
    b: int | None


class CompareResponse(BaseModel):
    """Two answers side by side."""

    api: Literal['v1']
    index: str
    query: QueryText
    a: SearchResponse
    b: SearchResponse
    overlap: float = Field(description='share of common hits')
    rbo: float = Field(description='rank-biased overlap, p=0.9')
    moves: list[Move]
    judged: Judged | None


class SentHit(_Sent):
    """A hit of a run that is sent."""

    docid: Text
    score: float = Field(allow_inf_nan=False)


class SentRun(_Sent):
    """A run: the text of a run file, or hits by qid."""

    name: Text | None = None
    text: Text | None = None
    rankings: dict[Text, list[SentHit]] | None = None


class FuseRequest(_Sent):
    """Runs to be fused."""

    runs: list[SentRun] = Field(min_length=1, max_length=10)
    method: Fusion = 'interleave'
    hits: int = Field(1000, ge=1)
    alpha: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    rrf_k: float | None = Field(None, ge=0, le=1e6, allow_inf_nan=False)
    provenance: bool = False


class FuseResponse(BaseModel):
    """The fused run: hits by qid."""

    api: Literal['v1']
    method: str
    runs: list[str]
    rankings: dict[str, list[dict[str, Any]]]


class EvaluateRequest(_Sent):
    """Runs to be evaluated, the first of them the baseline."""

    runs: list[SentRun] = Field(min_length=1, max_length=10)
    index: Text | None = Field(None, description="an index of this service, for its judgments and topics' texts")
    qrels: Text | None = Field(None, description='the text of a qrels file, instead')
    measures: list[Text] = Field(['nDCG@10', 'MRR@10', 'R@1000'], min_length=1, max_length=20)
    show: int = Field(0, ge=0, le=100, description='hits of each ranking that go with a topic')


class EvaluateResponse(BaseModel):
    """Measures, tests against the first run, and topics, the largest differences first."""

    api: Literal['v1']
    judged_topics: int
    measures: list[str]
    baseline: str
    runs: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]
    topics: list[dict[str, Any]]
