"""Services in the process of the tests."""

from contextlib import contextmanager


@contextmanager
def ready_client(settings, with_mcp=False):
    """A client of a service with these settings, whose indexes are open."""
    from starlette.testclient import TestClient

    from pyserini_repbert.serve.app import create_app

    app = create_app(settings, with_mcp=with_mcp)
    # The host that MCP serves.
    address = 'http://127.0.0.1:8081' if with_mcp else 'http://testserver'
    with TestClient(app, address, raise_server_exceptions=False) as client:
        while client.get('/readyz').status_code == 503:
            assert app.state.service.failure is None
        yield client
