"""Tests may ask the server of the test, and wait for nothing before another try."""

import pytest
from room_fixtures import fixtures_of

globals().update(fixtures_of('serve'))


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The seconds that were asked to wait."""
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.delenv('PYSERINI_REPBERT_LLM_KEY', raising=False)
    seconds = []

    async def sleep(wait):
        seconds.append(wait)

    # The package `openai` waits so.
    monkeypatch.setattr('anyio.sleep', sleep)
    return seconds
