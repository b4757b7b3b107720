"""The addresses below /v1. The OpenAPI document states limits, so the routes are made for a service's settings."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from pyserini_repbert.errors import InputError
from pyserini_repbert.explain.explaining import SAMPLES
from pyserini_repbert.serve import answers, requests
from pyserini_repbert.serve.answers import API, Shown
from pyserini_repbert.serve.refusals import RESPONSES, NotFoundError, json_response, known_parameters
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service

Progress = dict[str, RequestTrace]  # by request id
_Result = TypeVar('_Result')
INDEX: Any = Path(description='name of an index, see /v1/indexes')
_LOOKED_AGAIN = 0.25  # seconds between checks that a client is still connected


def make_router(service: Service) -> APIRouter:
    """The routes of a service."""
    router = APIRouter(
        prefix='/v1',
        responses=RESPONSES,
        dependencies=[Depends(known_parameters)],
        redirect_slashes=False,
    )
    progress: Progress = {}

    @router.get('/progress/{request_id}', summary='How far a request is', response_model=answers.ProgressResponse)
    async def progressed(request_id: str = Path(description='the X-Request-ID of the request')) -> Response:
        trace = progress.get(request_id)
        if trace is None or trace.now is None:
            raise NotFoundError('no such request is being reranked now')
        stage, done, total = trace.now
        return json_response(answers.ProgressResponse(api=API, stage=stage, done=done, total=total))

    _add_searching(router, service, progress)
    return router


def _listed(values: list[str]) -> list[str]:
    """The values of a parameter that was given several times or with commas."""
    return [part.strip() for value in values for part in value.split(',') if part.strip()]


def _add_searching(router: APIRouter, service: Service, progress: Progress) -> None:
    """Add the addresses to a router; they note in `progress` how far the stages of a request are."""
    limits = service.settings.limits
    query_of = Query(min_length=1, max_length=limits.query_characters, description='a question')

    @router.get('/{index}/search', summary='Search an index', response_model=answers.SearchResponse)
    async def search(
        request: Request,
        index: str = INDEX,
        query: str = query_of,
        hits: int = Query(min(10, limits.hits), ge=1, le=limits.hits, description='hits of the answer'),
        system: requests.Systems = Query([], description=requests.SYSTEMS),
        fusion: requests.Fusion = 'interleave',
        alpha: requests.Alpha = None,
        weights: requests.Weights = Query([], description=requests.WEIGHTS),
        normalize: requests.Normalize = 'none',
        rrf_k: requests.RrfK = None,
        rerank: requests.Stages = Query([], description=requests.STAGES),
        parse: requests.Parsed = True,
        max_doc_length: int | None = Query(None, ge=1, description='characters of each document'),
        k1: requests.K1 = None,
        b: requests.B = None,
        provenance: requests.Provenance = False,
        display: requests.Mended = False,
        explain: list[str] = Query([], max_length=4, description='rerankers to explain the best hits by'),
        explain_hits: int = Query(1, ge=1, le=10, description='how many of the best hits are explained'),
    ) -> Response:
        shown = Shown(parse, max_doc_length, provenance, display)
        settings: dict[str, Any] = {'fusion': fusion, 'alpha': alpha, 'normalize': normalize}
        settings |= {'rrf_k': rrf_k, 'k1': k1, 'b': b}
        form = requests.PipelineForm.of(system=_listed(system), weights=weights, rerank=rerank, **settings)
        ask = form.ask(query, hits, provenance)

        def work(trace: RequestTrace) -> Response:
            (answer,) = service.search(index, [ask], trace)
            more: dict[str, Any] = {}
            if explain:
                docids = answer.ranking.docids[:explain_hits]
                models = _listed(explain) if docids else []
                more['explanations'] = [service.explain(index, model, query, docids, {}, trace) for model in models]
            return json_response(answers.searched(service.index(index), answer, shown, **more))

        return await answered(request, service, work, bool(rerank or explain), progress)

    def ask_of(
        body: requests.BatchRequest | requests.CompareRequest, query: str, pipeline: requests.PipelineForm, deep: bool
    ) -> requests.Ask:
        hits = body.hits if 'hits' in body.model_fields_set else min(body.hits, limits.hits)
        return pipeline.ask(query, hits, deep)

    @router.post('/{index}/batch', summary='Search for several queries', response_model=answers.BatchResponse)
    async def batch(request: Request, index: str = INDEX, body: requests.BatchRequest = Body()) -> Response:
        if len(body.queries) > limits.batch_queries:
            raise InputError(f'{len(body.queries)} queries were given, at most {limits.batch_queries} are taken')
        asks = [ask_of(body, one.text, body, body.provenance) for one in body.queries]
        qids = [str(place) if one.qid is None else one.qid for place, one in enumerate(body.queries)]
        (qid, times), *_ = Counter(qids).most_common(1)
        if times > 1:
            raise InputError(f"qid '{qid[:60]}' was given twice (a query without one has its place, from 0)")
        shown = Shown(body.parse, None, body.provenance, body.display)

        def work(trace: RequestTrace) -> Response:
            ranked, served = service.search(index, asks, trace), service.index(index)
            results: list[Any] = [
                answers.searched(served, one, shown, qid=qid) for qid, one in zip(qids, ranked, strict=True)
            ]
            return json_response(answers.BatchResponse(api=API, index=index, results=results))

        return await answered(request, service, work, bool(body.rerank))

    @router.get('/{index}/explain', summary='Why hits rank where they do', response_model=answers.ExplainResponse)
    async def explain(
        request: Request,
        index: str = INDEX,
        query: str = query_of,
        model: str = Query(description="a reranker's name, or a system: epic, cedr, duobert, monobert"),
        docid: list[str] = Query(
            min_length=1, max_length=limits.rerank_depth, description='a hit to explain; repeatable'
        ),
        top: int = Query(10, ge=0, le=100, description='EPIC: how many expansion terms'),
        layer: str | None = Query(None, description="CEDR: layers with commas, '0,6'; default: the last"),
        samples: int = Query(SAMPLES, ge=1, le=1000, description="duoBERT: m of method 'sample'"),
        seed: int = Query(0, ge=0, le=2**31 - 1, description="duoBERT: of method 'sample'"),
    ) -> Response:
        options = {'top': top, 'samples': samples, 'seed': seed, 'layers': requests.layers(layer) if layer else ()}

        def work(trace: RequestTrace) -> Response:
            explained: dict[str, Any] = service.explain(index, model, query, docid, options, trace)
            return json_response(answers.ExplainResponse(api=API, index=index, **explained))

        return await answered(request, service, work, True, progress)

    @router.post('/{index}/compare', summary='Two answers side by side', response_model=answers.CompareResponse)
    async def compare(request: Request, index: str = INDEX, body: requests.CompareRequest = Body()) -> Response:
        asks = [ask_of(body, body.query, pipeline, True) for pipeline in (body.a, body.b)]
        shown = Shown(provenance=True, display=body.display)

        def work(trace: RequestTrace) -> Response:
            a, b = (service.search(index, [ask], trace)[0] for ask in asks)
            return json_response(answers.compared(service.index(index), {'a': a, 'b': b}, shown))

        return await answered(request, service, work, bool(body.a.rerank or body.b.rerank), progress)


async def answered(
    request: Request,
    service: Service,
    work: Callable[[RequestTrace], _Result],
    reranks: bool = False,
    progress: Progress | None = None,
) -> _Result:
    """`service.run`, ended when the client goes away: then raises ClientDisconnect.

    Parameters
    ----------
    progress : where the request's trace is while it is answered
    """
    trace = RequestTrace()
    running = {} if progress is None else progress
    running[request.state.request_id] = trace
    task = asyncio.ensure_future(service.run(work, reranks, trace))
    try:
        while not (await asyncio.wait({task}, timeout=_LOOKED_AGAIN))[0]:
            if await request.is_disconnected():
                raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        del running[request.state.request_id]
