"""The addresses below /v1. Limits are part of the OpenAPI document, so the routes are made for a service's settings."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from pydantic import BaseModel
from starlette.responses import Response

from pyserini_repbert.errors import InputError
from pyserini_repbert.formats.identifiers import has_surrogates
from pyserini_repbert.pipeline.specs import parse_stage
from pyserini_repbert.serve import schemas
from pyserini_repbert.serve.answers import Ask
from pyserini_repbert.serve.documents import document
from pyserini_repbert.serve.explanations import SAMPLES, layers
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.payloads import (
    API,
    Shown,
    comparison_payload,
    display_payload,
    index_payload,
    search_payload,
    topics_payload,
)
from pyserini_repbert.serve.refusals import NotFoundError
from pyserini_repbert.serve.requests import Progress, json_response, known_parameters, while_there
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.uploads import evaluated, fused, judgments, named_runs

_ERRORS = {
    400: 'a parameter is missing, malformed or outside its limits',
    401: 'no key, or one that is not accepted',
    404: 'no such index, system, reranker, document or address',
    405: 'the address does not take this method',
    413: 'the body is too long',
    422: 'the body is JSON, but not of the form expected',
    429: 'too many requests wait: try again after Retry-After seconds',
    500: 'the service failed',
    503: 'the service is not ready',
    504: 'no answer within the time limit',
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {'model': schemas.ErrorResponse, 'description': text} for status, text in _ERRORS.items()
}


def _gives(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The form of an answer, for the OpenAPI document."""
    return {200: {'model': model}}


def _ask(query: str, hits: int, pipeline: schemas.Pipeline, k1: float | None = None, b: float | None = None) -> Ask:
    if has_surrogates(query):
        raise InputError('the query has half of a surrogate pair, which is no character')
    if (k1 is None) != (b is None):
        raise InputError("'k1' and 'b' go together: give both")
    return Ask(
        query,
        hits,
        tuple(pipeline.system),
        pipeline.fusion,
        pipeline.alpha,
        pipeline.rrf_k,
        tuple(parse_stage(stage) for stage in pipeline.rerank),
        None if k1 is None or b is None else (k1, b),
    )


def _listed(values: list[str]) -> list[str]:
    """Values of a parameter, given several times or with commas."""
    return [part.strip() for value in values for part in value.split(',') if part.strip()]


def make_router(service: Service) -> APIRouter:
    """The routes of a service."""
    limits = service.settings.limits
    router = APIRouter(
        prefix='/v1', responses=RESPONSES, dependencies=[Depends(known_parameters)], redirect_slashes=False
    )
    progress = Progress()
    index_of = Path(description='name of an index, see /v1/indexes')
    query_of = Query(min_length=1, max_length=limits.query_characters, description='a question')
    hits_of = Query(10, ge=1, le=limits.hits, description='candidates of the answer')
    system_of = Query(
        [], description="systems of the index, several to be fused: 'dense', 'bm25', …; 'hybrid' is dense and bm25"
    )
    rerank_of = Query([], max_length=4, description='NAME@K, or NAME@K:METHOD for duoBERT; repeatable')
    alpha_of = Query(None, ge=0, le=1, description="interpolation: the first system's weight")
    rrf_k_of = Query(None, ge=0, le=1e6, description='rrf: the constant that is added to ranks')

    def served(alias: str) -> ServedIndex:
        return service.index(alias)

    @router.get(
        '/indexes', summary='The indexes, and what may be asked of them', responses=_gives(schemas.IndexesResponse)
    )
    async def indexes() -> Response:
        return json_response({'api': API, 'indexes': [index_payload(service, own) for own in service.indexes.values()]})

    @router.post('/fuse', summary='Fuse runs', responses=_gives(schemas.FuseResponse))
    async def fuse(request: schemas.FuseRequest) -> Response:
        def work() -> dict[str, Any]:
            runs = named_runs([own.model_dump() for own in request.runs], limits)
            if request.hits > limits.hits:
                raise InputError(f'{request.hits} hits were asked for, expected at most {limits.hits}')
            return fused(runs, request.method, request.hits, request.alpha, request.rrf_k, request.provenance)

        return json_response({'api': API, **await service.lanes.files.call(work)})

    @router.post('/evaluate', summary='Evaluate runs', responses=_gives(schemas.EvaluateResponse))
    async def evaluate(request: schemas.EvaluateRequest) -> Response:
        if (request.index is None) == (request.qrels is None):
            raise InputError("judgments come from one place: give 'qrels', or an 'index' of this service")
        index = None if request.index is None else served(request.index)
        if index is not None and not index.qrels:
            raise NotFoundError(f"index '{index.alias}' has no judgments")

        def work() -> dict[str, Any]:
            qrels = index.qrels if index is not None else judgments(request.qrels or '')
            texts = {} if index is None else {qid: query.text for qid, query in index.topics.items()}
            runs = named_runs([own.model_dump() for own in request.runs], limits)
            return evaluated(runs, qrels, request.measures, texts, request.show)

        return json_response({'api': API, **await service.lanes.files.call(work)})

    @router.get(
        '/progress/{request_id}',
        summary='How far the stages of a request are',
        responses=_gives(schemas.ProgressResponse),
    )
    async def progressed(request_id: str) -> Response:
        now = progress.of(request_id)
        if now is None:
            raise NotFoundError('no such request is being reranked now')
        stage, done, total = now
        return json_response({'api': API, 'stage': stage, 'done': done, 'total': total or None})

    @router.get('/{index}', summary='What may be asked of an index', responses=_gives(schemas.IndexResponse))
    async def about(index: str = index_of) -> Response:
        return json_response({'api': API, **index_payload(service, served(index))})

    @router.get(
        '/{index}/search',
        summary='Search an index',
        responses=_gives(schemas.SearchResponse),
    )
    async def search(
        request: Request,
        index: str = index_of,
        query: str = query_of,
        hits: int = hits_of,
        system: list[str] = system_of,
        fusion: schemas.Fusion = Query('interleave', description='how several systems become one'),
        alpha: float | None = alpha_of,
        rrf_k: float | None = rrf_k_of,
        rerank: list[str] = rerank_of,
        parse: bool = Query(True, description='documents parsed, otherwise as they are stored'),
        max_doc_length: int | None = Query(None, ge=1, description='characters of each document'),
        k1: float | None = Query(None, ge=0, le=1e6, description="of system 'bm25'; with b"),
        b: float | None = Query(None, ge=0, le=1, description="of system 'bm25'; with k1"),
        provenance: bool = Query(False, description="each hit's rank and score in every ranking"),
        display: bool = Query(False, description='passages mended for reading, words of the query marked'),
        explain: list[str] = Query([], max_length=4, description='rerankers to explain the best hits by'),
        explain_hits: int = Query(1, ge=1, le=10, description='how many of the best hits are explained'),
    ) -> Response:
        if max_doc_length is not None and not parse:
            raise InputError("'max_doc_length' requires parse=true")
        pipeline = schemas.Pipeline.model_construct(
            system=_listed(system), fusion=fusion, alpha=alpha, rrf_k=rrf_k, rerank=rerank
        )
        ask = _ask(query, hits, pipeline, k1, b)
        own = served(index)
        tell = progress.teller(request.state.request_id) if ask.stages else None
        answering = service.search(index, ask, tell)
        answer = await (while_there(request, answering, progress) if ask.stages else answering)
        payload = await search_payload(own, answer, Shown(parse, max_doc_length, provenance, display))
        if explain:
            docids = answer.ranking.docids[:explain_hits]
            payload['explanations'] = [
                await service.explain(index, model, query, docids, {}) for model in _listed(explain) if docids
            ]
        return json_response(payload)

    @router.post('/{index}/batch', summary='Search for several queries', responses=_gives(schemas.BatchResponse))
    async def batch(request: Request, index: str = index_of, body: schemas.BatchRequest = Body()) -> Response:
        if len(body.queries) > limits.batch_queries:
            raise InputError(f'{len(body.queries)} queries were given, at most {limits.batch_queries} are taken')
        own = served(index)
        asks = [_ask(one.text, body.hits, body) for one in body.queries]
        shown = Shown(body.parse, None, body.provenance, body.display)

        async def one(place: int) -> dict[str, Any]:
            answer = await service.search(index, asks[place])
            qid = body.queries[place].qid
            return {'qid': str(place) if qid is None else qid, **await search_payload(own, answer, shown)}

        async def all_of_them() -> list[dict[str, Any]]:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(place)) for place in range(len(asks))]
            return [task.result() for task in tasks]

        try:
            results = await while_there(request, all_of_them(), progress)
        except* Exception as errors:
            raise errors.exceptions[0] from None
        return json_response({'api': API, 'index': index, 'results': results})

    @router.get('/{index}/doc/{docid:path}', summary='A document', responses=_gives(schemas.DocumentResponse))
    async def doc(
        index: str = index_of,
        docid: str = Path(description='as in the candidates of a search; it may have slashes and spaces'),
        parse: bool = True,
        max_doc_length: int | None = Query(None, ge=1),
        display: bool = Query(False, description='also the passage mended for reading'),
        query: str = Query('', max_length=limits.query_characters, description='with display: the words to be marked'),
    ) -> Response:
        if max_doc_length is not None and not parse:
            raise InputError("'max_doc_length' requires parse=true")
        raw = await service.raw(index, docid)
        payload = {'api': API, 'index': index, 'docid': docid, 'doc': document(raw, parse, max_doc_length)}
        if display:
            (text,) = await served(index).texts([docid])
            payload['display'] = display_payload(query, text)
        return json_response(payload)

    @router.get(
        '/{index}/explain', summary='Why passages are where they are', responses=_gives(schemas.ExplainResponse)
    )
    async def explain(
        request: Request,
        index: str = index_of,
        query: str = query_of,
        model: str = Query(description="a reranker's name, or a system: epic, cedr, duobert, monobert"),
        docid: list[str] = Query(min_length=1, max_length=limits.rerank_depth, description='repeatable'),
        top: int = Query(10, ge=0, le=100, description='EPIC: expansions'),
        layer: str | None = Query(None, description="CEDR: layers with commas, '0,6'; default: the last"),
        samples: int = Query(SAMPLES, ge=1, le=1000, description="duoBERT: m of method 'sample'"),
        seed: int = Query(0, ge=0, le=2**31 - 1, description="duoBERT: of method 'sample'"),
    ) -> Response:
        if len(set(docid)) < len(docid):
            raise InputError('a docid was given twice: give each once')
        options = {'top': top, 'samples': samples, 'seed': seed, 'layers': layers(layer) if layer else None}
        tell = progress.teller(request.state.request_id)
        found = await while_there(request, service.explain(index, model, query, docid, options, tell), progress)
        return json_response({'api': API, 'index': index, **found})

    @router.get('/{index}/cost', summary='What reranking stages would take', responses=_gives(schemas.CostResponse))
    async def cost(
        request: Request,
        index: str = index_of,
        query: str = query_of,
        system: list[str] = system_of,
        rerank: list[str] = rerank_of,
    ) -> Response:
        pipeline = schemas.Pipeline.model_construct(system=_listed(system), rerank=rerank)
        ask = _ask(query, 10, pipeline)
        stages = await while_there(request, service.price(index, ask), progress)
        return json_response({'api': API, 'index': index, 'stages': stages})

    @router.post('/{index}/compare', summary='Two answers side by side', responses=_gives(schemas.CompareResponse))
    async def compare(request: Request, index: str = index_of, body: schemas.CompareRequest = Body()) -> Response:
        own = served(index)
        asks = [_ask(body.query, body.hits, side) for side in (body.a, body.b)]

        tell = progress.teller(request.state.request_id)

        async def both() -> list[Any]:
            return [await service.search(index, ask, tell) for ask in asks]

        first, second = await while_there(request, both(), progress)
        shown = Shown(provenance=True, display=body.display)
        return json_response(await comparison_payload(own, first, second, shown))

    @router.get('/{index}/topics', summary='Judged questions on an index', responses=_gives(schemas.TopicsResponse))
    async def topics(
        index: str = index_of,
        like: str = Query('', max_length=200, description='a part of the question'),
        limit: int = Query(20, ge=1, le=1000),
    ) -> Response:
        return json_response(topics_payload(served(index), like, limit))

    @router.get(
        '/{index}/qrels/{qid:path}', summary='The judgments of a topic', responses=_gives(schemas.QrelsResponse)
    )
    async def qrels(index: str = index_of, qid: str = Path()) -> Response:
        own = served(index)
        if qid not in own.qrels:
            raise NotFoundError(f"index '{index}' has no judgments for topic '{qid[:200]}'")
        topic = own.topics.get(qid)
        return json_response(
            {
                'api': API,
                'index': index,
                'qid': qid,
                'text': None if topic is None else topic.text,
                'grades': own.qrels[qid],
            }
        )

    return router
