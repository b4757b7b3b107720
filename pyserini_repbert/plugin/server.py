"""RepBERT behind Pyserini 2.x's server: its FAISS indexes are searched with our encoder where a setting names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyserini_repbert.plugin.registration import is_ours
from pyserini_repbert.pyserini_bridge.compat import add_index, prebuilt_tables, server_factories


def register_with_server() -> None:
    """Let the server open FAISS indexes with RepBERT; further calls change nothing, and so does any with Pyserini 1.6.

    The server hands the name of an encoder to FaissSearcher, which looks into no table; it gets the encoder instead.
    1.6's server opens nothing but prebuilt indexes, with encoders of its own.
    """
    factories = server_factories()
    if factories is None:
        return
    local, prebuilt, arguments_of = factories['faiss']
    if not isinstance(arguments_of, _WithRepBert):
        factories['faiss'] = (local, prebuilt, _WithRepBert(arguments_of))


class _WithRepBert:
    """The arguments of a FAISS searcher for an index of the server, with RepBERT's encoder for its name."""

    def __init__(self, arguments_of: Callable[[Any], dict[str, Any]]) -> None:
        self.arguments_of = arguments_of

    def __call__(self, index: Any) -> dict[str, Any]:
        arguments = self.arguments_of(index)
        if not isinstance(index.encoder, str) or not is_ours(index.encoder):
            return arguments
        if index.path:
            _make_known(index)
        from pyserini_repbert.encode import RepBertQueryEncoder

        return arguments | {'query_encoder': RepBertQueryEncoder(index.encoder)}


def _make_known(index: Any) -> None:
    """Put a folder of the server's settings into the table of FAISS indexes.

    Unless it is started with --no-prebuilt-indexes, the server of 2.4 asks that table for the passages of every dense
    index, its own folders included, which fails with a KeyError.
    """
    entry = {'filename': index.name, 'urls': [Path(index.path).as_uri()], 'md5': '', 'texts': index.base_index}
    add_index(prebuilt_tables()['dense'], index.name, entry)
