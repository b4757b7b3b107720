"""Tests may ask the server of the test, and wait for nothing."""

import pytest


@pytest.fixture(autouse=True)
def _may_ask(monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.delenv('PYSERINI_REPBERT_LLM_KEY', raising=False)
    monkeypatch.setattr('pyserini_repbert.systems.llm.client.WAITS', (0.0, 0.0, 0.0))
