"""The addresses below /v1. Limits are part of the OpenAPI document, so the routes are made for a service's settings."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from starlette.responses import Response

from pyserini_repbert.serve.payloads import API, index_payload
from pyserini_repbert.serve.refusals import NotFoundError
from pyserini_repbert.serve.requests import Progress, json_response, known_parameters
from pyserini_repbert.serve.routes.runs import add_runs
from pyserini_repbert.serve.routes.searching import add_searching
from pyserini_repbert.serve.routes.stored import add_stored
from pyserini_repbert.serve.schemas.common import RESPONSES, gives
from pyserini_repbert.serve.schemas.searching import ProgressResponse
from pyserini_repbert.serve.schemas.stored import IndexesResponse
from pyserini_repbert.serve.service import Service


def make_router(service: Service) -> APIRouter:
    """The routes of a service."""
    router = APIRouter(
        prefix='/v1', responses=RESPONSES, dependencies=[Depends(known_parameters)], redirect_slashes=False
    )
    progress: Progress = {}

    @router.get('/indexes', summary='The indexes, and what may be asked of them', responses=gives(IndexesResponse))
    async def indexes() -> Response:
        return json_response({'api': API, 'indexes': [index_payload(service, own) for own in service.served.values()]})

    @router.get(
        '/progress/{request_id}', summary='How far the stages of a request are', responses=gives(ProgressResponse)
    )
    async def progressed(request_id: str) -> Response:
        now = progress.get(request_id)
        if not now:
            raise NotFoundError('no such request is being reranked now')
        ((stage, done, total),) = now
        return json_response({'api': API, 'stage': stage, 'done': done, 'total': total or None})

    add_searching(router, service, progress)
    add_stored(router, service)
    add_runs(router, service)
    return router
