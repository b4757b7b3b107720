"""docs/http-api.md is what the service's OpenAPI document says."""

import importlib.util

import pytest
from doc_runner import ROOT


def test_the_page_is_up_to_date():
    pytest.importorskip('fastapi', reason='the serve extra is not installed')
    spec = importlib.util.spec_from_file_location('docs_api', ROOT / 'tools' / 'docs_api.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / 'docs' / 'http-api.md').read_text(encoding='utf-8')
    assert written == module.reference(), 'run python tools/docs_api.py'
