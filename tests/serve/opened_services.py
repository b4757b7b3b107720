"""Services that cannot be opened, and how MCP's clients begin."""

import asyncio

import pytest

from pyserini_repbert.errors import PyseriniRepbertError
from pyserini_repbert.serve.service import Service
from pyserini_repbert.serve.settings import ServeSettings

# The first message of a client of MCP, and what it accepts.
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


def failure_of(indexes):
    """Why a service of these indexes cannot be opened, in one line."""

    async def open_service():
        service = Service(ServeSettings(indexes=indexes))
        try:
            await service.open()
        finally:
            await service.close()

    with pytest.raises(PyseriniRepbertError) as raised:
        asyncio.run(open_service())
    message = str(raised.value)
    assert '\n' not in message
    return message
