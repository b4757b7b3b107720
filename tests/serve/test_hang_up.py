"""Clients that go away before there is an answer: their work is given up, without noise, and the service goes on."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from pyserini_repbert.serve.answers import GoneError, stopping
from pyserini_repbert.serve.requests import Progress, teller

RERANKED = '/v1/tiny/search?query=cat&rerank=duobert@12'
ABANDONED = [
    (RERANKED, b''),
    ('/v1/tiny/explain?query=cat&model=duobert&docid=d0&docid=d1', b''),
    ('/v1/tiny/batch', b'{"queries": [{"text": "cat"}, {"text": "old dog"}], "rerank": ["duobert@6"]}'),
    ('/v1/tiny/compare', b'{"query": "cat", "a": {"rerank": ["monobert@6"]}}'),
]


async def _gone(app, target: str, body: bytes) -> list[dict]:
    """What the application sends to a client that has hung up when its request is whole."""
    path, _, query = target.partition('?')
    scope = {
        'type': 'http',
        'http_version': '1.1',
        'method': 'POST' if body else 'GET',
        'scheme': 'http',
        'path': path,
        'raw_path': path.encode(),
        'query_string': query.encode(),
        'root_path': '',
        'headers': [(b'content-type', b'application/json')] if body else [],
        'client': ('127.0.0.1', 1),
        'server': ('127.0.0.1', 8081),
    }
    messages = [{'type': 'http.request', 'body': body, 'more_body': False}]
    sent: list[dict] = []

    async def receive() -> dict:
        return messages.pop() if messages else {'type': 'http.disconnect'}

    async def send(message: dict) -> None:
        sent.append(message)

    async with asyncio.timeout(20):
        await app(scope, receive, send)
    return sent


@pytest.fixture
def busy(client: TestClient):
    """A client of a service whose lane that reranks is busy until the test ends."""
    free = threading.Event()
    rerank = client.app.state.service.lanes.rerank

    async def occupy() -> None:
        client.app.state.occupied = asyncio.create_task(rerank.call(free.wait))

    client.portal.call(occupy)
    yield client
    free.set()
    assert client.get(RERANKED).status_code == 200


def test_work_of_clients_that_have_gone_is_given_up(busy, caplog):
    caplog.set_level(logging.INFO)
    service = busy.app.state.service
    for target, body in ABANDONED:
        caplog.clear()
        assert busy.portal.call(_gone, busy.app, target, body) == [], target
        logged = [record for record in caplog.records if not record.name.startswith('httpx')]
        assert [record.levelname for record in logged] == ['INFO'], caplog.text  # no traceback: it is no fault
        assert json.loads(logged[0].message)['status'] == 499
        assert service.lanes.rerank.length == 0, target
    assert busy.get('/v1/tiny/search?query=cat').status_code == 200


def test_what_is_told_after_the_end_is_forgotten():
    progress: Progress = {}
    tell = teller(progress, SimpleNamespace(state=SimpleNamespace(request_id='mine')))
    assert progress == {'mine': []}
    tell('monobert@9', 3, 9)
    assert progress == {'mine': [('monobert@9', 3, 9)]}
    del progress['mine']
    tell('monobert@9', 4, 9)
    assert progress == {}


def test_a_stage_that_nobody_waits_for_does_not_begin():
    told = []
    update = stopping([True], 'monobert@9', 9, lambda *now: told.append(now))
    with pytest.raises(GoneError):
        update(0)
    assert told == []
