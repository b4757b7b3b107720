"""Requests made from the OpenAPI document by schemathesis, valid and invalid: documented
statuses and forms only.
"""

import zlib

import pytest

pytest.importorskip('schemathesis', reason='the dev extra is not installed')

import schemathesis
import schemathesis.specs.openapi.checks as conformance
from hypothesis import HealthCheck, settings

from pyserini_repbert.serve.app import create_app
from pyserini_repbert.serve.settings import ServeSettings

pytestmark = pytest.mark.slow
schema = schemathesis.openapi.from_dict(create_app(ServeSettings()).openapi())


@schemathesis.serializer('application/x-ndjson')
def _lines(_, value):
    return str(value).encode('utf-8', 'replace')


CHECKS = [
    schemathesis.checks.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
]


@schema.parametrize()
@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
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
    case.validate_response(answer, checks=CHECKS)
    if answer.status_code >= 400:
        assert list(answer.json()) == ['error']
    assert client.get('/healthz').status_code == 200
