"""The indexes of a service: the systems that search each, its passages, topics and judgments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.serve.documents import raw_document
from pyserini_repbert.serve.index_types import type_of
from pyserini_repbert.serve.lanes import Lanes
from pyserini_repbert.serve.refusals import NotFoundError
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings
from pyserini_repbert.serve.sparse_systems import SparseSystems

if TYPE_CHECKING:
    from pyserini_repbert.data.topics import Qrels
    from pyserini_repbert.index import DenseBundle
    from pyserini_repbert.ranking import Query
    from pyserini_repbert.search.dense import RepBertSearcher
    from pyserini_repbert.search.exact import Search

DENSE, ANN, HYBRID = 'dense', 'ann', 'hybrid'


class ServedIndex:
    """An index that answers queries; `open` it first.

    Attributes
    ----------
    alias : its name in addresses
    systems : the names that `ranking` takes, the default first
    passages : how many it holds
    encoder : name of the encoder of its dense vectors; None without any
    index_type : one of `index_types.TYPES`
    topics, qrels : its topics by qid, its judgments; empty if none are known
    """

    def __init__(self, settings: IndexSettings, service: ServeSettings, lanes: Lanes) -> None:
        self.alias, self.settings = settings.alias, settings
        self._service, self._lanes = service, lanes
        self.systems: tuple[str, ...] = ()
        self.passages = 0
        self.encoder: str | None = None
        self.index_type = settings.index_type or ''
        self._dense: dict[str, RepBertSearcher] = {}
        self._cluster = contextlib.ExitStack()
        self._sparse = SparseSystems(service.device)
        self._store: Any = None  # the Lucene index with the passages; None where the dense bundle stores them
        self.topics: dict[str, Query] = {}
        self.qrels: Qrels = {}
        self._by_text: dict[str, str] = {}

    async def open(self, base: ServedIndex | None = None) -> None:
        """Open the searchers; `base` is the opened index that its settings name as `base_index`."""
        self.index_type = await self._lanes.files.call(type_of, self.settings)
        if self.index_type in ('dense', 'faiss'):
            await self._lanes.dense.call(self._open_dense, base)
        else:
            if self.index_type == 'impact':
                self._sparse.add_epic(self.settings.place)
            else:
                self._sparse.add(self.settings, self.settings.sparse, lucene=True)
            self._store = await self._lanes.java.call(self._sparse.searcher, self._sparse.names[0])
            self.passages = self._store.size
        if base is not None:
            self._sparse.add(base.settings, self.settings.sparse, lucene=True)
            self._store = base._store
        elif self._dense and (self.settings.sparse is not None or catalog.find('indexes', self.settings.place)):
            self._sparse.add(self.settings, self.settings.sparse, lucene=False)
        if self.settings.sparse:
            await self._lanes.java.call(self._sparse.open_all)
        self.systems = (*self._dense, *self._sparse.names)
        if not self.systems:
            raise InputError(f"index '{self.alias}' has nothing to search")
        await self._lanes.files.call(self._read_judgments)

    def _open_dense(self, base: ServedIndex | None) -> None:
        from pyserini_repbert.encode.encoders import RepBertQueryEncoder
        from pyserini_repbert.names.index_building import ready_folder
        from pyserini_repbert.search.dense import RepBertSearcher

        place, own, service = self.settings.place, self.settings, self._service
        folder = ready_folder(place, own.encoder, service.device, precision=service.precision)
        encoder = RepBertQueryEncoder(own.encoder, service.device, precision=service.precision) if own.encoder else None
        searcher = RepBertSearcher(folder, encoder, service.device, spread=self._on_ray() if own.ray else None)
        self._dense[DENSE] = searcher
        if own.ann:
            self._dense[ANN] = RepBertSearcher(folder, searcher.query_encoder, service.device, ann=True)
        self.passages = len(searcher)
        self.encoder = Path(str(getattr(searcher.query_encoder, 'name', own.encoder))).name
        searcher.search('warm', 1)
        if base is None and not getattr(searcher.index, 'has_texts', False):
            raise InputError(
                f"index '{self.alias}' stores no passages: name the Lucene index that does as its base_index"
            )

    def _on_ray(self) -> Callable[[DenseBundle], Search]:
        """A factory of the search on the settings' Ray cluster, whose workers run until `close`."""
        from pyserini_repbert.pipeline.ray_search import ShardSearch
        from pyserini_repbert.pipeline.ray_workers import connected

        device = self._service.device
        fleet = self._cluster.enter_context(connected(str(self.settings.ray), gpu=device != 'cpu'))
        return lambda bundle: ShardSearch(fleet, bundle, device)

    def close(self) -> None:
        """Release the workers of a Ray cluster."""
        self._cluster.close()

    def _read_judgments(self) -> None:
        from pyserini_repbert.names.topics import load_qrels, load_topics

        entry = catalog.find('indexes', self.settings.place)
        known = None if entry is None else str(entry.values['collection'])
        topics = self.settings.topics or (known if known and catalog.find('topics', known) else None)
        qrels = self.settings.qrels or (known if known and catalog.find('qrels', known) else None)
        if topics:
            self.topics = {query.qid: query for query in load_topics(topics)}
            self._by_text = {_folded(query.text): query.qid for query in self.topics.values()}
        if qrels:
            self.qrels = load_qrels(qrels)

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """The systems of a request: the default for none, dense and BM25 for 'hybrid'."""
        wanted: list[str] = []
        for name in names or self.systems[:1]:
            wanted += [DENSE, 'bm25'] if name == HYBRID else [name]
        for name in wanted:
            if name not in self.systems:
                raise UnknownNameError(
                    f"index '{self.alias}' has no system '{name[:60]}'{catalog.did_you_mean(name, self.systems)}: "
                    f'it has {", ".join(self.systems)}'
                )
        if twice := next((name for name in wanted if wanted.count(name) > 1), None):
            raise InputError(f"system '{twice}' was given twice")
        return tuple(wanted)

    def encodes(self, system: str) -> bool:
        """Whether a system encodes the query with a model."""
        return system in self._dense or self.index_type == 'impact'

    async def ranking(self, system: str, query: str, k: int, weights: tuple[float, float] | None = None) -> Ranking:
        """The k best hits of one system; queries that wait at the same time are searched together.

        Parameters
        ----------
        weights : BM25's k1 and b, for system 'bm25' only; None: the index's
        """
        given = (query, k)
        if system in self._dense:
            searcher = self._dense[system]
            return await self._lanes.dense.together_with_others(
                (self.alias, system), lambda asked: _searched(searcher, asked, 1), given
            )
        if weights is not None:
            return await self._lanes.java.call(lambda: _searched(self._sparse.weighted(weights), [given], 1)[0])
        threads = self._service.threads
        return await self._lanes.java.together_with_others(
            (self.alias, system), lambda asked: _searched(self._sparse.searcher(system), asked, threads), given
        )

    async def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts, one for each docid, None where the index lacks it. Raises OverloadedError."""
        return await self._read('texts', docids)

    async def raws(self, docids: Sequence[str]) -> list[str | None]:
        """Documents as they are stored, one for each docid, None where the index lacks it. Raises OverloadedError."""
        if hasattr(self._store, 'raws'):
            return await self._read('raws', docids)
        texts = await self.texts(docids)
        return [None if text is None else raw_document(docid, text) for docid, text in zip(docids, texts, strict=True)]

    async def _read(self, what: str, docids: Sequence[str]) -> list[str | None]:
        if not docids:
            return []
        source = self._dense[DENSE] if self._store is None else self._store
        lane = self._lanes.files if self._store is None else self._lanes.java
        read = getattr(source, what)

        def together(asked: list[Sequence[str]]) -> list[list[str | None]]:
            wanted = list(dict.fromkeys(docid for own in asked for docid in own))
            found = dict(zip(wanted, read(wanted), strict=True))
            return [[found[docid] for docid in own] for own in asked]

        return await lane.together_with_others((self.alias, what), together, docids)

    def grades(self, qid: str) -> dict[str, int]:
        """The judgments of a topic: docid -> grade. Raises NotFoundError for a topic without judgments."""
        if qid not in self.qrels:
            raise NotFoundError(f"index '{self.alias}' has no judgments for topic '{qid[:200]}'")
        return self.qrels[qid]

    def judged(self, query: str) -> str | None:
        """The qid of the judged topic with the same text, apart from case, spaces and a final '?'; None without one."""
        qid = self._by_text.get(_folded(query))
        return qid if qid in self.qrels else None


def _folded(text: str) -> str:
    return ' '.join(text.casefold().split()).rstrip('?')


def _searched(searcher: Any, asked: Sequence[tuple[str, int]], threads: int) -> list[Ranking]:
    """The k best hits of each (query, k): all are searched to the greatest k, and each ranking is cut to its own."""
    topics = [Query(str(number), query) for number, (query, _) in enumerate(asked)]
    run = searcher.with_settings(threads=threads).rank(topics, None, max(k for _, k in asked))
    return [run[topic.qid][:k] for topic, (_, k) in zip(topics, asked, strict=True)]
