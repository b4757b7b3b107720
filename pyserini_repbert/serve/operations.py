"""Addresses for those who run a service: health, metrics, and the OpenAPI document."""

from __future__ import annotations

from typing import Any

import yaml
from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from pyserini_repbert.evaluate.tables import page
from pyserini_repbert.serve.http_errors import json_response
from pyserini_repbert.serve.metrics import Metrics
from pyserini_repbert.serve.routes import Call

PROBED = ['GET', 'HEAD']  # Load balancers ask by HEAD.

router = APIRouter(include_in_schema=False, redirect_slashes=False)


@router.api_route('/healthz', methods=PROBED)
async def healthz() -> Response:
    """Says that the process lives."""
    return json_response({'status': 'alive'})


@router.api_route('/readyz', methods=PROBED)
async def readyz(call: Call) -> Response:
    """Says that the indexes are open. Raises NotReadyError until they are, and where the folder of
    a collection no longer holds it.
    """
    call.service.check_ready()
    return json_response({'status': 'ready', 'indexes': list(call.service.served)})


@router.api_route('/metrics', methods=PROBED)
async def show_metrics(request: Request, call: Call) -> Response:
    """All counters, in Prometheus's format."""
    metrics: Metrics = request.app.state.metrics
    return metrics.response(call.service.queues.values())


@router.api_route('/docs', methods=PROBED)
async def docs(request: Request) -> Response:
    """The reference of the API, for people."""
    return HTMLResponse(page('api', document=request.app.openapi()))


@router.api_route('/openapi.yaml', methods=PROBED)
async def openapi_yaml(request: Request) -> Response:
    """The OpenAPI document."""
    document = request.app.openapi()
    text: Any = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return Response(text, headers={'content-type': 'application/yaml; charset=utf-8'})
