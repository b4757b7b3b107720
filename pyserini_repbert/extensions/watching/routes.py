"""`/v1/NAME/history`: how well the judged questions were answered, generation by generation."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import cast

from fastapi import APIRouter, Depends
from starlette.responses import Response

from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.extensions.watching.forms import GenerationFigures, HistoryResponse
from pyserini_repbert.extensions.watching.measured import MeasuredGeneration
from pyserini_repbert.extensions.watching.measuring import is_measured
from pyserini_repbert.extensions.watching.stored import stored_generations
from pyserini_repbert.serve.answer_models import API
from pyserini_repbert.serve.http_errors import RESPONSES, check_parameters
from pyserini_repbert.serve.routes import Call, IndexName, IndexRoute

_LESS = "give the service a greater 'answer_bytes' in its settings"
router = APIRouter(
    prefix='/v1',
    route_class=IndexRoute,
    tags=['judging'],
    dependencies=[Depends(check_parameters)],
    responses=RESPONSES,
    redirect_slashes=False,
)


@router.get(
    '/{index}/history',
    summary='How well the judged questions were answered, generation by generation',
    response_model=HistoryResponse,
)
async def history(call: Call, index: IndexName) -> Response:
    folder = call.service.learner(index).folder
    return await call.answer(lambda _: _history(index, folder), less=_LESS)


def _history(alias: str, folder: Path) -> HistoryResponse:
    """How well the judged questions of a collection were answered, generation by generation."""
    generations = [
        _generation_figures(measured) for measured in stored_generations(judgments_of(folder))
    ]
    return HistoryResponse(
        api=API,
        index=alias,
        generations=generations,
        is_newest=is_measured(folder),
    )


def _generation_figures(measured: MeasuredGeneration) -> GenerationFigures:
    """What a client reads of a generation; of its questions, those that moved or have no answer."""
    values = asdict(measured)
    values['questions'] = measured.n_asked
    values['with_relevant'] = len(measured.questions)
    values['unanswered'] = [
        {'question': question.question, 'answered': question.answered}
        for question in measured.unanswered
    ]
    for name in ('manifest_sha256', 'asked', 'without_relevant'):
        del values[name]
    if values['change'] is not None:
        for moved in values['change']['questions']:
            moved['question'] = moved['after']['question']
            for figures in (moved['before'], moved['after']):
                del figures['qid']
                del figures['question']
    return cast(GenerationFigures, values)
