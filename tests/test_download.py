import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pyserini_repbert import download
from pyserini_repbert.errors import (
    BusyError,
    DamagedFileError,
    InputError,
    MissingResourceError,
)
from pyserini_repbert.files import locked

CONTENT = bytes(range(256)) * 5000
MD5 = hashlib.md5(CONTENT).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    """Gives `content` as `version`; the other values say in what it is unlike a good server."""

    content = CONTENT
    version: str | None = None
    ranges = True
    honours_if_range = True
    content_range: str | None = None  # instead of the right one
    cut_at: int | None = None
    location: str | None = None
    requests: list[tuple[str | None, str | None]] = []  # noqa: RUF012

    def do_GET(self):
        wanted = self.headers.get('Range')
        condition = self.headers.get('If-Range')
        self.requests.append((wanted, condition))
        if self.location is not None:
            self.send_response(302)
            self.send_header('Location', self.location)
            self.end_headers()
            return
        is_same = condition in (None, self.version) or not self.honours_if_range
        has_range = wanted and self.ranges and is_same
        start = int(wanted.removeprefix('bytes=').rstrip('-')) if has_range else 0
        if start >= len(self.content):
            self.send_error(416)
            return
        given = self.content_range
        if given is None and start:
            given = f'bytes {start}-{len(self.content) - 1}/{len(self.content)}'
        self.send_response(206 if given else 200)
        if given:
            self.send_header('Content-Range', given)
        if self.version:
            self.send_header('ETag', self.version)
        self.send_header('Content-Length', str(len(self.content) - start))
        self.end_headers()
        self.wfile.write(self.content[start : self.cut_at])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.setenv('HF_HUB_OFFLINE', '')
    for name in ('http_proxy', 'HTTP_PROXY'):
        monkeypatch.delenv(name, raising=False)
    handler = type('Handler', (_Handler,), {'requests': []})
    with ThreadingHTTPServer(('127.0.0.1', 0), handler) as running:
        thread = threading.Thread(
            target=running.serve_forever, args=(0.01,)
        )  # how often it looks whether to stop
        thread.start()
        handler.address = f'http://127.0.0.1:{running.server_port}/file.bin'
        yield handler
        running.shutdown()
        thread.join()


def test_a_file_is_fetched_once(server, tmp_path):
    received = []
    target = tmp_path / 'downloads' / 'file.bin'
    assert download.fetch(server.address, target, MD5, '1.3 MB', 'thing', received.append) == target
    assert target.read_bytes() == CONTENT and sum(received) == len(CONTENT)
    download.fetch(server.address, target, MD5, '1.3 MB', 'thing')
    assert len(server.requests) == 1


@pytest.mark.parametrize('ranges', [True, False])
def test_a_broken_download_continues(server, tmp_path, ranges):
    target = tmp_path / 'file.bin'
    server.cut_at = 700_000
    with pytest.raises(MissingResourceError, match='try again'):
        download.fetch(server.address, target, MD5, '1.3 MB', 'thing')
    assert not target.exists() and (tmp_path / 'file.bin.part').stat().st_size == 700_000
    server.cut_at = None
    server.ranges = ranges
    download.fetch(server.address, target, MD5, '1.3 MB', 'thing')
    assert target.read_bytes() == CONTENT and server.requests[-1] == ('bytes=700000-', None)


def test_another_file_is_refused_and_forgotten(server, tmp_path):
    with pytest.raises(DamagedFileError, match=f'has MD5 {MD5}, expected 0000'):
        download.fetch(server.address, tmp_path / 'file.bin', '0000', '1.3 MB', 'thing')
    assert list(tmp_path.iterdir()) == []


def test_another_file_that_is_there_is_refused(server, tmp_path):
    (tmp_path / 'file.bin').write_bytes(b'other')
    with pytest.raises(DamagedFileError, match='delete it'):
        download.fetch(server.address, tmp_path / 'file.bin', MD5, '1.3 MB', 'thing')


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


OTHER = bytes(reversed(CONTENT))


@pytest.fixture
def fetch(server, tmp_path):
    """fetch(): a file without a known checksum; returns its path."""

    def fetch_file(address=None):
        target = tmp_path / 'file.bin'
        return download.fetch(address or server.address, target, None, '1.3 MB', 'thing')

    return fetch_file


def break_off(server, fetch):
    server.cut_at = 700_000
    with pytest.raises(MissingResourceError, match='bytes early'):
        fetch()
    server.cut_at = None


@pytest.fixture
def begun(server, fetch):
    """A download that broke off in version "1"; the server."""
    server.version = '"1"'
    break_off(server, fetch)
    return server


def test_a_download_without_a_checksum_continues_by_its_version(begun, fetch):
    target = fetch()
    assert target.read_bytes() == CONTENT
    assert begun.requests[-1] == ('bytes=700000-', '"1"')
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize('honours_if_range', [True, False])
def test_another_version_is_not_appended(begun, fetch, honours_if_range):
    begun.version = '"2"'
    begun.content = OTHER
    begun.honours_if_range = honours_if_range
    assert fetch().read_bytes() == OTHER


def test_the_part_of_another_address_is_not_continued(begun, fetch):
    assert fetch(f'{begun.address}?other').read_bytes() == CONTENT
    assert begun.requests[-1] == (None, None)


@pytest.mark.parametrize('version', ['W/"1"', None])
def test_without_a_strong_version_everything_is_fetched_again(server, fetch, version):
    server.version = version
    break_off(server, fetch)
    assert fetch().read_bytes() == CONTENT
    assert server.requests[-1] == (None, None)


def test_the_whole_in_place_of_the_rest_is_not_appended(begun, fetch):
    begun.content_range = f'bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}'
    begun.ranges = False
    assert fetch().read_bytes() == CONTENT


@pytest.mark.parametrize('first', [5, 700_001])
def test_another_range_than_asked_for_is_not_appended(begun, fetch, tmp_path, first):
    begun.content_range = f'bytes {first}-{len(CONTENT) - 1}/*'
    with pytest.raises(MissingResourceError, match='the server sent a part, from byte'):
        fetch()
    assert not (tmp_path / 'file.bin').exists()


@pytest.mark.parametrize('content_range', ['bytes 0-9/1280000', 'bytes=0-', 'items 0-1/2', '-'])
def test_a_part_is_not_taken_for_the_whole(server, fetch, tmp_path, content_range):
    server.content_range = content_range
    with pytest.raises(MissingResourceError, match='Partial Content|not the rest'):
        fetch()
    assert not (tmp_path / 'file.bin').exists()


ODD_ADDRESSES = [
    'a.example/file.bin',
    '/etc/passwd',
    'file:///etc/passwd',
    'ftp://127.0.0.1/file.bin',
    'data:text/plain,x',
    'http://',
    'http://[::1/file.bin',
    'http://127.0.0.1:x/file.bin',
    'http://127.0.0.1/a b',
]


@pytest.mark.parametrize('address', ODD_ADDRESSES)
def test_an_odd_address_is_one_line(address, fetch):
    with pytest.raises(InputError, match="'thing': .* is not an address"):
        fetch(address)


@pytest.mark.parametrize('location', [*ODD_ADDRESSES[2:], '', 'http://\xe9\xff/', '/file.bin'])
def test_an_odd_redirection_is_one_line(server, fetch, tmp_path, location):
    server.location = location
    with pytest.raises(MissingResourceError) as raised:
        fetch()
    message = str(raised.value)
    assert '\n' not in message and 'could not be fetched' in message
    assert list(tmp_path.iterdir()) == []


def test_far_more_than_the_stated_size_is_not_kept(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, '_FREE_BYTES', 1000)
    with pytest.raises(MissingResourceError, match='far more than the stated size'):
        download.fetch(server.address, tmp_path / 'file.bin', None, '12 kB packed', 'thing')
    assert list(tmp_path.iterdir()) == []
    download.fetch(server.address, tmp_path / 'file.bin', None, 'size unknown', 'thing')


def test_every_address_has_a_file_name_of_its_own():
    hosts = [
        'https://a.example/run.txt',
        'https://b.example/run.txt',
        'https://a.example/run.txt?2',
    ]
    names = [download.download_name(address) for address in hosts]
    assert len(set(names)) == 3
    assert names[0].endswith('-run.txt')
    assert download.download_name('https://a.example/').endswith('-file')
    assert download.download_name('https://a.example/', '../x y').endswith('-.._x_y')


def test_one_process_fetches_a_file(fetch, tmp_path):
    lock = tmp_path / 'file.bin.lock'
    with locked(lock, 'x'), pytest.raises(BusyError, match='is being written'):
        fetch()
