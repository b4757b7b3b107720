"""Downloads that continue where they stopped, and whose files appear only when their checksums
match.

A part of a file is continued only if the server says that the file is still the same, or if a
checksum will tell. Beside a part, `NAME.part.json` has what the server called the file.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.addresses import address_problem
from pyserini_repbert.catalog import Entry
from pyserini_repbert.checksums import digest, remembered_digest
from pyserini_repbert.errors import (
    DamagedFileError,
    InputError,
    MissingResourceError,
    within_limits,
)
from pyserini_repbert.files import atomic_file, locked
from pyserini_repbert.offline import downloads_folder, is_offline

_BLOCK = 1 << 20
_TIMEOUT = 60  # seconds without a byte
_NAME_DIGITS = 12  # of an address's checksum, in the name of its file
_NAME_LENGTH = 80  # characters of the address's own last part
_NOT_IN_NAME = re.compile(r'[^A-Za-z0-9._+-]')
_CONTENT_RANGE = re.compile(r'bytes (?P<first>\d+)-(?P<last>\d+)/(?P<total>\d+|\*)')
_UNITS = {'B': 1, 'kB': 10**3, 'MB': 10**6, 'GB': 10**9, 'TB': 10**12}
_SIZE = re.compile(
    r'(?<!\d)(?P<number>\d++(?:\.\d++)?)\s*+(?P<unit>TB|GB|MB|kB|B)\b(?!\s+unpacked)'
)
# What may come beyond the stated size, which is often an earlier version's.
_SIZE_RATIO = 2
_FREE_BYTES = 64_000_000


def stated_bytes(size: str) -> int | None:
    """The bytes of a size in words; None if it is unknown.

    Of '987 MB packed, 2.9 GB unpacked', those packed.
    """
    stated = _SIZE.search(size)
    if stated is None:
        return None
    return round(float(stated['number']) * _UNITS[stated['unit']])


def download_name(address: str, name: str = '') -> str:
    """The file name of what an address gives: another one for every address.

    It ends in `name`, by default the last part of the address.
    """
    path = urllib.parse.urlsplit(address).path
    readable = _NOT_IN_NAME.sub('_', name or path.rpartition('/')[2])[-_NAME_LENGTH:]
    return f'{hashlib.sha256(address.encode()).hexdigest()[:_NAME_DIGITS]}-{readable or "file"}'


def fetch_entry(entry: Entry, on_progress: Callable[[int], object] = int) -> Path:
    """The downloaded file of a catalog entry, fetched if it is missing yet.

    Raises the errors of `fetch`.
    """
    source: Mapping[str, Any] = entry.values['download']
    return fetch(
        source['address'],
        downloads_folder() / source['file'],
        md5=source['md5'],
        size=source['size'],
        name=entry.name,
        on_progress=on_progress,
    )


def fetch(
    address: str,
    target: Path,
    md5: str | None,
    size: str,
    name: str,
    on_progress: Callable[[int], object] = int,
) -> Path:
    """Download `address` to `target`, continuing `target.part`, and verify its MD5.

    A target that exists is only verified. Returns `target`.

    Parameters
    ----------
    address : of the file
    target : where the file is put
    md5 : None if none is published
    size : '386 MB'; if it has a number, a file more than about twice as large is refused
    name : for messages: 'msmarco'
    on_progress : called with the number of bytes received since its last call

    Raises MissingResourceError, with what to fetch by hand and where to put it, if downloads are
    off or the address cannot be reached; DamagedFileError if the checksum differs from the expected
    one; InputError for anything but a web address; BusyError while another process fetches it.
    """
    problem = address_problem(address)
    if problem:
        raise InputError(f"'{name}': {problem}")
    if target.is_file():
        md5_here = remembered_digest(target, 'md5')
        if md5 is not None and md5_here != md5:
            raise DamagedFileError(
                f'{target} has MD5 {md5_here}, expected {md5}: delete it and fetch it again'
            )
        return target
    by_hand = f'{target.name} ({size}) from {address} and put it at {target}'
    if is_offline():
        raise MissingResourceError(f"'{name}' is missing, and downloads are off: fetch {by_hand}")
    stated = stated_bytes(size)
    part = _Part(
        target.with_name(f'{target.name}.part'),
        address,
        has_checksum=md5 is not None,
        limit=None if stated is None else _SIZE_RATIO * stated + _FREE_BYTES,
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.with_name(f'{target.name}.lock'), f'download {target}'):
        try:
            with within_limits(part.path):
                _receive(part, on_progress)
        # Resets, time-outs, answers that are not HTTP, redirections to invalid addresses.
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise MissingResourceError(
                f"'{name}' could not be fetched ({_reason(error)}): try again, or fetch {by_hand}"
            ) from error
        sent_md5 = digest(part.path, 'md5')
        if md5 is not None and sent_md5 != md5:
            part.remove()
            raise DamagedFileError(
                f"'{name}': what {address} sent has MD5 {sent_md5}, expected {md5}: fetch {by_hand}"
            )
        part.path.replace(target)
        part.remove()
    return target


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return status_text(error.code)
    reason = getattr(error, 'reason', None) or error
    return ' '.join(str(reason).split()) or type(error).__name__


def status_text(code: int) -> str:
    """An HTTP status in words: 'status 404, Not Found'."""
    return f'status {code}, {http.client.responses.get(code, "unknown")}'


@dataclass(frozen=True)
class _Part:
    """The downloaded part of a file.

    Attributes
    ----------
    path : of the bytes
    address : that the file is fetched from
    has_checksum : whether the whole is compared with a checksum, so that a wrong part is found
    limit : the most bytes that the file may have; None if its size is not known
    """

    path: Path
    address: str
    has_checksum: bool
    limit: int | None

    @property
    def note(self) -> Path:
        """The file that has the address, and what the server called this version."""
        return self.path.with_name(f'{self.path.name}.json')

    def n_received(self) -> int:
        """The number of bytes that are here."""
        return self.path.stat().st_size if self.path.exists() else 0

    def version(self) -> str:
        """What the server called the version that the part is of; '' if that is not known."""
        try:
            known = json.loads(self.note.read_text(encoding='utf-8'))
            if known['address'] == self.address:
                return str(known['version'])
        except (OSError, ValueError, LookupError, TypeError):
            pass
        return ''

    def begin(self, version: str) -> None:
        """Note what the server calls the version that it sends from the start."""
        # Empty first: a note is never of other bytes.
        self.path.write_bytes(b'')
        with atomic_file(self.note) as stream:
            json.dump({'address': self.address, 'version': version}, stream)

    def remove(self) -> None:
        """Remove the part and the note."""
        for path in (self.path, self.note):
            path.unlink(missing_ok=True)


def _version_of(headers: Any) -> str:
    """A strong ETag, otherwise the date of the last change, for `If-Range`; '' without either."""
    etag = str(headers.get('ETag') or '')
    if etag.startswith('"'):
        return etag
    return str(headers.get('Last-Modified') or '')


class _WebOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirections only to web addresses."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        problem = address_problem(newurl)
        if problem:
            raise OSError(f'status {code} leads elsewhere: {problem}')
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(address: str, headers: Mapping[str, str]) -> Any:
    """The answer of a web server, redirections followed."""
    request = urllib.request.Request(address, headers=dict(headers))
    return urllib.request.build_opener(_WebOnly).open(request, timeout=_TIMEOUT)


def _receive(part: _Part, on_progress: Callable[[int], object]) -> None:
    """Fetch the rest of a part; if it cannot be continued, everything is fetched again."""
    received = part.n_received()
    version = part.version()
    headers = {}
    if received and (version or part.has_checksum):
        headers['Range'] = f'bytes={received}-'
        if version:
            headers['If-Range'] = version
    try:
        response = _open(part.address, headers)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not headers:
            raise
        # "Range not satisfiable": the part is of another file, or whole and was not verified.
        part.remove()
        return _receive(part, on_progress)
    with response:
        content = _content_range(response)
        has_changed = version and _version_of(response.headers) not in ('', version)
        is_the_rest = headers and content.first == received and not has_changed
        if is_the_rest or not content.first:
            return _store(response, content, part, on_progress)
    if not headers:
        raise OSError(f'the server sent a part, from byte {content.first}')
    # Not the rest of the downloaded part.
    part.remove()
    return _receive(part, on_progress)


@dataclass(frozen=True)
class _ContentRange:
    """The first byte of an answer, and the size of the whole file; None if it is not known."""

    first: int
    total: int | None


def _content_range(response: Any) -> _ContentRange:
    """The part of a file that an answer has. Raises OSError for an answer that does not say so."""
    if response.status == 200:
        return _ContentRange(0, None)
    given = str(response.headers.get('Content-Range') or '')
    match = _CONTENT_RANGE.fullmatch(given)
    if response.status != 206 or match is None:
        raise OSError(f'{status_text(response.status)}, Content-Range {given[:80]!r}')
    total = None if match['total'] == '*' else int(match['total'])
    if total is not None and int(match['last']) + 1 != total:
        raise OSError(f'the server sent a part that is not the rest, {given[:80]!r}')
    return _ContentRange(int(match['first']), total)


def _store(
    response: Any, content: _ContentRange, part: _Part, on_progress: Callable[[int], object]
) -> None:
    """Write an answer to a part; raises OSError for one that broke."""
    if response.headers.get_content_type() == 'text/html':
        # Google Drive sends one, and so do redirections.
        raise OSError('a web page came instead of the file, such as a login or a confirmation')
    if not content.first:
        part.begin(_version_of(response.headers))
    with open(part.path, 'ab') as stream:
        on_progress(content.first)
        while block := response.read(_BLOCK):
            if part.limit is not None and stream.tell() + len(block) > part.limit:
                part.remove()
                raise OSError(f'more than {part.limit:,} bytes came, far more than the stated size')
            stream.write(block)
            on_progress(len(block))
    if response.length:
        raise OSError(f'the connection ended {response.length} bytes early')
    n_received = part.n_received()
    if content.total is not None and n_received != content.total:
        raise OSError(f'{n_received} bytes came of {content.total}')
