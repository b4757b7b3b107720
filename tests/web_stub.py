"""A web server on 127.0.0.1 that answers as the real addresses do, and as they should not."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What an address gives: `cut` bytes of it at most, where the connection is to break."""

    content: bytes
    status: int = 200
    content_type: str = 'application/octet-stream'
    cut: int | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Web:
    """`answers` by 'HOST/PATH?QUERY'; `asked` has what was asked for, with the first byte
    wanted.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)
    address: str = ''

    def add(self, address: str, content: bytes, **options: Any) -> None:
        """Let `https://HOST/PATH` give this."""
        self.answers[address.partition('://')[2]] = Answer(content, **options)

    def answer(self, path: str) -> Answer:
        """What a path gives."""
        return self.answers.get(path, Answer(b'', 404))


@contextmanager
def running(web: Web) -> Iterator[Web]:
    """The server, at `web.address`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix('/')
            wanted = self.headers.get('Range')
            first = int(wanted.removeprefix('bytes=').rstrip('-')) if wanted else 0
            web.asked.append((path, first))
            return self._send(web.answer(path), first)

        do_HEAD = do_GET

        def _send(self, answer: Answer, first: int) -> None:
            if answer.status != 200:
                return self.send_error(answer.status)
            if first >= len(answer.content) > 0:
                self.send_response(416)
                self.send_header('Content-Range', f'bytes */{len(answer.content)}')
                return self.end_headers()
            self.send_response(206 if first else 200)
            if first:
                size = len(answer.content)
                self.send_header('Content-Range', f'bytes {first}-{size - 1}/{size}')
            self.send_header('Content-Type', answer.content_type)
            self.send_header('Content-Length', str(len(answer.content) - first))
            for header in answer.headers.items():
                self.send_header(*header)
            self.end_headers()
            if self.command == 'GET':
                self.wfile.write(answer.content[first : answer.cut])

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
        thread = threading.Thread(
            target=server.serve_forever, args=(0.01,)
        )  # how often it looks whether to stop
        thread.start()
        web.address = f'http://127.0.0.1:{server.server_port}'
        try:
            yield web
        finally:
            server.shutdown()
            thread.join()
