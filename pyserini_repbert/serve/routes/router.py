"""The addresses below /v1. The OpenAPI document states limits, so the routes are made for a service's settings."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from pyserini_repbert.serve.forms import (
    DocumentResponse,
    IndexesResponse,
    IndexResponse,
    ProgressResponse,
    QrelsResponse,
    TopicsResponse,
    gives,
    json_response,
)
from pyserini_repbert.serve.payloads import API, Shown, document_payload, index_payload, topics_payload
from pyserini_repbert.serve.refusals import RESPONSES, NotFoundError
from pyserini_repbert.serve.requests import Progress, answered, known_parameters
from pyserini_repbert.serve.routes.searching import add_searching
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service


def make_router(service: Service) -> APIRouter:
    """The routes of a service."""
    router = APIRouter(
        prefix='/v1',
        responses=RESPONSES,
        dependencies=[Depends(known_parameters)],
        redirect_slashes=False,
    )
    progress: Progress = {}

    @router.get('/indexes', summary='The indexes, and what may be asked of them', responses=gives(IndexesResponse))
    async def indexes() -> Response:
        return json_response({'api': API, 'indexes': [index_payload(service, own) for own in service.served.values()]})

    @router.get(
        '/progress/{request_id}', summary='How far the stages of a request are', responses=gives(ProgressResponse)
    )
    async def progressed(request_id: str) -> Response:
        trace = progress.get(request_id)
        if trace is None or trace.now is None:
            raise NotFoundError('no such request is being reranked now')
        stage, done, total = trace.now
        return json_response({'api': API, 'stage': stage, 'done': done, 'total': total})

    add_searching(router, service, progress)
    _add_stored(router, service)
    return router


def _add_stored(router: APIRouter, service: Service) -> None:
    """The addresses of what an index holds."""
    limits = service.settings.limits
    index_of = Path(description='name of an index, see /v1/indexes')

    @router.get('/{index}', summary='What may be asked of an index', responses=gives(IndexResponse))
    async def about(index: str = index_of) -> Response:
        return json_response({'api': API, **index_payload(service, service.index(index))})

    @router.get('/{index}/doc/{docid:path}', summary='A document', responses=gives(DocumentResponse))
    async def doc(
        request: Request,
        index: str = index_of,
        docid: str = Path(description='as in the candidates of a search; it may have slashes and spaces'),
        parse: bool = True,
        max_doc_length: int | None = Query(None, ge=1),
        display: bool = Query(False, description='also the passage mended for reading'),
        query: str = Query('', max_length=limits.query_characters, description='with display: the words to be marked'),
    ) -> Response:
        shown = Shown(parse, max_doc_length, display=display)

        def work(_: RequestTrace) -> Response:
            raw = service.raw(index, docid)
            text = service.index(index).texts([docid])[0] if display else None
            payload = {'api': API, 'index': index, 'docid': docid, **document_payload(query, raw, text, shown)}
            return json_response(payload)

        return await answered(request, service, work)

    @router.get('/{index}/topics', summary='Questions on an index', responses=gives(TopicsResponse))
    async def topics(
        index: str = index_of,
        like: str = Query('', max_length=200, description='a part of the question'),
        limit: int = Query(20, ge=1, le=1000),
    ) -> Response:
        return json_response(topics_payload(service.index(index), like, limit))

    @router.get('/{index}/qrels/{qid:path}', summary='The judgments of a topic', responses=gives(QrelsResponse))
    async def qrels(index: str = index_of, qid: str = Path()) -> Response:
        own = service.index(index)
        grades, topic = own.grades(qid), own.topics.get(qid)
        text = None if topic is None else topic.text
        return json_response({'api': API, 'index': index, 'qid': qid, 'text': text, 'grades': grades})
