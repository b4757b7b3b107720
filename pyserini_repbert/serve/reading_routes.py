"""The addresses below /v1 at which a reader gets a document of any length, part by part.

As in `routes`, a handler's `summary` is what the OpenAPI document has.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field
from starlette.responses import Response

from pyserini_repbert.errors import InputError
from pyserini_repbert.indexes.stores import ALL_FIELDS
from pyserini_repbert.serve import answer_models as models
from pyserini_repbert.serve.http_errors import RESPONSES, check_parameters
from pyserini_repbert.serve.reading import (
    LONGEST_PART,
    USUAL_PART,
    PartRequest,
    outline_answer,
    part_answer,
)
from pyserini_repbert.serve.requests import WITH_COMMAS, Fields, StrictModel, check_query
from pyserini_repbert.serve.routes import Call, IndexName, IndexRoute
from pyserini_repbert.serve.searching import RequestTrace
from pyserini_repbert.serve.settings import Limits

_MOST_CHARACTER = 2**31 - 1
_LESS = "ask for fewer 'characters'"
_LESS_OF_FIELDS = "ask for fewer 'fields'"
router = APIRouter(
    prefix='/v1',
    route_class=IndexRoute,
    tags=['reading'],
    dependencies=[Depends(check_parameters)],
    responses=RESPONSES,
    redirect_slashes=False,
)
Docid = Annotated[
    str, Path(description='as in the candidates of a search; it may have slashes and spaces')
]


class TextRequest(StrictModel):
    """Which part of a text is read."""

    start: int | None = Field(
        None, ge=0, le=_MOST_CHARACTER, description='the first character of the part, from 0'
    )
    end: int | None = Field(
        None, ge=0, le=_MOST_CHARACTER, description='the character after its last'
    )
    at: int | None = Field(None, ge=0, le=_MOST_CHARACTER, description='a character within it')
    characters: int = Field(
        USUAL_PART, ge=1, le=LONGEST_PART, description='its approximate number of characters'
    )
    query: str = Field('', description='whose words are found in it')

    def part(self) -> PartRequest:
        """The part. Raises InputError if two of its characters are named."""
        named = [name for name in ('start', 'end', 'at') if getattr(self, name) is not None]
        if len(named) > 1:
            raise InputError(f"'{named[0]}' and '{named[1]}' were given: give one of them")
        start = self.start if named else 0
        return PartRequest(start, self.end, self.at, self.characters)


class OutlineRequest(StrictModel):
    """The description of a document."""

    query: str = Field('', description='the question for which passages are ranked')
    passages: int = Field(10, ge=0, le=50, description='the most passages')
    fields: Annotated[Fields, WITH_COMMAS] = Field([ALL_FIELDS])


def _check(query: str, limits: Limits) -> None:
    """Raises InputError for a question that is too long or no text; there may be none."""
    if query:
        check_query(query, limits)


@router.get(
    '/{index}/text/{docid:path}',
    summary='A part of the text of a document',
    response_model=models.TextPartResponse,
)
async def text(
    call: Call, index: IndexName, docid: Docid, parameters: Annotated[TextRequest, Query()]
) -> Response:
    _check(parameters.query, call.service.settings.limits)
    part = parameters.part()

    def find_text(_: RequestTrace) -> models.TextPartResponse:
        with call.hold(index) as served:
            return part_answer(served, docid, part, parameters.query)

    return await call.answer(find_text, less=_LESS)


@router.get(
    '/{index}/outline/{docid:path}',
    summary='The fields and headings of a document, and where it fits a question best',
    response_model=models.OutlineResponse,
)
async def outline(
    call: Call, index: IndexName, docid: Docid, parameters: Annotated[OutlineRequest, Query()]
) -> Response:
    _check(parameters.query, call.service.settings.limits)

    def outline_document(_: RequestTrace) -> models.OutlineResponse:
        with call.hold(index) as served:
            return outline_answer(
                served, docid, parameters.query, parameters.passages, parameters.fields
            )

    return await call.answer(outline_document, less=_LESS_OF_FIELDS)
