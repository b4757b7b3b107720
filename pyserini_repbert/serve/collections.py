"""A collection in a service: its rankings, its documents, and the passages that answer."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.document_search import DocumentSearcher
from pyserini_repbert.collection.filtered import rank_within
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.reading import Generation
from pyserini_repbert.collection.searching import (
    CollectionRanking,
    CollectionSearcher,
    default_fusion,
    learned_settings,
    open_bm25,
    rankings_of,
)
from pyserini_repbert.collection.term_search import TermSearcher, open_sparse_encoder
from pyserini_repbert.data.documents import Document
from pyserini_repbert.encode.term_weights import TermWeightsEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.indexes.collection import KIND
from pyserini_repbert.indexes.collection.searching import CollectionIndex
from pyserini_repbert.indexes.kind import SearchOptions
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.resolving import with_usual_fusion
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.serve.documents import document_values
from pyserini_repbert.serve.queues import BatchedRanker, JobQueue
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

logger = logging.getLogger(__name__)

# Filters whose documents are kept.
_MOST_FILTERS = 32
# Fields that clients are told of.
_MOST_FIELDS = 1000


class ServedCollection:
    """One generation of a collection, which stays while it is open.

    Parameters
    ----------
    alias : how clients call it
    settings : where it is
    service : the settings of the service
    queue : where queries are encoded, and passages searched
    before : an earlier generation of it, whose encoder and shards are shared

    Attributes
    ----------
    alias : how clients call it
    searcher : searches the passages' vectors
    store : gives hits the passages that fit the query best
    rankings : what its documents are ranked by
    """

    def __init__(
        self,
        alias: str,
        settings: IndexSettings,
        service: ServeSettings,
        queue: JobQueue,
        before: Self | None = None,
    ) -> None:
        options = SearchOptions(
            encoder=settings.encoder,
            precision=service.precision,
            rankings=(CollectionRanking.DENSE.value,),
        )
        machine = Machine(devices=(service.device,))
        self.alias = alias
        self._device = service.device
        self.index: CollectionIndex
        self.searcher: CollectionSearcher
        if before is None:
            self.index = CollectionIndex(KIND, settings.location, options)
            self.searcher = queue.call(lambda: self.index.searcher(machine))
            # The first search is slow.
            queue.call(lambda: self.searcher.search('warm', 1))
        else:
            # Not in the queue, where requests to the earlier generation wait.
            self.index = CollectionIndex(KIND, settings.location, options, before.index)
            self.searcher = self.index.searcher(machine)
            vectors = np.ones((1, self.searcher.generation.settings.dimension), np.float32)
            self.searcher.dense.of_vectors(vectors, 1)
        self.generation: Generation = self.searcher.generation
        for live in self.generation.shards:
            # Searches go on where the folder is moved away.
            live.shard.map_all()
        # Counted before the first request: 100,000 documents of five fields take 0.3 s.
        self.generation.field_counts()
        self.rankings = rankings_of(self.generation.settings)
        self._sparse_encoder: TermWeightsEncoder | None = None
        if before is not None and before.sparse_key == self.sparse_key:
            self._sparse_encoder = before._sparse_encoder
        self.store = BatchedRanker(self.searcher, queue, alias)
        self._lock = threading.Lock()
        self._masks: dict[str, NDArray[np.bool_]] = {}
        self._filtered: dict[tuple[str, str], BatchedRanker] = {}

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.generation)

    @property
    def n_passages(self) -> int:
        """How many passages the documents have."""
        return sum(live.n_live for live in self.generation.shards)

    def close(self) -> None:
        """Release the generation."""
        self.searcher.close()

    @property
    def sparse_key(self) -> str | None:
        """A digest of its learned sparse model; None without one."""
        return self.generation.settings.sparse_key

    def open_sparse(self) -> Ranker:
        """The ranking beside that of vectors: BM25 of whole documents, or the learned one."""
        if CollectionRanking.SPARSE not in self.rankings:
            return open_bm25(self.generation)
        if self._sparse_encoder is None:
            self._sparse_encoder = open_sparse_encoder(self.generation, self._device)
        searcher = TermSearcher(self.generation, self.searcher.dense.vectors, self._sparse_encoder)
        return searcher.with_settings(name=CollectionRanking.SPARSE.value)

    def open_ann(self, is_needed: bool) -> DocumentSearcher:
        """The search of passages by the approximate index.

        Raises InputError where there is none and it is needed. Where it is not, because an earlier
        generation had one, passages are searched exactly.
        """
        dense = self.searcher.dense
        try:
            return dense.approximately()
        except InputError as error:
            if is_needed:
                raise
            logger.warning("index '%s' is searched exactly: %s", self.alias, error)
            return dense

    def open_adapted(self, folder: str) -> CollectionSearcher:
        """The search of this generation as `adapt` learned it.

        Parameters
        ----------
        folder : what `adapt` wrote, without a reranker

        Raises MismatchError if it was learned for another encoder.
        """
        encoder = self.searcher.dense.query_encoder
        settings = learned_settings(encoder, folder, self.generation.settings.dimension)
        searcher = CollectionSearcher(
            self.generation, encoder, settings, self._device, self._sparse_encoder
        )
        self._sparse_encoder = searcher.sparse_encoder
        return searcher

    def mask(self, text: str) -> NDArray[np.bool_]:
        """The documents that a filter lets through, as of `DocumentFilter.mask`; kept for later."""
        with self._lock:
            if text not in self._masks:
                _make_room(self._masks)
                self._masks[text] = DocumentFilter(text).mask(self.generation)
            return self._masks[text]

    def rank_within(
        self, text: str, ranker: BatchedRanker, system: str, is_usual: bool
    ) -> BatchedRanker:
        """A ranking among the documents that a filter lets through.

        Parameters
        ----------
        text : the filter
        ranker : of all documents
        system : the ranking's name
        is_usual : whether it has the settings of the index; it is kept then, and requests share it
        """
        mask = self.mask(text)
        with self._lock:
            known = self._filtered.get((text, system)) if is_usual else None
        if known is not None:
            return known

        def restrict() -> Ranker:
            if isinstance(ranker.ranker, CollectionSearcher):
                return ranker.ranker.within(DocumentFilter(text))
            return rank_within(ranker.ranker, self.generation, mask)

        within = ranker.queue.call(restrict)
        filtered = BatchedRanker(within, ranker.queue, system)
        if is_usual:
            with self._lock:
                _make_room(self._filtered)
                self._filtered[text, system] = filtered
        return filtered

    def complete_fusion(self, spec: PipelineSpec, systems: Sequence[str]) -> PipelineSpec:
        """The spec, with the collection's own fusion where a client names none.

        Systems that are not both of its rankings are fused as those of other indexes.
        """
        names = [ranking.value for ranking in self.rankings]
        if len(systems) < 2 or sorted(systems) != sorted(names):
            return spec
        return with_usual_fusion(spec, default_fusion(systems))

    def documents(self, docids: Sequence[str]) -> list[Document | None]:
        """Whole documents, None for each that is not here."""
        return self.generation.documents(docids)

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        """Documents as JSON, None for each that is not here."""
        raws = []
        for document in self.documents(docids):
            raw = None
            if document is not None:
                values = {'id': document.docid, **document_values(document)}
                raw = json.dumps(values, ensure_ascii=False)
            raws.append(raw)
        return raws

    def about(self) -> dict[str, Any]:
        """What clients are told: its size, its language, and how its rankings are fused.

        Of many fields, those that most documents have.
        """
        counts = self.generation.field_counts()
        names = sorted(counts, key=lambda name: (-counts[name].documents, name))[:_MOST_FIELDS]
        types = self.generation.field_types()
        about: dict[str, Any] = {
            'documents': len(self),
            'language': self.generation.settings.language,
            'generation': self.generation.number,
            'fields': {name: sorted(types[name]) for name in sorted(names)},
            'field_counts': {name: asdict(counts[name]) for name in sorted(names)},
        }
        if len(self.rankings) > 1:
            usual = default_fusion(self.rankings)
            about |= {'fusion': str(usual.method), 'weights': list(usual.weights)}
        return about


def _make_room(kept: dict[Any, Any]) -> None:
    """Drop the oldest entry of a full cache."""
    if len(kept) >= _MOST_FILTERS:
        kept.pop(next(iter(kept)))
