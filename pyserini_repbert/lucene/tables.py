"""The tables that Pyserini 2.x fetches, fetched once, then stored.

They have prebuilt indexes, topics and judgments by name. Pyserini 2.x reads them from GitHub, five
of them while it is imported and others when a name is looked up. Their addresses name a commit, so
a copy never becomes outdated. Pyserini 1.6 ships its tables and fetches none.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import re
import urllib.request
import urllib.response
from email.message import Message
from pathlib import Path

from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.files import CACHE_ERRORS, atomic_file, cache_folder
from pyserini_repbert.offline import is_offline

SEED_VARIABLE = 'PYSERINI_SEED'  # a folder from which tables are read instead of the network
_TABLE = re.compile(
    r'https://raw\.githubusercontent\.com/castorini/'
    r'((?:prebuilt-indexes|eval)/[0-9a-f]{40})/((?:(?:lucene|faiss)/)?[\w.-]+\.json)'
)
_TIMEOUT = 10  # seconds without a byte; Pyserini's own


def tables_folder() -> Path:
    """The folder of the stored tables, each in a subfolder of its repository and commit."""
    return cache_folder() / 'pyserini-tables'


def keep_tables() -> None:
    """From now on, urllib's `urlopen` reads Pyserini's tables from stored copies.

    Other addresses are read as before.
    """
    urllib.request.install_opener(urllib.request.build_opener(_StoredTables))


class _StoredTables(urllib.request.BaseHandler):
    # It comes before the handlers that open a connection.
    handler_order = 100

    def https_open(self, request: urllib.request.Request) -> urllib.response.addinfourl | None:
        """The answer for a table; None for another address, which the next handler opens."""
        table = _TABLE.fullmatch(request.full_url)
        if table is None:
            return None
        content = io.BytesIO(_table(request.full_url, table[1], table[2]))
        answer = urllib.response.addinfourl(content, Message(), request.full_url, 200)
        answer.msg = 'OK'  # type: ignore[attr-defined]
        return answer


def _table(address: str, origin: str, name: str) -> bytes:
    """The bytes of a table: from the user's copy, otherwise the stored one, otherwise the network.

    They are stored from then on.

    Parameters
    ----------
    address : of the table
    origin : its repository and commit
    name : of its file there
    """
    seed = os.environ.get(SEED_VARIABLE)
    users = _whole(Path(seed) / name) if seed else None
    copy = tables_folder() / origin / name
    stored = _whole(copy)
    if stored is not None and users in (None, stored):
        return stored
    content = users or _fetched(address, name)
    # A cache that is read-only or full only costs time.
    with contextlib.suppress(*CACHE_ERRORS), atomic_file(copy, 'wb') as stream:
        stream.write(content)
    return content


def _fetched(address: str, name: str) -> bytes:
    try:
        if is_offline():
            raise OSError('downloads are off')
        with urllib.request.build_opener().open(address, timeout=_TIMEOUT) as response:
            content = bytes(response.read())
        json.loads(content)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise MissingResourceError(
            f'Pyserini 2.x needs one of its tables, {name}, which is neither kept here nor was '
            f'fetched ({getattr(error, "reason", error)}) from {address.removesuffix(name)}: run '
            f'this once with a network, it is then kept in {tables_folder()}, or copy that folder '
            'from a machine that has it'
        ) from error
    return content


def _whole(path: Path) -> bytes | None:
    """The content of a JSON file; None for a missing or damaged file."""
    try:
        content = path.read_bytes()
        json.loads(content)
    except (OSError, ValueError):
        return None
    return content
