import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pyserini_repbert import download
from pyserini_repbert.errors import DamagedFileError, MissingResourceError

CONTENT = bytes(range(256)) * 5000
MD5 = hashlib.md5(CONTENT).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    ranges = True
    cut_at: int | None = None
    requests: list[str | None] = []  # noqa: RUF012

    def do_GET(self):
        wanted = self.headers.get('Range')
        type(self).requests.append(wanted)
        start = int(wanted.removeprefix('bytes=').rstrip('-')) if wanted and self.ranges else 0
        if start >= len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header('Content-Length', str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start : self.cut_at])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.setenv('HF_HUB_OFFLINE', '')
    for name in ('http_proxy', 'HTTP_PROXY'):
        monkeypatch.delenv(name, raising=False)
    _Handler.ranges = True
    _Handler.cut_at = None
    _Handler.requests = []
    with ThreadingHTTPServer(('127.0.0.1', 0), _Handler) as running:
        thread = threading.Thread(
            target=running.serve_forever, args=(0.01,)
        )  # how often it looks whether to stop
        thread.start()
        yield f'http://127.0.0.1:{running.server_port}/file.bin'
        running.shutdown()
        thread.join()


def test_a_file_is_fetched_once(server, tmp_path):
    received = []
    target = tmp_path / 'downloads' / 'file.bin'
    assert download.fetch(server, target, MD5, '1.3 MB', 'thing', received.append) == target
    assert target.read_bytes() == CONTENT and sum(received) == len(CONTENT)
    download.fetch(server, target, MD5, '1.3 MB', 'thing')
    assert len(_Handler.requests) == 1


@pytest.mark.parametrize('ranges', [True, False])
def test_a_broken_download_continues(server, tmp_path, ranges):
    target = tmp_path / 'file.bin'
    _Handler.cut_at = 700_000
    with pytest.raises(MissingResourceError, match='try again'):
        download.fetch(server, target, MD5, '1.3 MB', 'thing')
    assert not target.exists() and (tmp_path / 'file.bin.part').stat().st_size == 700_000
    _Handler.cut_at = None
    _Handler.ranges = ranges
    download.fetch(server, target, MD5, '1.3 MB', 'thing')
    assert target.read_bytes() == CONTENT and _Handler.requests[-1] == 'bytes=700000-'


def test_another_file_is_refused_and_forgotten(server, tmp_path):
    with pytest.raises(DamagedFileError, match=f'has MD5 {MD5}, expected 0000'):
        download.fetch(server, tmp_path / 'file.bin', '0000', '1.3 MB', 'thing')
    assert list(tmp_path.iterdir()) == []


def test_another_file_that_is_there_is_refused(server, tmp_path):
    (tmp_path / 'file.bin').write_bytes(b'other')
    with pytest.raises(DamagedFileError, match='delete it'):
        download.fetch(server, tmp_path / 'file.bin', MD5, '1.3 MB', 'thing')


NOBODY = 'http://127.0.0.1:9/file.bin'


def test_nothing_is_fetched_offline(tmp_path):
    with pytest.raises(MissingResourceError, match='downloads are off: fetch file.bin'):
        download.fetch(NOBODY, tmp_path / 'file.bin', MD5, '1.3 MB', 'thing')


def test_an_unreachable_address_says_what_to_fetch_by_hand(monkeypatch, tmp_path):
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '0')
    monkeypatch.delenv('HF_HUB_OFFLINE', raising=False)
    message = r'thing.*could not be fetched.*1\.3 MB.*put it at'
    with pytest.raises(MissingResourceError, match=message):
        download.fetch(NOBODY, tmp_path / 'file.bin', MD5, '1.3 MB', 'thing')
