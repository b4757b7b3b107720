"""RepBERT behind the server of Pyserini 2.x: dense indexes whose settings name our encoder are searched with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.interop.pyserini.registration import is_ours
from pyserini_repbert.lucene.compat import add_index, server_factories, server_table

if TYPE_CHECKING:
    from pyserini_repbert.encode import RepBertQueryEncoder
    from pyserini_repbert.ranking import Candidate

_LUCENE = ('lucene_hnsw', 'lucene_flat')


def register_with_server() -> None:
    """Let the server open dense indexes with RepBERT. Further calls change nothing, nor does any with Pyserini 1.6.

    The server gives a searcher the name of an encoder, which is not looked up in Pyserini's tables: FaissSearcher gets
    the encoder itself instead. Anserini encodes with its own models only: a Lucene folder gets our searcher. The server
    of 1.6 opens only prebuilt indexes, with its own encoders.
    """
    factories = server_factories()
    if factories is None:
        return
    for kind in ('faiss', *_LUCENE):
        local, prebuilt, arguments_of = factories[kind]
        if not isinstance(arguments_of, _WithRepBert):
            opener = _Opener(local, kind) if kind in _LUCENE else local
            factories[kind] = (opener, prebuilt, _WithRepBert(arguments_of, kind))


class _WithRepBert:
    """Gives the arguments of a searcher for an index of the server, RepBERT's encoder in place of its name."""

    def __init__(self, arguments_of: Callable[[Any], dict[str, Any]], kind: str) -> None:
        self.arguments_of, self.kind = arguments_of, kind

    def __call__(self, index: Any) -> dict[str, Any]:
        arguments = self.arguments_of(index)
        if not isinstance(index.encoder, str) or not is_ours(index.encoder):
            return arguments
        if index.path:
            _make_known(index, self.kind)
        from pyserini_repbert.encode import RepBertQueryEncoder

        return arguments | {'encoder' if self.kind in _LUCENE else 'query_encoder': RepBertQueryEncoder(index.encoder)}


class _Opener:
    """Opens a Lucene folder: with our searcher if the encoder is ours, else with Pyserini's."""

    def __init__(self, theirs: Callable[..., Any], kind: str) -> None:
        self.theirs, self.kind = theirs, kind

    def __call__(self, folder: str, encoder: Any = None, **settings: Any) -> Any:
        if encoder is None or isinstance(encoder, str):
            return self.theirs(folder, encoder=encoder, **settings)
        return _VectorSearcher(folder, encoder, sys.maxsize if self.kind == 'lucene_flat' else settings['ef_search'])


class _VectorSearcher:
    """The methods that the server calls of a searcher, over a Lucene index's vectors."""

    def __init__(self, folder: str, encoder: RepBertQueryEncoder, ef: int | None) -> None:
        from pyserini_repbert.lucene.vector_search import LuceneVectors

        self.encoder, self.vectors = encoder, LuceneVectors(Path(folder), ef)

    def search(self, query: str, k: int = 10) -> list[Candidate]:
        return list(self.vectors.search(self.encoder.encode(query), k))

    def close(self) -> None:
        self.vectors.close()


def _make_known(index: Any, kind: str) -> None:
    """Put an index of the server's settings into Pyserini's table of prebuilt indexes of its kind.

    Unless started with --no-prebuilt-indexes, the server of 2.4 looks there for the passages of every dense index, and
    fails with a KeyError for a folder of its settings.
    """
    entry = {'filename': index.name, 'urls': [Path(index.path).as_uri()], 'md5': '', 'texts': index.base_index}
    add_index(server_table(kind), index.name, entry)
