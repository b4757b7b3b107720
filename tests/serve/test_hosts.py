"""Which Host and Origin a service answers to: pages of other sites do not reach it."""

import pytest
from starlette.testclient import TestClient

from pyserini_repbert.commands.serve import _allowed_hosts, make_parser
from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.settings import FileSettings, ServeSettings

INITIALIZE = {
    'jsonrpc': '2.0',
    'id': 1,
    'method': 'initialize',
    'params': {
        'protocolVersion': '2025-06-18',
        'capabilities': {},
        'clientInfo': {'name': 't', 'version': '1'},
    },
}
ACCEPTED = {'accept': 'application/json, text/event-stream'}


def _statuses(allowed, asked, address='/healthz'):
    """The statuses of requests with these headers, to a service of these allowed hosts."""
    with TestClient(create_app(ServeSettings(allowed_hosts=allowed), with_mcp=True)) as client:
        answers = []
        for headers in asked:
            if address == '/mcp':
                answers.append(client.post(address, json=INITIALIZE, headers=ACCEPTED | headers))
            else:
                answers.append(client.get(address, headers=headers))
    for answer in answers:
        if answer.status_code != 200:
            assert list(answer.json()) == ['error'] and 'allowed_hosts' in answer.json()['error']
    return [answer.status_code for answer in answers]


HOSTS = [
    '127.0.0.1:8081',
    'localhost',
    '[::1]:8081',
    'evil.example',
    'localhost.evil.example:80',
    'search.example:443',
    '[',
    '',
]


def test_a_service_on_loopback_takes_hosts_of_this_machine_and_those_named():
    asked = [{'host': host} for host in HOSTS]
    assert _statuses([], asked) == [200, 200, 200, 421, 421, 421, 421, 421]
    assert _statuses(['Search.example'], asked) == [200, 200, 200, 421, 421, 200, 421, 421]
    assert _statuses(['*'], asked) == [200] * 8


def test_mcp_takes_no_page_of_another_site_whatever_hosts_are_taken():
    origins = ['http://localhost:3000', 'https://evil.example', 'https://search.example', 'null']
    asked = [{'host': 'evil.example', 'origin': origin} for origin in origins]
    asked.append({'host': 'evil.example'})
    assert _statuses([], asked, '/mcp') == [421] * 5
    assert _statuses(['*'], asked, '/mcp') == [200, 403, 403, 403, 200]
    assert _statuses(['*', 'search.example'], asked, '/mcp') == [200, 403, 200, 403, 200]
    assert _statuses(['*'], asked) == [200] * 5


def test_the_flag_comes_before_the_file_and_the_address_says_what_neither_does():
    def allowed(arguments, **file):
        options = make_parser().parse_args(['--index', 'demo', *arguments])
        return _allowed_hosts(options, FileSettings(**file))

    assert allowed([]) == allowed(['--host', '::1']) == allowed(['--host', 'localhost']) == []
    assert allowed(['--host', '0.0.0.0']) == ['*']
    assert allowed([], allowed_hosts=['a.example']) == ['a.example']
    assert allowed(['--allowed-hosts', 'b'], allowed_hosts=['a.example']) == ['b']
    with pytest.raises(InputError, match='without a scheme and a port'):
        ServeSettings.of(allowed_hosts=['http://a.example'])
