"""The forms of answers, which FastAPI describes."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response


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


class Step(BaseModel):
    """The cost of a step of an answer."""

    step: str
    ms: float = Field(description='milliseconds of wall clock, waiting included')
    inferences: int = Field(description='model inputs')
    candidates: int
    tokens: int | None = None
    truncated: int | None = None
    precision: str | None = None


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


class Judged(BaseModel):
    """The judged topic whose text the query is."""

    qid: str
    relevant: dict[str, int]
    measures: dict[str, Any]


class SearchResponse(OfIndex):
    """Hits, in the form of Pyserini's server with additions."""

    query: dict[str, str]
    candidates: list[CandidateResponse]
    system: list[str]
    fusion: str | None
    rerank: list[str]
    steps: list[Step]
    rankings: list[str] | None = Field(None, description='with provenance=true: the names of the rankings, in order')
    judged: Judged | None = None
    explanations: list[dict[str, Any]] | None = Field(None, description='with explain=MODEL')


class BatchResult(SearchResponse):
    """One query's hits."""

    qid: str


class BatchResponse(OfIndex):
    """The answers, in the order of the queries."""

    results: list[BatchResult]


class CompareResponse(OfIndex):
    """Two answers side by side."""

    query: dict[str, str]
    a: SearchResponse
    b: SearchResponse
    overlap: float = Field(description='share of common hits')
    rbo: float = Field(description='rank-biased overlap, p=0.9')
    moves: list[dict[str, str | int | None]] = Field(
        description='the docid and rank of each hit on both sides; null where it is absent, or below `depths`'
    )
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


class IndexInfo(BaseModel):
    """What may be asked of an index."""

    name: str
    index_type: str
    passages: int
    encoder: str | None
    base_index: str | None
    systems: list[str] = Field(description='the default first')
    fusions: list[str]
    rerankers: list[dict[str, str]] = Field(description='the name and the system of each')
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


class TopicsResponse(OfIndex):
    """Questions to try."""

    topics: list[dict[str, Any]] = Field(description='qid, text, and whether it is judged')


class QrelsResponse(OfIndex):
    """The judgments of a topic: docid -> grade."""

    qid: str
    text: str | None
    grades: dict[str, int]
