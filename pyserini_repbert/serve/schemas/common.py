"""What the bodies of requests and answers have in common, and the meaning of each status, for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from pyserini_repbert.data.identifiers import has_surrogates

_ERRORS = {
    400: 'a parameter is missing, malformed or outside its limits, or the body is not JSON',
    401: 'no key, or one that is not accepted',
    404: 'no such index, system, reranker, document, topic or address',
    405: 'the address does not take this method',
    413: 'the body is too long',
    422: 'the body is not of the form expected, or not sent as application/json',
    429: 'too many requests wait: try again after Retry-After seconds',
    500: 'the service failed',
    503: 'the service is not ready, or a cluster does not answer',
    504: 'no answer within the time limit',
}


def _characters(text: str) -> str:
    if has_surrogates(text):
        raise ValueError('half of a surrogate pair is no character')
    return text


Text = Annotated[str, AfterValidator(_characters)]
Fusion = Literal['interleave', 'rrf', 'interpolation']


class Sent(BaseModel):
    """A part of a body; unknown fields are refused."""

    model_config = ConfigDict(extra='forbid')


class Answered(BaseModel):
    """An answer of this version of the API."""

    api: Literal['v1']


class OfIndex(Answered):
    """An answer of an index."""

    index: str


class ErrorResponse(BaseModel):
    """Why there is no answer."""

    error: str


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {'model': ErrorResponse, 'description': text} for status, text in _ERRORS.items()
}


def gives(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The form of an answer, for the OpenAPI document."""
    return {200: {'model': model}}
