"""The forms of what an index holds: its systems, documents, topics and judgments."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from pyserini_repbert.serve.schemas.common import Answered, OfIndex
from pyserini_repbert.serve.schemas.searching import Part


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
