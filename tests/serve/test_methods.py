"""Every address with every method: those that it does not take are a 405 that names the others."""

import re

import pytest

METHODS = ('DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE')
PROBED = {'GET', 'HEAD'}
# What the OpenAPI document leaves out; /mcp answers as the package fastmcp does
OTHERS = {
    '/': PROBED,
    '/docs': PROBED,
    '/healthz': PROBED,
    '/js/main.js': PROBED,
    '/metrics': PROBED,
    '/openapi.json': PROBED,
    '/openapi.yaml': PROBED,
    '/readyz': PROBED,
    '/style/base.css': PROBED,
    '/v2/rerank': {'POST'},
}


@pytest.fixture
def addresses(client):
    """Each address with the methods that it takes."""
    taken = dict(OTHERS)
    for path, operations in client.app.openapi()['paths'].items():
        address = re.sub(r'\{\w+\}', 'tiny', path)
        taken[address] = {method.upper() for method in operations}
    return taken


def test_methods_that_an_address_does_not_take(client, addresses):
    assert len(addresses) > 30
    for address, taken in addresses.items():
        for method in METHODS:
            answer = client.request(method, address)
            is_refused = answer.status_code == 405
            assert is_refused == (method not in taken), (method, address, answer.text)
            if is_refused:
                assert answer.headers['allow'] == ', '.join(sorted(taken)), (method, address)
                assert method == 'HEAD' or 'error' in answer.json(), (method, address)
