"""The addresses below /v1 for judging, and for learning from judgments.

They are for indexes that take judgments: collections, and those whose settings name a file of
judgments. Where keys are set that may write, judging and learning take one of them; any key reads.
As in `routes`, a handler's `summary` is what the OpenAPI document has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.responses import PlainTextResponse, Response

from pyserini_repbert.collection.judging.from_judgments import use_learning
from pyserini_repbert.collection.judging.judgment_exports import JudgmentFormat, exported
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.errors import BusyError
from pyserini_repbert.indexes.stores import ALL_FIELDS
from pyserini_repbert.serve import judging_models as models
from pyserini_repbert.serve.added_fields import RANDOM, pool_orders, with_pool_orders
from pyserini_repbert.serve.answer_models import API
from pyserini_repbert.serve.answers import AnswerOptions, AnswerSize
from pyserini_repbert.serve.http_errors import RESPONSES, check_parameters
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.judging import (
    Pool,
    judgments_answer,
    learning_answer,
    make_pool,
    pool_answer,
    questions_answer,
    store_judgments,
)
from pyserini_repbert.serve.refusals import NotAllowedError, UnderWayError
from pyserini_repbert.serve.requests import (
    NOT_BLANK,
    Fields,
    Stages,
    StrictModel,
)
from pyserini_repbert.serve.routes import Call, ClientCall, IndexName, IndexRoute
from pyserini_repbert.serve.searching import RequestTrace

_LESS = (
    "ask for the judgments of one 'judge' or one 'question', or for a file of them ('format'); of "
    "a pool, for a lesser 'depth' or for fewer 'fields'"
)
_LESS_OF_FILE = (
    "ask for 'qrels' instead of 'jsonl', let `index judgments` write the file where the service "
    "runs, or give the service a greater 'answer_bytes' in its settings"
)
router = APIRouter(
    prefix='/v1',
    route_class=IndexRoute,
    tags=['judging'],
    dependencies=[Depends(check_parameters)],
    responses=RESPONSES,
    redirect_slashes=False,
)
JudgeName = Annotated[str, Query(max_length=100, description='name of the judge')]
_Question = Annotated[str, Field(max_length=2000, json_schema_extra=NOT_BLANK)]
# As the page's buttons.
_Grade = Annotated[int, Field(ge=0, le=3, description='0: not relevant; 3: answers perfectly')]


async def check_may_judge(call: Call, request: Request) -> None:
    """The dependency of each route that stores or deletes something.

    Raises NotAllowedError for a client that may only read, where some may write.
    """
    if call.service.settings.write_keys and not request.state.may_write:
        raise NotAllowedError(
            'judging and learning take a key that may write: send it as X-API-Key'
        )


_WRITES = [Depends(check_may_judge)]


class GivenJudgment(StrictModel):
    """A grade of a document for a question."""

    question: _Question = Field(description='the question')
    docid: str = Field(
        max_length=1000, description='docid of the document', json_schema_extra=NOT_BLANK
    )
    grade: _Grade
    judge: str = Field('', max_length=100, description='who judges')
    comment: str = Field('', max_length=2000, description='of the judge')
    pool: str | None = Field(None, max_length=64, description='from which it was shown')


class JudgmentsRequest(StrictModel):
    """Judgments to store; one of the same question, document and judge is replaced."""

    judgments: list[GivenJudgment] = Field(min_length=1, max_length=1000)


class QuestionsRequest(StrictModel):
    """Questions to be judged."""

    questions: list[_Question] = Field(min_length=1, max_length=1000)


@with_pool_orders
class PoolRequest(StrictModel):
    """A question whose best documents should be judged."""

    question: _Question = Field(description='the question')
    depth: int = Field(5, ge=1, le=100, description='the number of hits of each ranking')
    rerank: Stages = Field([], description='rerankers, each of which adds its best hits')
    judge: str = Field('', max_length=100, description='whose grades are shown')
    fields: Fields = Field([ALL_FIELDS])


class LearningRequest(StrictModel):
    """Begins a learning; it has no settings."""


class UseRequest(StrictModel):
    """Whether the collection is searched with what it learned last."""

    in_use: bool = Field(description='false: search as before any learning')
    even_if_worse: bool = Field(
        False, description='use it even if it is not better than the present search'
    )


@router.get(
    '/{index}/questions',
    summary='The questions to judge',
    response_model=models.QuestionsResponse,
)
async def questions(call: Call, index: IndexName, judge: JudgeName = '') -> Response:
    store = call.service.judgments(index)
    return await _answer(call, index, lambda served, _: questions_answer(served, store, judge))


@router.post(
    '/{index}/questions',
    summary='Add questions to judge',
    response_model=models.QuestionsResponse,
    dependencies=_WRITES,
)
async def add_questions(
    call: Call, index: IndexName, body: QuestionsRequest, judge: JudgeName = ''
) -> Response:
    store = call.service.judgments(index)

    def add(served: ServedIndex, _: RequestTrace) -> models.QuestionsResponse:
        store.add_questions(body.questions)
        return questions_answer(served, store, judge)

    return await _answer(call, index, add)


@router.post(
    '/{index}/pools',
    summary='The documents to judge for a question: the best of every ranking, in random order',
    response_model=models.PoolResponse,
    dependencies=_WRITES,
)
async def make_pool_of(call: Call, index: IndexName, body: PoolRequest) -> Response:
    store = call.service.judgments(index)

    def pool(served: ServedIndex, trace: RequestTrace) -> models.PoolResponse:
        docids = make_pool(call.service, served, body.question, body.depth, body.rerank, trace)
        order = getattr(body, 'order', RANDOM)
        if order != RANDOM:
            ordering = pool_orders()[order]
            docids = ordering.order(call.service, served, body.question, docids, trace)
        size = AnswerSize(call.service.settings.limits.answer_bytes, _LESS)
        options = AnswerOptions(fields=body.fields, size=size)
        shown = Pool(body.question, docids, body.judge, order)
        return pool_answer(served, store, shown, options)

    return await _answer(call, index, pool, reranks=bool(body.rerank))


@router.get(
    '/{index}/judgments',
    summary='Judgments, or a file of them',
    response_model=models.JudgmentsResponse,
    responses={200: {'content': {'text/plain': {}}, 'description': 'with format: the file'}},
)
async def list_judgments(
    call: Call,
    index: IndexName,
    judge: Annotated[str | None, Query(max_length=100, description='only of this judge')] = None,
    question: Annotated[str | None, Query(description='only of this question')] = None,
    format: Annotated[
        JudgmentFormat | None,
        Query(description='a file of all judgments: topics, qrels, or JSON lines'),
    ] = None,
) -> Response:
    store = call.service.judgments(index)
    if format is not None:
        return await call.respond(
            lambda _: PlainTextResponse(exported(store, format)), less=_LESS_OF_FILE
        )
    return await _answer(
        call, index, lambda served, _: judgments_answer(served, store, judge, question)
    )


@router.post(
    '/{index}/judgments',
    summary='Store judgments',
    response_model=models.StoredResponse,
    dependencies=_WRITES,
)
async def judge_documents(call: Call, index: IndexName, body: JudgmentsRequest) -> Response:
    store = call.service.judgments(index)

    def add(served: ServedIndex, _: RequestTrace) -> models.StoredResponse:
        judgments = []
        for given in body.judgments:
            docid = served.store.stored_docid(given.docid)
            values = given.model_dump() | {'docid': docid, 'pool': given.pool or ''}
            judgments.append(Judgment(**values))
        store_judgments(served, store, judgments)
        return models.StoredResponse(api=API, index=index, stored=len(judgments))

    return await _answer(call, index, add)


@router.delete(
    '/{index}/judgments',
    summary='Take a judgment back',
    response_model=models.DeletedResponse,
    dependencies=_WRITES,
)
async def delete_judgment(
    call: Call,
    index: IndexName,
    question: Annotated[str, Query(description='the question')],
    docid: Annotated[str, Query(description='docid of the document')],
    judge: JudgeName = '',
) -> Response:
    store = call.service.judgments(index)

    def delete(served: ServedIndex, _: RequestTrace) -> models.DeletedResponse:
        n_deleted = store.delete(question, served.store.stored_docid(docid), judge)
        return models.DeletedResponse(api=API, index=index, deleted=n_deleted)

    return await _answer(call, index, delete)


@router.get(
    '/{index}/learn',
    summary='How far a learning is, and what it gained',
    response_model=models.LearningResponse,
)
async def learning(call: Call, index: IndexName) -> Response:
    return await _answer_learning(call, index)


@router.post(
    '/{index}/learn',
    summary='Learn from all judgments',
    response_model=models.LearningResponse,
    dependencies=_WRITES,
)
async def learn(call: Call, index: IndexName, body: LearningRequest) -> Response:
    learner = call.service.learner(index)
    try:
        await call.service.run(lambda _: learner.start())
    except BusyError as error:
        raise UnderWayError(str(error)) from error
    return await _answer_learning(call, index)


@router.put(
    '/{index}/learn',
    summary='Search as it learned, or as before',
    response_model=models.LearningResponse,
    dependencies=_WRITES,
)
async def use(call: Call, index: IndexName, body: UseRequest) -> Response:
    learner = call.service.learner(index)

    def change(_: RequestTrace) -> None:
        use_learning(learner.folder, body.in_use, body.even_if_worse)
        # The next search is answered so.
        call.service.renew(index)

    await call.service.run(change)
    return await _answer_learning(call, index)


async def _answer_learning(call: Call, index: str) -> Response:
    learner = call.service.learner(index)
    store = call.service.judgments(index)
    return await _answer(call, index, lambda served, _: learning_answer(served, store, learner))


async def _answer(
    call: ClientCall,
    index: str,
    work: Callable[[ServedIndex, RequestTrace], Mapping[str, Any]],
    reranks: bool = False,
) -> Response:
    """The answer that `work` makes in a thread, while the index is held.

    `reranks` is as in `Service.run`.
    """

    def answer(trace: RequestTrace) -> Mapping[str, Any]:
        with call.hold(index) as served:
            return work(served, trace)

    return await call.answer(answer, reranks, _LESS)
