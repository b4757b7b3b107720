"""What a model server adds to a service: a limit, and errors as clients of OpenAI read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from pyserini_repbert.serve.service_parts import ServicePart

_PATHS = re.compile(r'/v1/(?:embeddings|models|rerank)(?:/|$)|/v2/rerank$')
# The words of OpenAI's API for statuses; others are of an invalid request.
_TYPES = {401: 'authentication_error', 403: 'permission_error', 429: 'rate_limit_error'}


class ClientError(BaseModel):
    """An error as clients of OpenAI read it."""

    message: str
    type: str
    code: str | None
    param: str | None


class ClientErrorResponse(BaseModel):
    """Why the request failed, in OpenAI's form."""

    error: ClientError


class ModelServerInServices(ServicePart):
    """The limit of texts for vectors, and errors in OpenAI's form.

    `embedding_inputs` is how many texts a request for vectors has at most.
    """

    limits: ClassVar[Mapping[str, tuple[Any, Any]]] = {
        'embedding_inputs': (Annotated[int, Field(ge=1)], 256)
    }

    def error_body(self, path: str, status: int, message: str) -> dict[str, Any] | None:
        if not _PATHS.match(path):
            return None
        kind = _TYPES.get(status, 'invalid_request_error')
        if status >= 500:
            kind = 'server_error'
        code = 'not_found' if status == 404 else None
        return {'error': {'message': message, 'type': kind, 'code': code, 'param': None}}


IN_SERVICES = ModelServerInServices()
