"""Errors over HTTP: their statuses and messages, and requests that are refused before a route."""

from __future__ import annotations

import json
import logging
import re
from typing import Any, get_origin

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from pyserini_repbert import errors
from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.extension import loaded
from pyserini_repbert.extension_words import missing_extension
from pyserini_repbert.serve.refusals import (
    NotAllowedError,
    NotReadyError,
    OverloadedError,
    TooLateError,
    UnderWayError,
    describe_problem,
)

logger = logging.getLogger(__name__)

# What other services call parameters, by their own names.
_OTHER_NAMES = {
    'k': 'hits',
    'limit': 'hits',
    'size': 'hits',
    'top_k': 'hits',
    'q': 'query',
    'question': 'query',
}
# The types of bodies that FastAPI reads.
_JSON = re.compile(r'application/([^;]*\+)?json *(;.*)?', re.IGNORECASE)
_METHODS = ('DELETE', 'GET', 'HEAD', 'PATCH', 'POST', 'PUT')
_ERRORS = {
    400: 'a parameter is missing, malformed or outside its limits, or the body is not JSON',
    401: 'the key is missing or not accepted',
    403: "another site's page asks for MCP tools, or the key or the index does not allow writing",
    404: 'unknown index, system, reranker, document, topic or address',
    405: 'the address does not accept this method',
    408: 'the request did not arrive in time',
    409: 'a document belongs to another source of the collection, the collection is already '
    'learning, or what it learned is not better than the present search',
    413: 'the body is too long',
    421: 'the service does not answer to this host',
    422: 'the body does not have the expected form, or was not sent as application/json',
    429: 'too many requests are waiting: try again after Retry-After seconds',
    500: 'the service failed',
    503: 'the service is not ready, an index is damaged, or a cluster or a language model does not '
    'answer',
    504: 'no answer within the time limit',
}

_STATUS: dict[type[PyseriniRepbertError], int] = {
    errors.InputError: 400,
    errors.MismatchError: 400,
    errors.SourceConflictError: 409,
    errors.NotBetterError: 409,
    errors.UnknownNameError: 404,
    errors.MissingResourceError: 404,
    errors.BusyError: 503,
    errors.LostCollectionError: 503,
    errors.ClusterError: 503,
    errors.OtherServerError: 503,
    errors.DamagedFileError: 503,
    NotAllowedError: 403,
    OverloadedError: 429,
    NotReadyError: 503,
    TooLateError: 504,
    UnderWayError: 409,
}


class ErrorResponse(BaseModel):
    """Why there is no answer."""

    error: str


def responses_of(form: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """What the document says of errors, which have this form."""
    return {status: {'model': form, 'description': text} for status, text in _ERRORS.items()}


RESPONSES = responses_of(ErrorResponse)


def error_body(path: str, status: int, message: str) -> dict[str, Any]:
    """The JSON object of an error.

    Parameters
    ----------
    path : of the address; extensions may have another form for their addresses
    status : of the answer
    message : one line
    """
    for part in loaded('in_services'):
        body: dict[str, Any] | None = part.error_body(path, status, message)
        if body is not None:
            return body
    return {'error': message}


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response in UTF-8; lone surrogates, which it lacks, are escaped as JSON's."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(',', ':'))
    return Response(text.encode('utf-8', 'backslashreplace'), status, headers, 'application/json')


def add_error_handlers(app: FastAPI) -> None:
    """Answer each error with one JSON object."""
    app.exception_handler(PyseriniRepbertError)(_answer_refused)
    app.exception_handler(HTTPException)(_answer_http_error)
    app.exception_handler(RequestValidationError)(_answer_malformed)


async def _answer_refused(request: Request, error: PyseriniRepbertError) -> Response:
    """The answer to an error of the package, whose reason a client learns if it is the client's."""
    status = _status_of(error)
    headers = {}
    if isinstance(error, (OverloadedError, NotReadyError)):
        headers['Retry-After'] = '1'
    message = ' '.join(str(error).split())
    request_id = request.state.request_id
    if status == 500:
        logger.error('request %s: %s', request_id, message)
        message = f'the service failed: its log says why (request {request_id})'
    elif isinstance(error, errors.OtherServerError):
        logger.error('request %s: %s', request_id, message)
        message = (
            f'{error.server} gave no answer: those who run the service find the reason in its log '
            f'(request {request_id})'
        )
    elif isinstance(error, errors.DamagedFileError):
        # The file's path is for those who run the service.
        logger.error('request %s: %s', request_id, message)
        message = (
            'this index is damaged, or a file that it needs: those who run the service find the '
            f'reason in its log (request {request_id}), and `index check` names all that differs'
        )
    return _error_response(request, status, message, headers)


def _status_of(error: PyseriniRepbertError) -> int:
    """The status of the answer to an error, by its nearest class."""
    for kind in type(error).__mro__:
        if kind in _STATUS:
            return _STATUS[kind]
    return 500


async def _answer_http_error(request: Request, error: HTTPException) -> Response:
    """The answer to an error of the framework: an unknown address or method, a body too long."""
    message = str(error.detail)
    if error.status_code == 404 and message == 'Not Found':
        message = (
            'there is nothing at this address: expected one such as '
            '/v1/{index}/search; /docs lists them all'
        )
    headers = dict(error.headers or {})
    if error.status_code == 405:
        message = f'{request.method} is not for this address: /docs says what is'
        headers['Allow'] = ', '.join(_methods_of(request))
    return _error_response(request, error.status_code, message, headers)


def _methods_of(request: Request) -> list[str]:
    """The methods that an address takes. Each may have a separate route."""
    taken = []
    for method in _METHODS:
        scope = {**request.scope, 'method': method}
        for route in request.app.router.routes:
            if route.matches(scope)[0] is Match.FULL:
                if getattr(route, 'endpoint', None) is not refuse_method:
                    taken.append(method)
                break
    return taken


async def refuse_method() -> None:
    """The route of a method that an address does not take, though a later route would take it."""
    raise HTTPException(405)


def _error_response(
    request: Request, status: int, message: str, headers: dict[str, str] | None = None
) -> Response:
    return json_response(error_body(request.url.path, status, message), status, headers)


async def _answer_malformed(request: Request, error: RequestValidationError) -> Response:
    """The answer to a body that is not JSON, or to the first wrong value in a request."""
    first = error.errors()[0]
    source, *path = [str(part) for part in first['loc']]
    if first['type'] == 'json_invalid':
        problem = first.get('ctx', {}).get('error', '')
        character = path[-1] if path else source
        message = f'the body is not JSON ({problem}, at character {character})'
        return _error_response(request, 400, message)
    if not path and 'json' not in request.headers.get('content-type', ''):
        message = 'the body has to be JSON: send Content-Type: application/json'
        return _error_response(request, 422, message)
    name = f"parameter '{'.'.join(path)}'" if path else 'the body'
    status = 422 if source == 'body' else 400
    return _error_response(request, status, describe_problem(name, first))


async def check_parameters(request: Request) -> None:
    """Refuse what FastAPI ignores.

    Raises InputError for an unknown or repeated parameter, or a key that a body has twice.
    """
    fields = _query_fields(request)
    for name in request.query_params:
        if name not in fields:
            meant = _OTHER_NAMES.get(name.lower(), '')
            near = f" (did you mean '{meant}'?)" if meant in fields else ''
            near = near or did_you_mean(name, list(fields))
            known = ', '.join(fields) or 'none'
            advice = missing_extension(name)
            raise InputError(f"parameter '{name[:60]}' is unknown{near}: expected {known}{advice}")
        is_list = get_origin(fields[name].annotation) in (list, tuple)
        if not is_list and len(request.query_params.getlist(name)) > 1:
            raise InputError(f"parameter '{name}' was given more than once: give it once")
    if request.method == 'POST' and _JSON.fullmatch(request.headers.get('content-type', '')):
        body = await request.body() or '{}'
        try:
            # It is JSON, or FastAPI would have refused it.
            parse_json(body)
        except ValueError as error:
            raise InputError(f'the body: {error}') from error


def _query_fields(request: Request) -> dict[str, FieldInfo]:
    """The parameters that an address takes, by name."""
    fields: dict[str, FieldInfo] = {}
    for parameter in request.scope['route'].dependant.query_params:
        # A parameter may be a model of several.
        own = {parameter.alias: parameter.field_info}
        fields |= getattr(parameter.field_info.annotation, 'model_fields', own)
    return fields
