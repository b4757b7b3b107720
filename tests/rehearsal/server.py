"""Serves the stand-ins from 127.0.0.1 as their real hosts would: by address, with ranges, and part of the hub's API."""

import hashlib
import json
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = '0123456789abcdef0123456789abcdef01234567'
HUB = 'huggingface.co'


@contextmanager
def serving(site: Mapping[str, Path], hub: Mapping[str, Path]) -> Iterator[str]:
    """Yields the address of a server of files, `address/HOST/PATH`, and of the hub's repositories."""
    files = {address.partition('://')[2]: path for address, path in site.items()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'

        def do_GET(self) -> None:
            path = self.path.removeprefix('/')
            if path.startswith(HUB):
                return self._hub(urllib.parse.unquote(path.removeprefix(f'{HUB}/')))
            if path not in files:
                return self.send_error(404)
            return self._answer(files[path].read_bytes())

        do_HEAD = do_GET

        def _hub(self, path: str) -> None:
            for repository, folder in hub.items():
                if path.startswith(f'api/models/{repository}/tree/'):
                    tree = [
                        {'type': 'file', 'path': file.name, 'size': file.stat().st_size, 'oid': COMMIT}
                        for file in sorted(folder.iterdir())
                    ]
                    return self._answer(json.dumps(tree).encode())
                if path.startswith(f'api/models/{repository}/') or path == f'api/models/{repository}':
                    names = [{'rfilename': file.name} for file in sorted(folder.iterdir())]
                    return self._answer(json.dumps({'id': repository, 'sha': COMMIT, 'siblings': names}).encode())
                if path.startswith(f'{repository}/resolve/'):
                    file = folder / path.rpartition('/')[2]
                    if file.is_file():
                        return self._answer(file.read_bytes())
            return self.send_error(404)

        def _answer(self, content: bytes) -> None:
            wanted = self.headers.get('Range')
            first = int(wanted.removeprefix('bytes=').partition('-')[0]) if wanted else 0
            self.send_response(206 if first else 200)
            self.send_header('Content-Type', 'application/octet-stream')
            self.send_header('Content-Length', str(len(content) - first))
            self.send_header('ETag', f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header('X-Repo-Commit', COMMIT)
            self.end_headers()
            if self.command == 'GET':
                self.wfile.write(content[first:])

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f'http://127.0.0.1:{server.server_port}'
        finally:
            server.shutdown()
            thread.join()
