"""RepBERT behind the server of Pyserini 2.x: dense indexes whose settings name our encoder are searched with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyserini_repbert.interop.pyserini.registration import is_ours
from pyserini_repbert.lucene.compat import add_index, server_factories, server_table


def register_with_server() -> None:
    """Let the server open dense indexes with RepBERT. Further calls change nothing, nor does any with Pyserini 1.6.

    The server gives a searcher the name of an encoder, which is not looked up in Pyserini's tables: FaissSearcher gets
    the encoder itself instead. The server of 1.6 opens only prebuilt indexes, with its own encoders.
    """
    factories = server_factories()
    if factories is None:
        return
    local, prebuilt, arguments_of = factories['faiss']
    if not isinstance(arguments_of, _WithRepBert):
        factories['faiss'] = (local, prebuilt, _WithRepBert(arguments_of))


class _WithRepBert:
    """Gives the arguments of a searcher for an index of the server, RepBERT's encoder in place of its name."""

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
    """Put an index of the server's settings into Pyserini's table of prebuilt dense indexes.

    Unless started with --no-prebuilt-indexes, the server of 2.4 looks there for the passages of every dense index, and
    fails with a KeyError for a folder of its settings.
    """
    entry = {'filename': index.name, 'urls': [Path(index.path).as_uri()], 'md5': '', 'texts': index.base_index}
    add_index(server_table('faiss'), index.name, entry)
