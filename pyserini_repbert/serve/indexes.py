"""The indexes of a service: which systems search one, and where its passages are."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert import catalog
from pyserini_repbert.errors import InputError, MismatchError, UnknownNameError
from pyserini_repbert.pyserini_bridge.lucene_corpus import is_lucene_index
from pyserini_repbert.pyserini_bridge.sparse_settings import EPIC_IMPACT, SparseSettings, built_variant
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.serve.documents import raw_document
from pyserini_repbert.serve.lanes import Lane
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

if TYPE_CHECKING:
    from pyserini_repbert.formats.topics import Qrels
    from pyserini_repbert.ranking import Query
    from pyserini_repbert.search.dense import RepBertSearcher

TYPES = ('tf', 'dense', 'faiss', 'impact')
DENSE, ANN, HYBRID = 'dense', 'ann', 'hybrid'
_SETTINGS_KEPT = 4  # opened Lucene searchers with k1 and b of a client's choice


class Lanes:
    """The lanes of a service: `dense`, `java`, `rerank`, and `files` for passages and uploads."""

    def __init__(self, settings: ServeSettings, on_batch: Any = None) -> None:
        waiting, window, together = settings.limits.waiting, settings.window, settings.together

        def lane(name: str, window: float = 0.0, together: int = 1) -> Lane:
            note = None if on_batch is None else lambda size: on_batch(name, size)
            return Lane(name, waiting, window, together, note)

        self.dense = lane('dense', window, together)
        self.java = lane('java', 0.0, together)
        self.rerank = lane('rerank')
        self.files = lane('files', 0.0, together)
        self.all = (self.dense, self.java, self.rerank, self.files)


class ServedIndex:
    """An index that answers queries; `open` it first.

    Attributes
    ----------
    alias : its name
    systems : the names that `ranking` takes, the default first
    passages : how many it holds
    encoder : of its dense vectors, None without any
    """

    def __init__(self, settings: IndexSettings, service: ServeSettings, lanes: Lanes) -> None:
        self.alias, self.settings = settings.alias, settings
        self._service, self._lanes = service, lanes
        self.systems: tuple[str, ...] = ()
        self.passages = 0
        self.encoder: str | None = None
        self.index_type = settings.index_type or ''
        self._dense: dict[str, RepBertSearcher] = {}
        self._specs: dict[str, tuple[str, str | None]] = {}  # sparse system -> what `open_sparse` takes
        self._sparse: dict[str, Any] = {}  # opened, in the lane of Java
        self._weighted: OrderedDict[tuple[float, float], Any] = OrderedDict()
        self._store: Any = None  # the Lucene index with the passages; None where the dense bundle stores them
        self.topics: dict[str, Query] = {}
        self.qrels: Qrels = {}
        self._by_text: dict[str, str] = {}

    async def open(self, base: ServedIndex | None = None) -> None:
        """Open what lies there; `base` is the opened index that its settings name as `base_index`.

        Raises
        ------
        UnknownNameError, MissingResourceError, DamagedFileError, MismatchError, InputError
            where there is no such index, or not such an index
        """
        await self._lanes.files.call(self._look)
        if self.index_type in ('dense', 'faiss'):
            await self._lanes.dense.call(self._open_dense, base)
        else:
            self._name_sparse(None)
            await self._lanes.java.call(self._open_stored)
        if base is not None:
            self._name_sparse(base)
            self._store = base._store
        elif self._dense and (self.settings.sparse is not None or catalog.find('indexes', self.settings.place)):
            self._name_sparse(None)
        self.systems = (*self._dense, *self._specs)
        if not self.systems:
            raise InputError(f"index '{self.alias}' has nothing to search")
        await self._lanes.files.call(self._read_judgments)

    def _look(self) -> None:
        """Find out what lies there."""
        place = self.settings.place
        folder = None if catalog.find('indexes', place) else Path(place)
        if folder is None:
            found = 'dense'
        elif not folder.is_dir():
            raise UnknownNameError(
                f"index '{self.alias}': '{place}' is neither a folder nor an index of the catalog"
                f'{catalog.did_you_mean(place, catalog.entries("indexes"))}'
            )
        elif is_lucene_index(folder):
            found = 'impact' if built_variant(folder) == EPIC_IMPACT else 'tf'
        else:
            found = 'dense' if (folder / 'manifest.json').is_file() else 'faiss'
        wanted = self.settings.index_type or found
        if wanted not in TYPES:
            raise InputError(
                f"index '{self.alias}' is of type '{wanted}', this service has {', '.join(TYPES)}: "
                "serve it with Pyserini's own server"
            )
        if {wanted, found} not in ({found}, {'faiss', 'dense'}):
            raise MismatchError(f"index '{self.alias}' is said to be of type '{wanted}', {place} is of type '{found}'")
        self.index_type = found

    def _open_dense(self, base: ServedIndex | None) -> None:
        from pyserini_repbert.encode.encoders import RepBertQueryEncoder
        from pyserini_repbert.names.index_building import ready_folder
        from pyserini_repbert.search.dense import RepBertSearcher

        place, own, service = self.settings.place, self.settings, self._service
        folder = ready_folder(place, own.encoder, service.device, precision=service.precision)
        encoder = RepBertQueryEncoder(own.encoder, service.device, precision=service.precision) if own.encoder else None
        searcher = RepBertSearcher(folder, encoder, service.device)
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

    def _name_sparse(self, base: ServedIndex | None) -> None:
        """Note the sparse systems: those of the settings, or those that fit the Lucene index."""
        settings = self.settings if base is None else base.settings
        lucene = base is not None or self.index_type in ('tf', 'impact')
        beside = None if lucene else settings.place
        if self.index_type == 'impact':
            self._specs['epic'] = (settings.place, None)
            return
        if self.settings.sparse is not None:
            for spec in self.settings.sparse:
                name, _, folder = spec.partition('@')
                self._specs[name] = (spec if folder or not lucene else f'{name}@{settings.place}', beside)
            return
        variant = (built_variant(Path(settings.place)) if lucene else None) or 'bm25'
        for name, entry in catalog.entries('sparse').items():
            if entry.values['variant'] == variant:
                self._specs[name] = (f'{name}@{settings.place}' if lucene else name, beside)

    def _open_stored(self) -> None:
        self._store = self._opened_sparse(next(iter(self._specs)))
        self.passages = self._store.size

    def _opened_sparse(self, system: str) -> Any:
        """The searcher of a sparse system, opened when it is first asked for; in the lane of Java."""
        if system not in self._sparse:
            from pyserini_repbert.search.first_stage import open_sparse

            spec, index = self._specs[system]
            self._sparse[system] = open_sparse(spec, index, device=self._service.device)
        return self._sparse[system]

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
        """The systems of a request: the default for none, dense and BM25 for 'hybrid'.

        Raises
        ------
        UnknownNameError
            for one that this index does not have, with the nearest
        InputError
            for one that is named twice
        """
        wanted: list[str] = []
        for name in names or self.systems[:1]:
            wanted += [DENSE, 'bm25'] if name == HYBRID else [name]
        for name in wanted:
            if name not in self.systems:
                raise UnknownNameError(
                    f"index '{self.alias}' has no system '{name[:60]}'{catalog.did_you_mean(name, self.systems)}: "
                    f'it has {", ".join(self.systems)}'
                )
        if len(set(wanted)) < len(wanted):
            raise InputError(f"system '{next(name for name in wanted if wanted.count(name) > 1)}' was given twice")
        return tuple(wanted)

    def encodes(self, system: str) -> bool:
        """Whether a system encodes the query with a model."""
        return system in self._dense or self.index_type == 'impact'

    async def ranking(self, system: str, query: str, k: int, weights: tuple[float, float] | None = None) -> Ranking:
        """The k best hits of one system; queries that wait at the same time are searched together.

        Parameters
        ----------
        weights : BM25's k1 and b, of system 'bm25' only
        """
        given = (query, k)
        if system in self._dense:
            searcher = self._dense[system]
            return await self._lanes.dense.together_with_others(
                (self.alias, system), lambda asked: _searched(searcher, asked, 1), given
            )
        if weights is not None:
            return await self._lanes.java.call(lambda: _searched(self._with_weights(weights), [given], 1)[0])
        threads = self._service.threads
        return await self._lanes.java.together_with_others(
            (self.alias, system), lambda asked: _searched(self._opened_sparse(system), asked, threads), given
        )

    def _with_weights(self, weights: tuple[float, float]) -> Any:
        """BM25 with a client's k1 and b; the searchers of the last few are kept."""
        from pyserini_repbert.pyserini_bridge.lucene import LuceneSparseSearcher

        if weights not in self._weighted:
            folder = self._opened_sparse('bm25').index
            while len(self._weighted) >= _SETTINGS_KEPT:
                self._weighted.popitem(last=False)[1].close()
            self._weighted[weights] = LuceneSparseSearcher(folder, SparseSettings(k1=weights[0], b=weights[1]))
        self._weighted.move_to_end(weights)
        return self._weighted[weights]

    async def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts; None for a docid that is not there."""
        found: list[str | None] = await self._read('texts', docids)
        return found

    async def raws(self, docids: Sequence[str]) -> list[str | None]:
        """Documents as they are stored; None for a docid that is not there."""
        if hasattr(self._store, 'raws'):
            found: list[str | None] = await self._read('raws', docids)
            return found
        texts = await self.texts(docids)
        return [None if text is None else raw_document(docid, text) for docid, text in zip(docids, texts, strict=True)]

    async def _read(self, what: str, docids: Sequence[str]) -> Any:
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

    def judged(self, query: str) -> str | None:
        """The qid of the judged topic that this query is, by its words; None where it is none."""
        qid = self._by_text.get(_folded(query))
        return qid if qid in self.qrels else None


def _folded(text: str) -> str:
    return ' '.join(text.casefold().split()).rstrip('?')


def _searched(searcher: Any, asked: Sequence[tuple[str, int]], threads: int) -> list[Ranking]:
    """The rankings of (query, k) pairs, each as long as it was asked for: a shorter one begins as a longer one does."""
    qids = [str(number) for number in range(len(asked))]
    deepest = max(k for _, k in asked)
    run = searcher.rankings([query for query, _ in asked], qids, deepest, threads)
    return [run[qid][:k] for qid, (_, k) in zip(qids, asked, strict=True)]


async def opened(settings: ServeSettings, lanes: Lanes) -> dict[str, ServedIndex]:
    """The indexes of a service by alias, all opened; those that others name as their base first.

    Raises
    ------
    UnknownNameError, InputError
        for a base_index that is not there, or is not a Lucene index; and what `ServedIndex.open` raises
    """
    known = {own.alias: own for own in settings.indexes}
    found: dict[str, ServedIndex] = {}
    for own in sorted(settings.indexes, key=lambda own: own.base_index is not None):
        base = None
        if own.base_index is not None:
            if own.base_index not in known:
                near = catalog.did_you_mean(own.base_index, known)
                raise UnknownNameError(f"index '{own.alias}' names '{own.base_index}' as its base_index{near}")
            base = found.get(own.base_index)
            if base is None or base.index_type != 'tf':
                raise InputError(f"index '{own.alias}': its base_index '{own.base_index}' has to be a Lucene index")
        index = ServedIndex(own, settings, lanes)
        await index.open(base)
        found[own.alias] = index
        await asyncio.sleep(0)
    return {alias: found[alias] for alias in known}
