"""The addresses that take runs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.serve.payloads import API
from pyserini_repbert.serve.refusals import NotFoundError
from pyserini_repbert.serve.requests import hits_of, json_response
from pyserini_repbert.serve.schemas.common import gives
from pyserini_repbert.serve.schemas.runs import EvaluateRequest, EvaluateResponse, FuseRequest, FuseResponse
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.uploads import evaluated, fused, judgments, named_runs


def add_runs(router: APIRouter, service: Service) -> None:
    """Add the addresses to a router."""
    limits = service.settings.limits

    @router.post('/fuse', summary='Fuse runs', responses=gives(FuseResponse))
    async def fuse(request: FuseRequest) -> Response:
        def work() -> dict[str, Any]:
            runs = named_runs(request.runs, limits)
            hits = hits_of(request, limits)
            if hits > limits.hits:
                raise InputError(f'{hits} hits were asked for, expected at most {limits.hits}')
            return fused(runs, request.method, hits, request.alpha, request.rrf_k, request.provenance)

        return json_response({'api': API, **await service.lanes.files.call(work)})

    @router.post('/evaluate', summary='Evaluate runs', responses=gives(EvaluateResponse))
    async def evaluate(request: EvaluateRequest) -> Response:
        if (request.index is None) == (request.qrels is None):
            raise InputError("judgments come from one place: give 'qrels', or an 'index' of this service")
        index = None if request.index is None else service.index(request.index)
        if index is not None and not index.qrels:
            raise NotFoundError(f"index '{index.alias}' has no judgments")

        def work() -> dict[str, Any]:
            qrels = index.qrels if index is not None else judgments(request.qrels or '')
            texts = {} if index is None else {qid: query.text for qid, query in index.topics.items()}
            runs = named_runs(request.runs, limits)
            try:
                return evaluated(runs, qrels, request.measures, texts, request.show)
            except UnknownNameError as error:  # of a measure: it is in the body, not in the address
                raise InputError(str(error)) from error

        return json_response({'api': API, **await service.lanes.files.call(work)})
