"""Clients that go away before there is an answer: their work is given up, without noise, and the service goes on."""

import asyncio
import json
import logging
import threading
import time

import pytest

RERANKED = '/v1/tiny/search?query=cat&rerank=duobert@12'
ABANDONED = [
    (RERANKED, b''),
    ('/v1/tiny/explain?query=cat&model=duobert&docid=d0&docid=d1', b''),
    ('/v1/tiny/batch', b'{"queries": [{"text": "cat"}, {"text": "old dog"}], "rerank": ["duobert@6"]}'),
    ('/v1/tiny/compare', b'{"query": "cat", "a": {"rerank": ["monobert@6"]}}'),
]


async def _gone(app, target, body):
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

    async def receive():
        return messages.pop() if messages else {'type': 'http.disconnect'}

    async def send(message):
        sent.append(message)

    async with asyncio.timeout(20):
        await app(scope, receive, send)
    return sent


@pytest.fixture
def busy(client):
    """A client of a service whose queue that reranks is busy until the test ends."""
    free, begun = threading.Event(), threading.Event()
    rerank = client.app.state.service.queues['rerank']
    thread = threading.Thread(target=rerank.call, args=(lambda: begun.set() or free.wait(60),))
    thread.start()
    assert begun.wait(30)
    yield client
    free.set()
    thread.join()
    assert client.get(RERANKED).status_code == 200


def _emptied(queue):
    """Whether nothing waits in the queue after a second at most."""
    for _ in range(100):
        if queue.length == 0:
            return True
        time.sleep(0.01)
    return False


def test_work_of_clients_that_have_gone_is_given_up(busy, caplog):
    caplog.set_level(logging.INFO)
    service = busy.app.state.service
    for target, body in ABANDONED:
        caplog.clear()
        assert busy.portal.call(_gone, busy.app, target, body) == [], target
        logged = [record for record in caplog.records if not record.name.startswith('httpx')]
        assert [record.levelname for record in logged] == ['INFO'], caplog.text  # no traceback: it is no fault
        assert json.loads(logged[0].message)['status'] == 499
        assert _emptied(service.queues['rerank']), target
    assert busy.get('/v1/tiny/search?query=cat').status_code == 200
