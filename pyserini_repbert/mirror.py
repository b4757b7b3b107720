"""One setting that redirects every download: $PYSERINI_REPBERT_MIRROR.

A mirror answers `MIRROR/HOST/PATH?QUERY` as `https://HOST/PATH?QUERY` would. A mirror on this machine may serve
stand-ins of the real files: its `MIRROR/checksums.json`, address -> MD5, then replaces the published checksums.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from functools import cache

from pyserini_repbert.errors import MissingResourceError

VARIABLE = 'PYSERINI_REPBERT_MIRROR'
CHECKSUMS = 'checksums.json'
_HERE = ('127.0.0.1', 'localhost', '::1')
_TIMEOUT = 10  # seconds


def mirror() -> str:
    """The mirror's address without a slash at its end; '' where there is none."""
    return os.environ.get(VARIABLE, '').rstrip('/')


def mirrored(address: str) -> str:
    """Where `address` is fetched from: itself, or its place on the mirror."""
    base = mirror()
    return f'{base}/{address.partition("://")[2]}' if base and not address.startswith(f'{base}/') else address


def expected_md5(address: str, md5: str | None) -> str | None:
    """The checksum to expect of `address`: the published one, or that of a stand-in on a mirror of this machine.

    Raises MissingResourceError where such a mirror cannot be reached.
    """
    base = mirror()
    if not base or urllib.parse.urlsplit(base).hostname not in _HERE:
        return md5
    return _own_checksums(base).get(address, md5)


@cache
def _own_checksums(base: str) -> dict[str, str]:
    try:
        with urllib.request.urlopen(f'{base}/{CHECKSUMS}', timeout=_TIMEOUT) as response:
            return dict(json.loads(response.read()))
    except urllib.error.HTTPError as error:
        if error.code == 404:  # a mirror of the real files
            return {}
        raise MissingResourceError(f'the mirror {base} answers {error.code}: check ${VARIABLE}') from error
    except (OSError, ValueError) as error:
        raise MissingResourceError(f'the mirror {base} cannot be used ({error}): check ${VARIABLE}') from error
