"""The addresses below /v1. The OpenAPI document states limits, so the routes are made for a service's settings."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from pydantic import Field
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.explain.explaining import SAMPLES
from pyserini_repbert.serve import answer_models as models, requests
from pyserini_repbert.serve.answers import API, Shown, compared, searched, stored
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.refusals import RESPONSES, json_response, known_parameters
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service

# No lazy annotations here: those of routes name models that are made for a service's limits.
Progress = dict[str, RequestTrace]  # by request id
_Result = TypeVar('_Result')
INDEX: Any = Path(description='name of an index, see /v1/indexes')
_LOOKED_AGAIN = 0.25  # seconds between checks that a client is still connected
_LIMITS = {'query_characters', 'hits', 'rerank_depth', 'inferences', 'batch_queries'}  # those that clients are told


def make_router(service: Service) -> APIRouter:
    """The routes of a service."""
    limits, checks = service.settings.limits, [Depends(known_parameters)]
    router = APIRouter(prefix='/v1', responses=RESPONSES, dependencies=checks, redirect_slashes=False)
    progress: Progress = {}

    @router.get('/progress/{request_id}', summary='How far a request is', response_model=models.ProgressResponse)
    async def progressed(request_id: str = Path(description='the X-Request-ID of the request')) -> Response:
        trace = progress.get(request_id)
        if trace is None or trace.now is None:
            raise MissingResourceError('no such request is being reranked now')
        stage, done, total = trace.now
        return json_response({'api': API, 'stage': stage, 'done': done, 'total': total})

    _add_searching(router, service, progress)

    @router.get('/indexes', summary='The indexes, and what may be asked of them', response_model=models.IndexesResponse)
    async def indexes() -> Response:
        return json_response({'api': API, 'indexes': [described(service, one) for one in service.served.values()]})

    @router.get('/{index}', summary='What may be asked of an index', response_model=models.IndexResponse)
    async def about(index: str = INDEX) -> Response:
        return json_response({'api': API, **described(service, service.index(index))})

    @router.get('/{index}/doc/{docid:path}', summary='A document', response_model=models.DocumentResponse)
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
            fields = stored(service.index(index), docid, shown, query)
            return json_response({'api': API, 'index': index, 'docid': docid, **fields})

        return await answered(request, service, work)

    @router.get('/{index}/topics', summary='Questions on an index', response_model=models.TopicsResponse)
    async def topics(
        index: str = INDEX,
        like: str = Query('', max_length=200, description='only questions that contain this text'),
        limit: int = Query(20, ge=1, le=1000, description='questions of the answer'),
    ) -> Response:
        served = service.index(index)
        matching = [query for query in served.topics.values() if like.casefold() in query.text.casefold()]
        listed = [{'qid': query.qid, 'text': query.text, 'judged': query.qid in served.qrels} for query in matching]
        return json_response({'api': API, 'index': index, 'topics': listed[:limit]})

    @router.get('/{index}/qrels/{qid:path}', summary='The judgments of a topic', response_model=models.QrelsResponse)
    async def qrels(index: str = INDEX, qid: str = Path(description='the topic')) -> Response:
        served = service.index(index)
        grades, topic = served.grades(qid), served.topics.get(qid)
        text = None if topic is None else topic.text
        return json_response({'api': API, 'index': index, 'qid': qid, 'text': text, 'grades': grades})

    return router


def _add_searching(router: APIRouter, service: Service, progress: Progress) -> None:
    """Add the addresses to a router; they note in `progress` how far the stages of a request are."""
    limits = service.settings.limits

    class LimitedRequest(requests.SearchRequest):
        query: str = Field(min_length=1, max_length=limits.query_characters, description='a question')
        hits: int = Field(min(10, limits.hits), ge=1, le=limits.hits, description='hits of the answer')

    @router.get('/{index}/search', summary='Search an index', response_model=models.SearchResponse)
    async def search(request: Request, asked: Annotated[LimitedRequest, Query()], index: str = INDEX) -> Response:
        shown = Shown(asked.parse, asked.max_doc_length, asked.provenance, asked.display)
        ask = asked.ask(asked.query, asked.hits, asked.provenance)

        def work(trace: RequestTrace) -> Response:
            (answer,) = service.search(index, [ask], trace)
            more: dict[str, Any] = {}
            if asked.explain:
                docids = answer.ranking.docids[: asked.explain_hits]
                explained = asked.explain if docids else []
                more['explanations'] = [
                    service.explain(index, model, asked.query, docids, {}, trace) for model in explained
                ]
            return json_response(searched(service.index(index), answer, shown, **more))

        return await answered(request, service, work, bool(asked.rerank or asked.explain), progress)

    def hits_of(body: requests.BatchRequest | requests.CompareRequest) -> int:
        return body.hits if 'hits' in body.model_fields_set else min(body.hits, limits.hits)

    @router.post('/{index}/batch', summary='Search for several queries', response_model=models.BatchResponse)
    async def batch(request: Request, index: str = INDEX, body: requests.BatchRequest = Body()) -> Response:
        if len(body.queries) > limits.batch_queries:
            raise InputError(f'{len(body.queries)} queries were given, at most {limits.batch_queries} are taken')
        asks = [body.ask(one.text, hits_of(body), body.provenance) for one in body.queries]
        qids = [str(place) if one.qid is None else one.qid for place, one in enumerate(body.queries)]
        (qid, times), *_ = Counter(qids).most_common(1)
        if times > 1:
            raise InputError(f"qid '{qid[:60]}' was given twice (a query without one has its place, from 0)")
        shown = Shown(body.parse, None, body.provenance, body.display)

        def work(trace: RequestTrace) -> Response:
            ranked, served = service.search(index, asks, trace), service.index(index)
            results = [searched(served, one, shown, qid=qid) for qid, one in zip(qids, ranked, strict=True)]
            return json_response({'api': API, 'index': index, 'results': results})

        return await answered(request, service, work, bool(body.rerank))

    @router.get('/{index}/explain', summary='Why hits rank where they do', response_model=models.ExplainResponse)
    async def explain(
        request: Request,
        index: str = INDEX,
        query: str = Query(min_length=1, max_length=limits.query_characters, description='a question'),
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
            explained = service.explain(index, model, query, docid, options, trace)
            return json_response({'api': API, 'index': index, **explained})

        return await answered(request, service, work, True, progress)

    @router.post('/{index}/compare', summary='Two answers side by side', response_model=models.CompareResponse)
    async def compare(request: Request, index: str = INDEX, body: requests.CompareRequest = Body()) -> Response:
        asks = [pipeline.ask(body.query, hits_of(body), True) for pipeline in (body.a, body.b)]
        shown = Shown(provenance=True, display=body.display)

        def work(trace: RequestTrace) -> Response:
            a, b = (service.search(index, [ask], trace)[0] for ask in asks)
            return json_response(compared(service.index(index), {'a': a, 'b': b}, shown))

        return await answered(request, service, work, bool(body.a.rerank or body.b.rerank), progress)


def described(service: Service, index: ServedIndex) -> dict[str, Any]:
    """What a client may ask of an index."""
    return {
        'name': index.alias,
        'index_type': index.index_type,
        'passages': index.passages,
        'encoder': index.encoder,
        'base_index': index.settings.base_index,
        'systems': list(index.systems),
        'fusions': ['interleave', 'rrf', 'interpolation'],
        'rerankers': [{'name': name, 'system': system} for name, system in service.rerankers.systems.items()],
        'topics': len(index.topics),
        'judged_topics': len(index.qrels),
        'limits': service.settings.limits.model_dump(include=_LIMITS),
    }


async def answered(
    request: Request,
    service: Service,
    work: Callable[[RequestTrace], _Result],
    reranks: bool = False,
    progress: Progress | None = None,
) -> _Result:
    """`service.run`, which raises ClientDisconnect when the client goes away; `progress` has the trace meanwhile."""
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
