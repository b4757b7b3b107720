"""The addresses that search, explain and compare."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Body, Path, Query, Request
from starlette.responses import Response

from pyserini_repbert.errors import InputError
from pyserini_repbert.pipeline.spec import parse_stage
from pyserini_repbert.serve.answers import Answer, Ask, bm25_weights
from pyserini_repbert.serve.explanations import SAMPLES, layers
from pyserini_repbert.serve.forms import (
    BatchRequest,
    BatchResponse,
    CompareRequest,
    CompareResponse,
    ExplainResponse,
    Fusion,
    Pipeline,
    SearchResponse,
    gives,
)
from pyserini_repbert.serve.payloads import API, Passages, Shown, comparison_payload, passages, search_payload
from pyserini_repbert.serve.requests import Progress, hits_of, json_response, teller, while_there
from pyserini_repbert.serve.service import Service


def _ask(
    query: str, hits: int, pipeline: Pipeline, k1: float | None = None, b: float | None = None, deep: bool = False
) -> Ask:
    stages = tuple(parse_stage(stage) for stage in pipeline.rerank)
    constants = (pipeline.fusion, pipeline.alpha, pipeline.rrf_k)
    return Ask(query, hits, tuple(pipeline.system), *constants, stages, bm25_weights(k1, b), deep)


def _listed(values: list[str]) -> list[str]:
    """The values of a parameter that was given several times or with commas."""
    return [part.strip() for value in values for part in value.split(',') if part.strip()]


def add_searching(router: APIRouter, service: Service, progress: Progress) -> None:
    """Add the addresses to a router; they note in `progress` how far the stages of a request are."""
    limits = service.settings.limits
    index_of = Path(description='name of an index, see /v1/indexes')
    query_of = Query(min_length=1, max_length=limits.query_characters, description='a question')
    system_of = Query(
        [], description="systems of the index, several to be fused: 'dense', 'bm25', …; 'hybrid' is dense and bm25"
    )
    rerank_of = Query([], max_length=4, description='NAME@K, or NAME@K:METHOD for duoBERT; repeatable')

    async def responded(payload: Callable[[], Any]) -> Response:
        """A payload as a response, made in a thread: the work grows with the passages."""
        return await service.lanes.files.call(lambda: json_response(payload()))

    @router.get('/{index}/search', summary='Search an index', responses=gives(SearchResponse))
    async def search(
        request: Request,
        index: str = index_of,
        query: str = query_of,
        hits: int = Query(min(10, limits.hits), ge=1, le=limits.hits, description='candidates of the answer'),
        system: list[str] = system_of,
        fusion: Fusion = Query('interleave', description='how several systems become one'),
        alpha: float | None = Query(None, ge=0, le=1, description="interpolation: the first system's weight"),
        rrf_k: float | None = Query(None, ge=0, le=1e6, description='rrf: the constant that is added to ranks'),
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
        pipeline = Pipeline.model_construct(
            system=_listed(system), fusion=fusion, alpha=alpha, rrf_k=rrf_k, rerank=rerank
        )
        ask = _ask(query, hits, pipeline, k1, b, provenance)
        own = service.index(index)
        tell = teller(progress, request) if ask.stages else None
        answering = service.search(index, ask, tell)
        answer = await (while_there(request, answering, progress) if ask.stages else answering)
        texts = await passages(own, answer.ranking.docids, display)
        docids = answer.ranking.docids[:explain_hits]
        explained = [await service.explain(index, model, query, docids, {}) for model in _listed(explain) if docids]
        more = {'explanations': explained} if explain else {}
        shown = Shown(parse, max_doc_length, provenance, display)
        return await responded(lambda: search_payload(own, answer, texts, shown) | more)

    @router.post('/{index}/batch', summary='Search for several queries', responses=gives(BatchResponse))
    async def batch(request: Request, index: str = index_of, body: BatchRequest = Body()) -> Response:
        if len(body.queries) > limits.batch_queries:
            raise InputError(f'{len(body.queries)} queries were given, at most {limits.batch_queries} are taken')
        own = service.index(index)
        asks = [_ask(one.text, hits_of(body, limits), body, deep=body.provenance) for one in body.queries]
        qids = [str(place) if one.qid is None else one.qid for place, one in enumerate(body.queries)]
        if len(set(qids)) < len(qids):
            twice = next(qid for qid in qids if qids.count(qid) > 1)
            raise InputError(f"qid '{twice[:60]}' was given twice (a query without one has its place, from 0)")
        shown = Shown(body.parse, None, body.provenance, body.display)

        async def one(ask: Ask) -> tuple[Answer, Passages]:
            answer = await service.search(index, ask)
            return answer, await passages(own, answer.ranking.docids, body.display)

        async def all_of_them() -> list[tuple[Answer, Passages]]:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(ask)) for ask in asks]
            return [task.result() for task in tasks]

        try:
            answers = await while_there(request, all_of_them(), progress)
        except* Exception as errors:
            raise errors.exceptions[0] from None

        def payload() -> dict[str, Any]:
            results = [
                {'qid': qid, **search_payload(own, *answer, shown)} for qid, answer in zip(qids, answers, strict=True)
            ]
            return {'api': API, 'index': index, 'results': results}

        return await responded(payload)

    @router.get('/{index}/explain', summary='Why passages are where they are', responses=gives(ExplainResponse))
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
        options = {'top': top, 'samples': samples, 'seed': seed, 'layers': layers(layer) if layer else None}
        tell = teller(progress, request)
        found = await while_there(request, service.explain(index, model, query, docid, options, tell), progress)
        return await responded(lambda: {'api': API, 'index': index, **found})

    @router.post('/{index}/compare', summary='Two answers side by side', responses=gives(CompareResponse))
    async def compare(request: Request, index: str = index_of, body: CompareRequest = Body()) -> Response:
        own = service.index(index)
        asks = {
            side: _ask(body.query, hits_of(body, limits), pipeline, deep=True)
            for side, pipeline in (('a', body.a), ('b', body.b))
        }

        tell = teller(progress, request)

        async def both() -> dict[str, Answer]:
            return {side: await service.search(index, ask, tell) for side, ask in asks.items()}

        answers = await while_there(request, both(), progress)
        texts = {side: await passages(own, one.ranking.docids, body.display) for side, one in answers.items()}
        shown = Shown(provenance=True, display=body.display)
        return await responded(lambda: comparison_payload(own, answers, texts, shown))
