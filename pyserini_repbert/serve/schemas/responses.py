"""What each status says, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

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


class ErrorResponse(BaseModel):
    """Why there is no answer."""

    error: str


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {'model': ErrorResponse, 'description': text} for status, text in _ERRORS.items()
}


def gives(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The form of an answer, for the OpenAPI document."""
    return {200: {'model': model}}
