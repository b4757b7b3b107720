"""The addresses below /v1."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.explain.explaining import SAMPLES
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.serve import answer_models as models, requests
from pyserini_repbert.serve.answers import API, Shown, compared, searched, stored
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.refusals import RESPONSES, check_request, json_response
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service

INDEX: Any = Path(description='name of an index, see /v1/indexes')
_LOOKED_AGAIN = 0.25  # seconds between checks that a client is still connected
_LIMITS = {
    'query_characters',
    'hits',
    'rerank_depth',
    'inferences',
    'batch_queries',
}  # those that clients are told


def make_router(service: Service) -> APIRouter:
    """The routes of a service."""
    limits = service.settings.limits
    checks = [Depends(check_request)]
    router = APIRouter(
        prefix='/v1', responses=RESPONSES, dependencies=checks, redirect_slashes=False
    )

    @router.get(
        '/progress/{request_id}',
        summary='How far a request is',
        response_model=models.ProgressResponse,
    )
    async def progress(
        request_id: str = Path(description='the X-Request-ID of the request'),
    ) -> Response:
        trace = service.traces.get(request_id)
        if trace is None or trace.now is None:
            raise MissingResourceError('no such request is being reranked now')
        stage, done, total = trace.now
        return json_response({'api': API, 'stage': stage, 'done': done, 'total': total})

    @router.get('/{index}/search', summary='Search an index', response_model=models.SearchResponse)
    async def search(
        request: Request, asked: Annotated[requests.SearchRequest, Query()], index: str = INDEX
    ) -> Response:
        shown = Shown(asked.parse, asked.max_doc_length, asked.provenance, asked.display)
        ask = asked.ask(asked.query, asked.hits, asked.provenance, limits)

        def work(trace: RequestTrace) -> dict[str, Any]:
            (answer,) = service.search(index, [ask], trace)
            docids = answer.ranking.docids[: asked.explain_hits]
            explaining = asked.explain if docids else []
            explained = [
                service.explain(index, model, asked.query, docids, {}, trace)
                for model in explaining
            ]
            more = {'explanations': explained} if asked.explain else {}
            return searched(service.index(index), answer, shown, **more)

        return await answered(request, service, work, bool(asked.rerank or asked.explain))

    @router.post(
        '/{index}/batch', summary='Search for several queries', response_model=models.BatchResponse
    )
    async def batch(request: Request, body: requests.BatchRequest, index: str = INDEX) -> Response:
        if len(body.queries) > limits.batch_queries:
            raise InputError(
                f'{len(body.queries)} queries were given, at most {limits.batch_queries} are taken'
            )
        asks = [body.ask(one.text, body.hits, body.provenance, limits) for one in body.queries]
        qids = [
            str(place) if one.qid is None else one.qid for place, one in enumerate(body.queries)
        ]
        shown = Shown(body.parse, None, body.provenance, body.display)

        def work(trace: RequestTrace) -> dict[str, Any]:
            ranked = service.search(index, asks, trace)
            served = service.index(index)
            results = [
                searched(served, one, shown, qid=qid) for qid, one in zip(qids, ranked, strict=True)
            ]
            return {'api': API, 'index': index, 'results': results}

        return await answered(request, service, work, bool(body.rerank))

    @router.get(
        '/{index}/explain',
        summary='Why hits rank where they do',
        response_model=models.ExplainResponse,
    )
    async def explain(
        request: Request,
        index: str = INDEX,
        query: str = Query(description='a question'),
        model: str = Query(
            description="a reranker's name, or a system: epic, cedr, duobert, monobert"
        ),
        docid: list[str] = Query(min_length=1, description='a hit to explain; repeatable'),
        top: int = Query(10, ge=0, le=100, description='EPIC: how many expansion terms'),
        layer: Annotated[
            tuple[int, ...],
            requests.WITH_COMMAS,
            Query(description='CEDR: as 0,6; default: the last'),
        ] = (),
        samples: int = Query(SAMPLES, ge=1, le=1000, description="duoBERT: m of method 'sample'"),
        seed: int = Query(0, ge=0, le=2**31 - 1, description="duoBERT: of method 'sample'"),
    ) -> Response:
        options = {'top': top, 'layers': layer, 'samples': samples, 'seed': seed}

        def work(trace: RequestTrace) -> dict[str, Any]:
            return {
                'api': API,
                'index': index,
                **service.explain(index, model, query, docid, options, trace),
            }

        return await answered(request, service, work, True)

    @router.post(
        '/{index}/compare',
        summary='Two answers side by side',
        response_model=models.CompareResponse,
    )
    async def compare(
        request: Request, body: requests.CompareRequest, index: str = INDEX
    ) -> Response:
        asks = [pipeline.ask(body.query, body.hits, True, limits) for pipeline in (body.a, body.b)]
        shown = Shown(provenance=True, display=body.display)

        def work(trace: RequestTrace) -> dict[str, Any]:
            a, b = (service.search(index, [ask], trace)[0] for ask in asks)
            return compared(service.index(index), {'a': a, 'b': b}, shown)

        return await answered(request, service, work, bool(body.a.rerank or body.b.rerank))

    @router.get(
        '/indexes',
        summary='The indexes, and what may be asked of them',
        response_model=models.IndexesResponse,
    )
    async def indexes() -> Response:
        return json_response(
            {'api': API, 'indexes': [described(service, one) for one in service.served.values()]}
        )

    @router.get(
        '/{index}', summary='What may be asked of an index', response_model=models.IndexResponse
    )
    async def about(index: str = INDEX) -> Response:
        return json_response({'api': API, **described(service, service.index(index))})

    @router.get(
        '/{index}/doc/{docid:path}', summary='A document', response_model=models.DocumentResponse
    )
    async def doc(
        request: Request,
        index: str = INDEX,
        docid: str = Path(
            description='as in the candidates of a search; it may have slashes and spaces'
        ),
        parse: requests.Parsed = True,
        max_doc_length: int | None = Query(None, ge=1, description='characters of the document'),
        display: requests.Mended = False,
        query: str = Query('', description='with display: the query whose words are marked'),
    ) -> Response:
        shown = Shown(parse, max_doc_length, display=display)

        def work(_: RequestTrace) -> dict[str, Any]:
            return {
                'api': API,
                'index': index,
                'docid': docid,
                **stored(service.index(index), docid, shown, query),
            }

        return await answered(request, service, work)

    @router.get(
        '/{index}/topics', summary='Questions on an index', response_model=models.TopicsResponse
    )
    async def topics(
        index: str = INDEX,
        like: str = Query('', max_length=200, description='only questions that contain this text'),
        limit: int = Query(20, ge=1, le=1000, description='questions of the answer'),
    ) -> Response:
        served = service.index(index)
        matching = [
            query for query in served.topics.values() if like.casefold() in query.text.casefold()
        ]
        listed = [
            {'qid': query.qid, 'text': query.text, 'judged': query.qid in served.qrels}
            for query in matching
        ]
        return json_response({'api': API, 'index': index, 'topics': listed[:limit]})

    @router.get(
        '/{index}/qrels/{qid:path}',
        summary='The judgments of a topic',
        response_model=models.QrelsResponse,
    )
    async def qrels(index: str = INDEX, qid: str = Path(description='the topic')) -> Response:
        served = service.index(index)
        grades = served.grades(qid)
        topic = served.topics.get(qid)
        text = None if topic is None else topic.text
        return json_response(
            {'api': API, 'index': index, 'qid': qid, 'text': text, 'grades': grades}
        )

    return router


def described(service: Service, index: ServedIndex) -> dict[str, Any]:
    """What a client may ask of an index."""
    return {
        'name': index.alias,
        'index_type': index.index_type,
        'passages': index.passages,
        'encoder': index.encoder,
        'base_index': index.settings.base_index,
        'systems': list(index.systems),
        'default': list(index.default),
        'fusions': list(map(str, FusionMethod)),
        'rerankers': [
            {'name': name, 'system': system} for name, system in service.rerankers.systems.items()
        ],
        'topics': len(index.topics),
        'judged_topics': len(index.qrels),
        'limits': service.settings.limits.model_dump(include=_LIMITS),
    }


async def answered(
    request: Request,
    service: Service,
    work: Callable[[RequestTrace], dict[str, Any]],
    reranks: bool = False,
) -> Response:
    """The JSON of `work`, its trace in `service.traces` meanwhile.

    Raises ClientDisconnect if the client goes away.
    """
    trace = RequestTrace()
    request_id = request.state.request_id
    service.traces[request_id] = trace
    task = asyncio.ensure_future(
        service.run(lambda trace: json_response(work(trace)), reranks, trace)
    )
    try:
        while not (await asyncio.wait({task}, timeout=_LOOKED_AGAIN))[0]:
            if await request.is_disconnected():
                raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        service.traces.pop(request_id, None)  # two requests may have one id
