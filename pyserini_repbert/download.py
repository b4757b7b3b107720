"""Downloads that continue where they stopped, and appear only when their checksum is right."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyserini_repbert.catalog import Entry
from pyserini_repbert.checksums import digest, remembered_digest
from pyserini_repbert.errors import DamagedFileError, MissingResourceError, within_limits
from pyserini_repbert.files import cache_folder

OFFLINE_VARIABLE = 'PYSERINI_REPBERT_OFFLINE'
_HUB_VARIABLE = 'HF_HUB_OFFLINE'
_BLOCK = 1 << 20
_TIMEOUT = 60  # seconds without a byte


def is_offline() -> bool:
    """Whether downloads are forbidden.

    They are by `--offline`, which sets $PYSERINI_REPBERT_OFFLINE, and by $HF_HUB_OFFLINE.
    """
    values = [os.environ.get(name, '') for name in (OFFLINE_VARIABLE, _HUB_VARIABLE)]
    return any(value not in ('', '0') for value in values)


def downloads_folder() -> Path:
    """Where downloaded files lie, and where a user may put them by hand."""
    return cache_folder() / 'downloads'


def fetch_entry(entry: Entry, on_progress: Callable[[int], object] = int) -> Path:
    """The downloaded file of a catalog entry, fetched if it is not there yet.

    Errors are those of `fetch`.
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
    target : where it is put
    md5 : None where none is published
    size, name : for messages: '386 MB', 'msmarco'
    on_progress : called with the number of bytes received since its last call

    Raises MissingResourceError, with what to fetch by hand and where to put it, if downloads are
    off or the address cannot be reached; DamagedFileError for another checksum than the expected
    one.
    """
    if target.is_file():
        md5_here = remembered_digest(target, 'md5')
        if md5 is not None and md5_here != md5:
            raise DamagedFileError(
                f'{target} has MD5 {md5_here}, expected {md5}: delete it and fetch it again'
            )
        return target
    by_hand = f'{target.name} ({size}) from {address} and put it at {target}'
    if is_offline():
        raise MissingResourceError(f"'{name}' is not here and downloads are off: fetch {by_hand}")
    part = target.with_name(f'{target.name}.part')
    part.parent.mkdir(parents=True, exist_ok=True)
    try:
        with within_limits(part):
            _receive(address, part, on_progress)
    # Resets, time-outs, answers that are no HTTP.
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        raise MissingResourceError(
            f"'{name}' could not be fetched ({_reason(error)}): try again, or fetch {by_hand}"
        ) from error
    sent_md5 = digest(part, 'md5')
    if md5 is not None and sent_md5 != md5:
        part.unlink()
        raise DamagedFileError(
            f"'{name}': what {address} sent has MD5 {sent_md5}, expected {md5}: fetch {by_hand}"
        )
    part.replace(target)
    return target


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return status_text(error.code)
    reason = getattr(error, 'reason', None) or error
    return ' '.join(str(reason).split()) or type(error).__name__


def status_text(code: int) -> str:
    """An HTTP status in words: 'status 404, Not Found'."""
    return f'status {code}, {http.client.responses.get(code, "unknown")}'


def _receive(address: str, part: Path, on_progress: Callable[[int], object]) -> None:
    """Append to `part` what it lacks; a server that cannot continue sends everything again."""
    received = part.stat().st_size if part.exists() else 0
    headers = {'Range': f'bytes={received}-'} if received else {}
    request = urllib.request.Request(address, headers=headers)
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not received:
            raise
        # "Range not satisfiable": the part is of another file, or whole and was not verified.
        part.unlink()
        return _receive(address, part, on_progress)
    with response:
        _store(response, part, received, on_progress)


def _store(response: Any, part: Path, received: int, on_progress: Callable[[int], object]) -> None:
    """Append an answer to `part`, which has `received` bytes; raises OSError for one that broke."""
    if response.headers.get_content_type() == 'text/html':
        # Google Drive sends one, and so do redirections.
        raise OSError('a web page came instead of the file: a login or a confirmation, say')
    # Only an answer with status 206 continues.
    start = 0
    mode = 'wb'
    if response.status == 206 and received:
        start = received
        mode = 'ab'
    with open(part, mode) as stream:
        on_progress(start)
        while block := response.read(_BLOCK):
            stream.write(block)
            on_progress(len(block))
    if response.length:
        raise OSError(f'the connection ended {response.length} bytes early')


def forbid_downloads(forbidden: bool) -> None:
    """Forbid downloads from now on, to Hugging Face's libraries too, as `--offline` does.

    False changes nothing.
    """
    if forbidden:
        os.environ[OFFLINE_VARIABLE] = '1'
        os.environ[_HUB_VARIABLE] = '1'
