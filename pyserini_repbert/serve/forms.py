"""The forms of requests and answers, which FastAPI checks and describes."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.responses import Response

from pyserini_repbert.data.values import has_surrogates


def _characters(text: str) -> str:
    if has_surrogates(text):
        raise ValueError('half of a surrogate pair is no character')
    return text


Text = Annotated[str, AfterValidator(_characters)]
Fusion = Literal['interleave', 'rrf', 'interpolation']


class Sent(BaseModel):
    """A part of a body; unknown fields are refused."""

    model_config = ConfigDict(extra='forbid')


class Answered(BaseModel):
    """An answer of this version of the API."""

    api: Literal['v1']


class OfIndex(Answered):
    """An answer of an index."""

    index: str


def gives(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The form of an answer, for the OpenAPI document."""
    return {200: {'model': model}}


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response in UTF-8, in ASCII with escapes where a string holds lone surrogates."""
    try:
        body = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(',', ':')).encode()
    except UnicodeEncodeError:
        body = json.dumps(value, allow_nan=False).encode()
    return Response(body, status, headers, 'application/json')


class PipelineForm(Sent):
    """Systems, their fusion, and rerankers."""

    system: list[Text] = Field([], max_length=8)
    fusion: Fusion = 'interleave'
    alpha: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    rrf_k: float | None = Field(None, ge=0, le=1e6, allow_inf_nan=False)
    rerank: list[Text] = Field([], max_length=4, description='NAME@K or NAME@K:METHOD')


class Step(BaseModel):
    """The cost of a step of an answer."""

    step: str
    ms: float = Field(description='milliseconds of wall clock, waiting included')
    inferences: int = Field(description='model inputs')
    candidates: int
    tokens: int | None
    truncated: int | None
    precision: str | None


class Place(BaseModel):
    """A hit's rank and score in a ranking; null if the ranking lacks the hit, or has it below rank `below`."""

    ranking: str
    rank: int | None
    score: float | None
    below: int | None = Field(description='ranks known, if the hit is below them; null: the ranking lacks the hit')


class Part(BaseModel):
    """A part of a passage, of which the first 20,000 characters are shown."""

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
    """The judged topic whose text the query is."""

    qid: str
    relevant: dict[str, int]
    measures: dict[str, Any]


class SearchResponse(OfIndex):
    """Hits, in the form of Pyserini's server with additions."""

    query: QueryText
    candidates: list[CandidateResponse]
    system: list[str]
    fusion: str | None
    rerank: list[str]
    steps: list[Step]
    rankings: list[str] | None = Field(None, description='with provenance=true: the names of the rankings, in order')
    judged: Judged | None = None
    explanations: list[dict[str, Any]] | None = Field(None, description='with explain=MODEL')


class BatchQuery(Sent):
    """A query of a batch."""

    text: Text
    qid: Text | None = None


class BatchRequest(PipelineForm):
    """Queries that are answered together."""

    queries: list[BatchQuery] = Field(min_length=1)
    hits: int = Field(10, ge=1)
    parse: bool = True
    provenance: bool = False
    display: bool = False


class BatchResult(SearchResponse):
    """One query's hits."""

    qid: str


class BatchResponse(OfIndex):
    """The answers, in the order of the queries."""

    results: list[BatchResult]


class CompareRequest(Sent):
    """Two ways to answer one question."""

    query: Text
    hits: int = Field(10, ge=1)
    a: PipelineForm = Field(default_factory=lambda: PipelineForm.model_validate({}))
    b: PipelineForm = Field(default_factory=lambda: PipelineForm.model_validate({}))
    display: bool = False


class Move(BaseModel):
    """A hit's rank on both sides; null where it is absent, or below the side's `depths`."""

    docid: str
    a: int | None
    b: int | None


class CompareResponse(OfIndex):
    """Two answers side by side."""

    query: QueryText
    a: SearchResponse
    b: SearchResponse
    overlap: float = Field(description='share of common hits')
    rbo: float = Field(description='rank-biased overlap, p=0.9')
    moves: list[Move]
    depths: dict[str, int | None] = Field(description='ranks known of each side; null: all')
    judged: Judged | None


class ProgressResponse(Answered):
    """The progress of a stage of a request."""

    stage: str
    done: int = Field(description='model inputs so far')
    total: int | None


class ExplainResponse(OfIndex):
    """Why passages are where they are; the rest depends on the system."""

    model_config = ConfigDict(extra='allow')

    model: str
    system: str
    query: str
    passages: list[dict[str, Any]] | None = Field(None, description='of EPIC and CEDR, one entry a passage')
    docids: list[str] | None = Field(None, description='of monoBERT and duoBERT')


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


class IndexesResponse(Answered):
    """The indexes of a service."""

    indexes: list[IndexInfo]


class IndexResponse(IndexInfo):
    """An index."""

    api: Literal['v1']


class DocumentResponse(OfIndex):
    """A document."""

    docid: str
    doc: Any
    display: list[Part] | None = Field(None, description='with display=true: the passage mended for reading')


class TopicInfo(BaseModel):
    """A topic of an index."""

    qid: str
    text: str
    judged: bool


class TopicsResponse(OfIndex):
    """Questions to try."""

    topics: list[TopicInfo]


class QrelsResponse(OfIndex):
    """The judgments of a topic: docid -> grade."""

    qid: str
    text: str | None
    grades: dict[str, int]
