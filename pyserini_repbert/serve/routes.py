"""The addresses below /v1.

Each handler turns a request's parameters into arguments of `Service`, and decides what runs in a
thread. Handlers have no docstrings, because the OpenAPI document would show them: their `summary`
says what they do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.serve import answer_models as models, requests
from pyserini_repbert.serve.answer_models import API
from pyserini_repbert.serve.answers import (
    LESS_OF_A_TEXT,
    LESS_OF_HITS,
    AnswerOptions,
    AnswerSize,
    comparison_answer,
    document_answer,
    index_answer,
    search_answer,
)
from pyserini_repbert.serve.http_errors import RESPONSES, check_parameters, json_response
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.refusals import too_long_answer
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.setting_values import RESERVED

_CHECK_EVERY = 0.25  # seconds between checks that a client is still connected


class ClientCall:
    """A request, and the service that answers it."""

    def __init__(self, request: Request) -> None:
        self.service: Service = request.app.state.service
        self._request = request

    async def answer(
        self,
        work: Callable[[RequestTrace], Mapping[str, Any]],
        reranks: bool = False,
        less: str = '',
    ) -> Response:
        """The JSON of `work`; the parameters are as in `respond`."""
        return await self.respond(lambda trace: json_response(work(trace)), reranks, less)

    async def respond(
        self,
        work: Callable[[RequestTrace], Response],
        reranks: bool = False,
        less: str = '',
    ) -> Response:
        """What `work` returns, done in a thread, and given up if the client goes away.

        Parameters
        ----------
        work : takes the trace, which `service.traces` has meanwhile
        reranks : as in `Service.run`
        less : how to ask for a shorter answer, if its length depends on stored data; '': it has
            any length

        Raises
        ------
        ClientDisconnect : the client goes away
        InputError : the answer is too long
        """
        trace = RequestTrace()
        request_id = self._request.state.request_id
        self.service.traces[request_id] = trace
        running = self.service.run(lambda trace: self._bounded(work(trace), less), reranks, trace)
        task = asyncio.ensure_future(running)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_CHECK_EVERY)
                if not task.done() and await self._request.is_disconnected():
                    raise ClientDisconnect
            return task.result()
        finally:
            task.cancel()
            # Two requests may have one id.
            self.service.traces.pop(request_id, None)

    def _bounded(self, response: Response, less: str) -> Response:
        """The response. Raises InputError for one that is too long."""
        most = self.service.settings.limits.answer_bytes
        if less and len(response.body) > most:
            raise too_long_answer(most, less)
        return response

    @contextmanager
    def hold(self, alias: str) -> Iterator[ServedIndex]:
        """A context as in `Service.hold`; the log says which generation of a collection answers."""
        with self.service.hold(alias) as index:
            if index.index.generation_number is not None:
                self._request.state.generation = index.index.generation_number
            yield index


async def get_call(request: Request) -> ClientCall:
    """The dependency of each route."""
    return ClientCall(request)


Call = Annotated[ClientCall, Depends(get_call)]
IndexName = Annotated[str, Path(description='name of an index, see /v1/indexes')]


class IndexRoute(APIRoute):
    """An address of an index; names that no index can have are other addresses."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if child.get('path_params', {}).get('index') in RESERVED:
            return Match.NONE, {}
        return match, child


router = APIRouter(
    prefix='/v1',
    route_class=IndexRoute,
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
    call: Call,
    request_id: Annotated[str, Path(description='the X-Request-ID of the request')],
) -> Response:
    trace = call.service.traces.get(request_id)
    if trace is None or trace.progress is None:
        raise MissingResourceError('no such request is being reranked now')
    stage = trace.progress
    answer = models.ProgressResponse(api=API, stage=stage.stage, done=stage.done, total=stage.total)
    return json_response(answer)


@router.get('/{index}/search', summary='Search an index', response_model=models.SearchResponse)
async def search(
    call: Call,
    index: IndexName,
    parameters: Annotated[requests.SearchRequest, Query()],
) -> Response:
    options = AnswerOptions(
        parse=parameters.parse,
        max_length=parameters.max_doc_length,
        provenance=parameters.provenance,
        display=parameters.display,
        fields=parameters.fields,
        size=AnswerSize(call.service.settings.limits.answer_bytes),
    )
    search = parameters.asked_search(parameters.provenance, call.service.settings.limits)
    search = replace(search, group_copies=parameters.group_copies)
    if parameters.explain and parameters.like is not None:
        raise InputError("'explain' reads a question, and 'like' is a document: leave one out")

    def answer_with_explanations(trace: RequestTrace) -> models.SearchResponse:
        with call.hold(index) as served:
            answer = call.service.search(served, search, trace)
            if not parameters.explain:
                return search_answer(served, answer, options)
            docids = answer.hits.docids[: parameters.explain_hits]
            explanations = []
            if docids:
                for model in parameters.explain:
                    explanations.append(
                        call.service.explain(served, model, parameters.query, docids, {}, trace)
                    )
            return search_answer(served, answer, options, explanations=explanations)

    reranks = bool(parameters.rerank or parameters.explain)
    return await call.answer(answer_with_explanations, reranks, LESS_OF_HITS)


@router.post(
    '/{index}/batch', summary='Search for several queries', response_model=models.BatchResponse
)
async def batch(call: Call, index: IndexName, body: requests.BatchRequest) -> Response:
    limits = call.service.settings.limits
    if len(body.queries) > limits.batch_queries:
        raise InputError(
            f'{len(body.queries)} queries were given, at most {limits.batch_queries} are allowed'
        )
    options = AnswerOptions(
        parse=body.parse,
        provenance=body.provenance,
        display=body.display,
        fields=body.fields,
        size=AnswerSize(limits.answer_bytes),
    )
    searches = []
    qids = []
    for number, query in enumerate(body.queries):
        searches.append(body.search(query.text, body.hits, body.provenance, limits))
        qids.append(str(number) if query.qid is None else query.qid)

    def answer_all(trace: RequestTrace) -> models.BatchResponse:
        results = []
        with call.hold(index) as served:
            answers = call.service.search_batch(served, searches, trace)
            for qid, answer in zip(qids, answers, strict=True):
                results.append(search_answer(served, answer, options, qid=qid))
        return {'api': API, 'index': index, 'results': results}

    return await call.answer(answer_all, bool(body.rerank), LESS_OF_HITS)


@router.get(
    '/{index}/explain',
    summary='Why hits rank where they do',
    response_model=models.ExplainResponse,
)
async def explain(
    call: Call, index: IndexName, parameters: Annotated[requests.ExplainRequest, Query()]
) -> Response:
    options = {
        'top': parameters.top,
        'layers': parameters.layer,
        'samples': parameters.samples,
        'seed': parameters.seed,
    }

    def explain_hits(trace: RequestTrace) -> Mapping[str, Any]:
        with call.hold(index) as served:
            explanation = call.service.explain(
                served, parameters.model, parameters.query, parameters.docid, options, trace
            )
        return {'api': API, 'index': index, **explanation}

    return await call.answer(explain_hits, reranks=True, less="ask for fewer documents ('docid')")


@router.post(
    '/{index}/compare',
    summary='Two answers side by side',
    response_model=models.CompareResponse,
)
async def compare(call: Call, index: IndexName, body: requests.CompareRequest) -> Response:
    limits = call.service.settings.limits
    left = body.a.search(body.query, body.hits, provenance=True, limits=limits)
    right = body.b.search(body.query, body.hits, provenance=True, limits=limits)
    options = AnswerOptions(
        provenance=True,
        display=body.display,
        fields=body.fields,
        size=AnswerSize(limits.answer_bytes),
    )

    def answer_both(trace: RequestTrace) -> models.CompareResponse:
        with call.hold(index) as served:
            a = call.service.search(served, left, trace)
            b = call.service.search(served, right, trace)
            return comparison_answer(served, a, b, options)

    reranks = bool(body.a.rerank or body.b.rerank)
    return await call.answer(answer_both, reranks, LESS_OF_HITS)


@router.get(
    '/indexes',
    summary='The indexes, and what may be asked of them',
    response_model=models.IndexesResponse,
)
async def indexes(call: Call) -> Response:
    answers = []
    for alias in call.service.served:
        with call.service.hold(alias) as index:
            answers.append(index_answer(call.service, index))
    return json_response(models.IndexesResponse(api=API, indexes=answers))


@router.get(
    '/{index}', summary='What may be asked of an index', response_model=models.IndexResponse
)
async def about(call: Call, index: IndexName) -> Response:
    with call.hold(index) as served:
        answer: models.IndexResponse = {'api': API, **index_answer(call.service, served)}
    return json_response(answer)


@router.get(
    '/{index}/doc/{docid:path}', summary='A document', response_model=models.DocumentResponse
)
async def doc(
    call: Call,
    index: IndexName,
    docid: Annotated[
        str, Path(description='as in the candidates of a search; it may have slashes and spaces')
    ],
    parameters: Annotated[requests.DocumentRequest, Query()],
) -> Response:
    options = AnswerOptions(parameters.parse, parameters.max_doc_length, display=parameters.display)

    def find_document(_: RequestTrace) -> models.DocumentResponse:
        with call.hold(index) as served:
            return document_answer(served, docid, options, parameters.query)

    return await call.answer(find_document, less=LESS_OF_A_TEXT)


@router.get(
    '/{index}/topics', summary='Questions on an index', response_model=models.TopicsResponse
)
async def topics(
    call: Call, index: IndexName, parameters: Annotated[requests.TopicsRequest, Query()]
) -> Response:
    part = parameters.like.casefold()
    listed = []
    with call.hold(index) as served:
        for topic in served.topics.by_qid.values():
            if part in topic.text.casefold():
                judged = topic.qid in served.topics.qrels
                listed.append({'qid': topic.qid, 'text': topic.text, 'judged': judged})
    answer = models.TopicsResponse(api=API, index=index, topics=listed[: parameters.limit])
    return json_response(answer)


@router.get(
    '/{index}/qrels/{qid:path}',
    summary='The judgments of a topic',
    response_model=models.QrelsResponse,
)
async def qrels(
    call: Call,
    index: IndexName,
    qid: Annotated[str, Path(description='qid of the topic')],
) -> Response:
    with call.hold(index) as served:
        grades = served.topics.grades(qid)
        topic = served.topics.by_qid.get(qid)
    text = None if topic is None else topic.text
    answer = models.QrelsResponse(api=API, index=index, qid=qid, text=text, grades=grades)
    return json_response(answer)
