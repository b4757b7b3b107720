"""The addresses below /v1.

Each handler turns a request's parameters into what `Service` takes, and says what is to be done in
a thread. A docstring of a handler would be part of the OpenAPI document: its `summary` stands for
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.explain.explaining import SAMPLES
from pyserini_repbert.serve import answer_models as models, requests
from pyserini_repbert.serve.answers import (
    API,
    AnswerOptions,
    comparison_answer,
    document_answer,
    index_answer,
    search_answer,
)
from pyserini_repbert.serve.refusals import RESPONSES, check_parameters, json_response
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service

_LOOKED_AGAIN = 0.25  # seconds between checks that a client is still connected


def get_service(request: Request) -> Service:
    """The service of the application that a request is for."""
    service: Service = request.app.state.service
    return service


ServiceOfApp = Annotated[Service, Depends(get_service)]
IndexName = Annotated[str, Path(description='name of an index, see /v1/indexes')]

router = APIRouter(
    prefix='/v1',
    responses=RESPONSES,
    dependencies=[Depends(check_parameters)],
    redirect_slashes=False,
)


@router.get(
    '/progress/{request_id}',
    summary='How far a request is',
    response_model=models.ProgressResponse,
)
async def progress(
    service: ServiceOfApp,
    request_id: Annotated[str, Path(description='the X-Request-ID of the request')],
) -> Response:
    trace = service.traces.get(request_id)
    if trace is None or trace.progress is None:
        raise MissingResourceError('no such request is being reranked now')
    stage = trace.progress
    answer = {'api': API, 'stage': stage.stage, 'done': stage.done, 'total': stage.total}
    return json_response(answer)


@router.get('/{index}/search', summary='Search an index', response_model=models.SearchResponse)
async def search(
    request: Request,
    service: ServiceOfApp,
    index: IndexName,
    wanted: Annotated[requests.SearchRequest, Query()],
) -> Response:
    options = AnswerOptions(wanted.parse, wanted.max_doc_length, wanted.provenance, wanted.display)
    search = wanted.search(wanted.query, wanted.hits, wanted.provenance, service.settings.limits)

    def answer_with_explanations(trace: RequestTrace) -> dict[str, Any]:
        answer = service.search(index, search, trace)
        if not wanted.explain:
            return search_answer(service.index(index), answer, options)
        docids = answer.hits.docids[: wanted.explain_hits]
        explanations = []
        if docids:
            for model in wanted.explain:
                explanations.append(service.explain(index, model, wanted.query, docids, {}, trace))
        return search_answer(service.index(index), answer, options, explanations=explanations)

    reranks = bool(wanted.rerank or wanted.explain)
    return await run_for_client(request, service, answer_with_explanations, reranks)


@router.post(
    '/{index}/batch', summary='Search for several queries', response_model=models.BatchResponse
)
async def batch(
    request: Request, service: ServiceOfApp, index: IndexName, body: requests.BatchRequest
) -> Response:
    limits = service.settings.limits
    if len(body.queries) > limits.batch_queries:
        raise InputError(
            f'{len(body.queries)} queries were given, at most {limits.batch_queries} are taken'
        )
    options = AnswerOptions(body.parse, provenance=body.provenance, display=body.display)
    searches = []
    qids = []
    for number, query in enumerate(body.queries):
        searches.append(body.search(query.text, body.hits, body.provenance, limits))
        qids.append(str(number) if query.qid is None else query.qid)

    def answer_all(trace: RequestTrace) -> dict[str, Any]:
        answers = service.search_batch(index, searches, trace)
        served = service.index(index)
        results = []
        for qid, answer in zip(qids, answers, strict=True):
            results.append(search_answer(served, answer, options, qid=qid))
        return {'api': API, 'index': index, 'results': results}

    return await run_for_client(request, service, answer_all, reranks=bool(body.rerank))


@router.get(
    '/{index}/explain',
    summary='Why hits rank where they do',
    response_model=models.ExplainResponse,
)
async def explain(
    request: Request,
    service: ServiceOfApp,
    index: IndexName,
    query: Annotated[str, Query(description='a question')],
    model: Annotated[
        str, Query(description="a reranker's name, or a system: epic, cedr, duobert, monobert")
    ],
    docid: Annotated[list[str], Query(min_length=1, description='a hit to explain; repeatable')],
    top: Annotated[int, Query(ge=0, le=100, description='EPIC: how many expansion terms')] = 10,
    layer: Annotated[
        tuple[int, ...],
        requests.WITH_COMMAS,
        Query(description='CEDR: as 0,6; default: the last'),
    ] = (),
    samples: Annotated[
        int, Query(ge=1, le=1000, description="duoBERT: m of method 'sample'")
    ] = SAMPLES,
    seed: Annotated[int, Query(ge=0, le=2**31 - 1, description="duoBERT: of method 'sample'")] = 0,
) -> Response:
    options = {'top': top, 'layers': layer, 'samples': samples, 'seed': seed}

    def explain_hits(trace: RequestTrace) -> dict[str, Any]:
        explanation = service.explain(index, model, query, docid, options, trace)
        return {'api': API, 'index': index, **explanation}

    return await run_for_client(request, service, explain_hits, reranks=True)


@router.post(
    '/{index}/compare',
    summary='Two answers side by side',
    response_model=models.CompareResponse,
)
async def compare(
    request: Request, service: ServiceOfApp, index: IndexName, body: requests.CompareRequest
) -> Response:
    limits = service.settings.limits
    left = body.a.search(body.query, body.hits, provenance=True, limits=limits)
    right = body.b.search(body.query, body.hits, provenance=True, limits=limits)
    options = AnswerOptions(provenance=True, display=body.display)

    def answer_both(trace: RequestTrace) -> dict[str, Any]:
        a = service.search(index, left, trace)
        b = service.search(index, right, trace)
        return comparison_answer(service.index(index), a, b, options)

    reranks = bool(body.a.rerank or body.b.rerank)
    return await run_for_client(request, service, answer_both, reranks)


@router.get(
    '/indexes',
    summary='The indexes, and what may be asked of them',
    response_model=models.IndexesResponse,
)
async def indexes(service: ServiceOfApp) -> Response:
    served = [index_answer(service, index) for index in service.served.values()]
    return json_response({'api': API, 'indexes': served})


@router.get(
    '/{index}', summary='What may be asked of an index', response_model=models.IndexResponse
)
async def about(service: ServiceOfApp, index: IndexName) -> Response:
    return json_response({'api': API, **index_answer(service, service.index(index))})


@router.get(
    '/{index}/doc/{docid:path}', summary='A document', response_model=models.DocumentResponse
)
async def doc(
    request: Request,
    service: ServiceOfApp,
    index: IndexName,
    docid: Annotated[
        str,
        Path(description='as in the candidates of a search; it may have slashes and spaces'),
    ],
    parse: requests.Parse = True,
    max_doc_length: Annotated[
        int | None, Query(ge=1, description='characters of the document')
    ] = None,
    display: requests.Display = False,
    query: Annotated[str, Query(description='with display: the query whose words are marked')] = '',
) -> Response:
    options = AnswerOptions(parse, max_doc_length, display=display)

    def find_document(_: RequestTrace) -> dict[str, Any]:
        fields = document_answer(service.index(index), docid, options, query)
        return {'api': API, 'index': index, 'docid': docid, **fields}

    return await run_for_client(request, service, find_document)


@router.get(
    '/{index}/topics', summary='Questions on an index', response_model=models.TopicsResponse
)
async def topics(
    service: ServiceOfApp,
    index: IndexName,
    like: Annotated[
        str, Query(max_length=200, description='only questions that contain this text')
    ] = '',
    limit: Annotated[int, Query(ge=1, le=1000, description='questions of the answer')] = 20,
) -> Response:
    served = service.index(index)
    listed = []
    for topic in served.topics.values():
        if like.casefold() in topic.text.casefold():
            judged = topic.qid in served.qrels
            listed.append({'qid': topic.qid, 'text': topic.text, 'judged': judged})
    return json_response({'api': API, 'index': index, 'topics': listed[:limit]})


@router.get(
    '/{index}/qrels/{qid:path}',
    summary='The judgments of a topic',
    response_model=models.QrelsResponse,
)
async def qrels(
    service: ServiceOfApp,
    index: IndexName,
    qid: Annotated[str, Path(description='the topic')],
) -> Response:
    served = service.index(index)
    grades = served.grades(qid)
    topic = served.topics.get(qid)
    text = None if topic is None else topic.text
    answer = {'api': API, 'index': index, 'qid': qid, 'text': text, 'grades': grades}
    return json_response(answer)


async def run_for_client(
    request: Request,
    service: Service,
    work: Callable[[RequestTrace], dict[str, Any]],
    reranks: bool = False,
) -> Response:
    """The JSON of `work`, which is given up if the client goes away.

    Parameters
    ----------
    request : its id leads to the trace, in `service.traces`, while the work is done
    service : runs the work
    work : takes the trace, and returns the answer
    reranks : as in `Service.run`

    Raises
    ------
    ClientDisconnect : the client has gone
    """
    trace = RequestTrace()
    request_id = request.state.request_id
    service.traces[request_id] = trace
    running = service.run(lambda trace: json_response(work(trace)), reranks, trace)
    task = asyncio.ensure_future(running)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_LOOKED_AGAIN)
            if not task.done() and await request.is_disconnected():
                raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        # Two requests may have one id.
        service.traces.pop(request_id, None)
