"""Which Host and Origin a service answers to: pages of other sites do not reach it."""

import pytest
from opened_services import ACCEPTED, INITIALIZE
from starlette.testclient import TestClient

from pyserini_repbert.errors import InputError
from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.command import _allowed_hosts, make_parser
from pyserini_repbert.serve.hosts import check_host, check_origin
from pyserini_repbert.serve.settings import FileSettings, ServeSettings


def _status(refused):
    return 200 if refused is None else refused.status


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


@pytest.mark.parametrize(
    ('allowed', 'statuses'),
    [
        ([], [200, 200, 200, 421, 421, 421, 421, 421]),
        (['search.example'], [200, 200, 200, 421, 421, 200, 421, 421]),
        (['*'], [200] * 8),
    ],
)
def test_a_service_on_loopback_takes_hosts_of_this_machine_and_those_named(allowed, statuses):
    assert [_status(check_host(host, allowed)) for host in HOSTS] == statuses


ORIGINS = ['http://localhost:3000', 'https://evil.example', 'https://search.example', 'null', '']


@pytest.mark.parametrize(
    ('allowed', 'statuses'),
    [
        (['*'], [200, 403, 403, 403, 200]),
        (['*', 'search.example'], [200, 403, 200, 403, 200]),
    ],
)
def test_no_page_of_another_site_is_taken_whatever_hosts_are_taken(allowed, statuses):
    assert [_status(check_origin(origin, allowed)) for origin in ORIGINS] == statuses


def test_a_service_asks_for_the_host_everywhere_and_for_the_origin_at_mcp():
    def statuses(client, **headers):
        page = client.get('/healthz', headers=headers)
        tools = client.post('/mcp', json=INITIALIZE, headers=ACCEPTED | headers)
        for answer in (page, tools):
            if answer.status_code != 200:
                assert list(answer.json()) == ['error']
                assert 'allowed_hosts' in answer.json()['error']
        return [page.status_code, tools.status_code]

    app = create_app(ServeSettings(allowed_hosts=['Search.example']), with_mcp=True)
    with TestClient(app) as client:
        assert statuses(client, host='evil.example') == [421, 421]
        assert statuses(client, host='search.example') == [200, 200]
        own = 'https://search.example'
        assert statuses(client, host='search.example', origin=own) == [200, 200]
        assert statuses(client, host='search.example', origin='https://a.example') == [200, 403]


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
