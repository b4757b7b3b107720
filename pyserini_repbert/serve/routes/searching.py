"""The addresses that search, explain and compare."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter, Body, Path, Query, Request
from starlette.responses import Response

from pyserini_repbert.errors import InputError
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.serve.explanations import SAMPLES, layers
from pyserini_repbert.serve.forms import (
    BatchRequest,
    BatchResponse,
    CompareRequest,
    CompareResponse,
    ExplainResponse,
    Fusion,
    PipelineForm,
    SearchResponse,
    gives,
    json_response,
)
from pyserini_repbert.serve.payloads import API, Shown, comparison_payload, search_payload
from pyserini_repbert.serve.requests import Progress, answered
from pyserini_repbert.serve.searching import Ask, RequestTrace
from pyserini_repbert.serve.service import Service


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
        k1: float | None = Query(None, ge=0, le=1e6, description="of system 'bm25'"),
        b: float | None = Query(None, ge=0, le=1, description="of system 'bm25'"),
        provenance: bool = Query(False, description="each hit's rank and score in every ranking"),
        display: bool = Query(False, description='passages mended for reading, words of the query marked'),
        explain: list[str] = Query([], max_length=4, description='rerankers to explain the best hits by'),
        explain_hits: int = Query(1, ge=1, le=10, description='how many of the best hits are explained'),
    ) -> Response:
        shown = Shown(parse, max_doc_length, provenance, display)
        settings = {'fusion': fusion, 'alpha': alpha, 'rrf_k': rrf_k, 'stages': rerank, 'k1': k1, 'b': b}
        ask = Ask(query, hits, _listed(system), PipelineSpec.of(settings), provenance)

        def work(trace: RequestTrace) -> Response:
            (answer,) = service.search(index, [ask], trace)
            payload = search_payload(service.index(index), answer, shown)
            if explain:
                docids = answer.ranking.docids[:explain_hits]
                models = _listed(explain) if docids else []
                payload['explanations'] = [service.explain(index, own, query, docids, {}, trace) for own in models]
            return json_response(payload)

        return await answered(request, service, work, bool(rerank or explain), progress)

    def ask_of(body: BatchRequest | CompareRequest, query: str, pipeline: PipelineForm, deep: bool) -> Ask:
        hits = body.hits if 'hits' in body.model_fields_set else min(body.hits, limits.hits)
        settings = pipeline.model_dump(include={'fusion', 'alpha', 'rrf_k'}) | {'stages': pipeline.rerank}
        return Ask(query, hits, pipeline.system, PipelineSpec.of(settings), deep)

    @router.post('/{index}/batch', summary='Search for several queries', responses=gives(BatchResponse))
    async def batch(request: Request, index: str = index_of, body: BatchRequest = Body()) -> Response:
        if len(body.queries) > limits.batch_queries:
            raise InputError(f'{len(body.queries)} queries were given, at most {limits.batch_queries} are taken')
        asks = [ask_of(body, one.text, body, body.provenance) for one in body.queries]
        qids = [str(place) if one.qid is None else one.qid for place, one in enumerate(body.queries)]
        (qid, times), *_ = Counter(qids).most_common(1)
        if times > 1:
            raise InputError(f"qid '{qid[:60]}' was given twice (a query without one has its place, from 0)")
        shown = Shown(body.parse, None, body.provenance, body.display)

        def work(trace: RequestTrace) -> Response:
            answers, own = service.search(index, asks, trace), service.index(index)
            results = [
                {'qid': qid, **search_payload(own, answer, shown)} for qid, answer in zip(qids, answers, strict=True)
            ]
            return json_response({'api': API, 'index': index, 'results': results})

        return await answered(request, service, work, bool(body.rerank))

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

        def work(trace: RequestTrace) -> Response:
            explained: dict[str, Any] = service.explain(index, model, query, docid, options, trace)
            return json_response({'api': API, 'index': index, **explained})

        return await answered(request, service, work, True, progress)

    @router.post('/{index}/compare', summary='Two answers side by side', responses=gives(CompareResponse))
    async def compare(request: Request, index: str = index_of, body: CompareRequest = Body()) -> Response:
        asks = [ask_of(body, body.query, pipeline, True) for pipeline in (body.a, body.b)]
        shown = Shown(provenance=True, display=body.display)

        def work(trace: RequestTrace) -> Response:
            a, b = (service.search(index, [ask], trace)[0] for ask in asks)
            return json_response(comparison_payload(service.index(index), {'a': a, 'b': b}, shown))

        return await answered(request, service, work, bool(body.a.rerank or body.b.rerank), progress)
