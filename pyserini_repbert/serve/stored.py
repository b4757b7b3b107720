"""The addresses below /v1 of what indexes hold: documents, topics, judgments; and the models of their answers."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from pyserini_repbert.serve import requests
from pyserini_repbert.serve.answers import API, Answered, OfIndex, Part, Shown
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.refusals import json_response
from pyserini_repbert.serve.routes import INDEX, answered
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service

_LIMITS = {'query_characters', 'hits', 'rerank_depth', 'inferences', 'batch_queries'}  # those that clients are told


class IndexInfo(BaseModel):
    """What may be asked of an index."""

    name: str = Field(description='of the index')
    index_type: str = Field(description='tf (Lucene), dense, faiss or impact')
    passages: int = Field(description='how many')
    encoder: str | None = Field(description='of a dense index')
    base_index: str | None = Field(description='the index that gives texts and sparse rankings')
    systems: list[str] = Field(description='the default first')
    fusions: list[str] = Field(description='ways to fuse rankings')
    rerankers: list[dict[str, str]] = Field(description='the name and the system of each')
    topics: int = Field(description='how many')
    judged_topics: int = Field(description='how many of them')
    limits: dict[str, int] = Field(description='the greatest values that are accepted')


class IndexesResponse(Answered):
    """The indexes of a service."""

    indexes: list[IndexInfo] = Field(description='all indexes')


class IndexResponse(Answered, IndexInfo):
    """An index."""


class DocumentResponse(OfIndex):
    """A document."""

    docid: str = Field(description='of the passage')
    doc: Any = Field(description='as in Pyserini: text, or an object where several fields are stored')
    display: list[Part] | None = Field(None, description='with display=true: the passage, cleaned up for reading')


class TopicsResponse(OfIndex):
    """Questions to try."""

    topics: list[dict[str, Any]] = Field(description='qid, text, and whether it is judged')


class QrelsResponse(OfIndex):
    """The judgments of a topic: docid -> grade."""

    qid: str = Field(description='of the topic')
    text: str | None = Field(description='its question, if known')
    grades: dict[str, int] = Field(description='the grade of each judged passage')


def described(service: Service, index: ServedIndex) -> IndexInfo:
    """What a client may ask of an index."""
    return IndexInfo(
        name=index.alias,
        index_type=index.index_type,
        passages=index.passages,
        encoder=index.encoder,
        base_index=index.settings.base_index,
        systems=list(index.systems),
        fusions=['interleave', 'rrf', 'interpolation'],
        rerankers=[{'name': name, 'system': system} for name, system in service.rerankers.systems.items()],
        topics=len(index.topics),
        judged_topics=len(index.qrels),
        limits=service.settings.limits.model_dump(include=_LIMITS),
    )


def add_stored(router: APIRouter, service: Service) -> None:
    """Add the addresses to a router."""
    limits = service.settings.limits

    @router.get('/indexes', summary='The indexes, and what may be asked of them', response_model=IndexesResponse)
    async def indexes() -> Response:
        described_indexes = [described(service, index) for index in service.served.values()]
        return json_response(IndexesResponse(api=API, indexes=described_indexes))

    @router.get('/{index}', summary='What may be asked of an index', response_model=IndexResponse)
    async def about(index: str = INDEX) -> Response:
        return json_response(IndexResponse(api=API, **dict(described(service, service.index(index)))))

    @router.get('/{index}/doc/{docid:path}', summary='A document', response_model=DocumentResponse)
    async def doc(
        request: Request,
        index: str = INDEX,
        docid: str = Path(description='as in the candidates of a search; it may have slashes and spaces'),
        parse: requests.Parsed = True,
        max_doc_length: int | None = Query(None, ge=1, description='characters of the document'),
        display: requests.Mended = False,
        query: str = Query(
            '', max_length=limits.query_characters, description='with display: the query whose words are marked'
        ),
    ) -> Response:
        shown = Shown(parse, max_doc_length, display=display)

        def work(_: RequestTrace) -> Response:
            raw = service.raw(index, docid)
            text = service.index(index).texts([docid])[0] if display else None
            return json_response(
                DocumentResponse(api=API, index=index, docid=docid, **shown.document(query, raw, text))
            )

        return await answered(request, service, work)

    @router.get('/{index}/topics', summary='Questions on an index', response_model=TopicsResponse)
    async def topics(
        index: str = INDEX,
        like: str = Query('', max_length=200, description='only questions that contain this text'),
        limit: int = Query(20, ge=1, le=1000, description='questions of the answer'),
    ) -> Response:
        served = service.index(index)
        matching = [query for query in served.topics.values() if like.casefold() in query.text.casefold()]
        listed = [{'qid': query.qid, 'text': query.text, 'judged': query.qid in served.qrels} for query in matching]
        return json_response(TopicsResponse(api=API, index=index, topics=listed[:limit]))

    @router.get('/{index}/qrels/{qid:path}', summary='The judgments of a topic', response_model=QrelsResponse)
    async def qrels(index: str = INDEX, qid: str = Path(description='the topic')) -> Response:
        served = service.index(index)
        grades, topic = served.grades(qid), served.topics.get(qid)
        text = None if topic is None else topic.text
        return json_response(QrelsResponse(api=API, index=index, qid=qid, text=text, grades=grades))
