"""Requests made from the OpenAPI document by schemathesis, valid and invalid, with its checks.

`test_stated_limits.py` compares the document with what is enforced, parameter by parameter.
"""

import zlib

import pytest

pytest.importorskip('schemathesis', reason='the dev extra is not installed')

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS

from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.settings import ServeSettings

pytestmark = pytest.mark.slow
schema = schemathesis.openapi.from_dict(create_app(ServeSettings()).openapi())


@schemathesis.serializer('application/x-ndjson')
def _lines(_, value):
    return str(value).encode('utf-8', 'replace')


ALL_CHECKS = {check.__name__: check for check in CHECKS.get_all()}
# Checks that do not hold, and why
LEFT_OUT = {
    'positive_data_acceptance': 'the document cannot say which parameters go together (k1 with '
    'system=bm25), what an index takes (filter), or the limits of a service',
    'negative_data_rejection': 'a number as text is taken, and 0 or 1 for a truth value',
}
HELD = [check for name, check in ALL_CHECKS.items() if name not in LEFT_OUT]


def test_every_check_is_run_or_left_out():
    assert LEFT_OUT.keys() <= ALL_CHECKS.keys()
    assert len(HELD) >= 12


@schema.parametrize()
@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_operation(case, client):
    given = (case.path_parameters or {}).get('index')
    if (
        given is not None and zlib.crc32(str(given).encode('utf-8', 'replace')) % 4
    ):  # the others are unknown indexes
        case.path_parameters['index'] = 'tiny'
    sent = case.as_transport_kwargs(base_url='http://testserver')
    body = {'json': sent['json']} if 'json' in sent else {'content': sent.get('data')}
    headers = {
        key: value for key, value in sent['headers'].items() if key.lower() != 'transfer-encoding'
    }
    answer = client.request(
        sent['method'], sent['url'], params=sent.get('params'), headers=headers, **body
    )
    case.validate_response(answer, checks=HELD)
    if answer.status_code >= 400:
        assert list(answer.json()) == ['error']
    assert client.get('/healthz').status_code == 200
