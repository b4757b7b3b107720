"""A collection in a service: its rankings, its documents, and the passages that answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyserini_repbert.collection.reading import Generation
from pyserini_repbert.collection.searching import (
    CollectionRanking,
    CollectionSearcher,
    dense_share,
    open_bm25,
    rankings_of,
)
from pyserini_repbert.data.documents import Document
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.pipeline.collections import complete_fusion, open_collection_searcher
from pyserini_repbert.pipeline.spec import Machine, PipelineSpec
from pyserini_repbert.serve.documents import document_values
from pyserini_repbert.serve.queues import BatchedRanker, JobQueue
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings


class ServedCollection:
    """One generation of a collection, which stays while it is open.

    Parameters
    ----------
    alias : how clients call it
    settings : where it is
    service : the settings of the service
    queue : where queries are encoded, and passages searched

    Attributes
    ----------
    searcher : searches the passages' vectors
    store : gives hits the passages that fit the query best
    rankings : what its documents are ranked by
    """

    def __init__(
        self, alias: str, settings: IndexSettings, service: ServeSettings, queue: JobQueue
    ) -> None:
        spec = PipelineSpec(
            index=settings.location,
            encoder=settings.encoder,
            precision=service.precision,
            rankings=(CollectionRanking.DENSE.value,),
        )
        machine = Machine(devices=(service.device,))
        self.searcher: CollectionSearcher = queue.call(
            lambda: open_collection_searcher(spec, machine)
        )
        # The first search is slow.
        queue.call(lambda: self.searcher.search('warm', 1))
        self.generation: Generation = self.searcher.generation
        self.rankings = rankings_of(self.generation.settings)
        self.store = BatchedRanker(self.searcher, queue, alias)

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.generation)

    @property
    def n_passages(self) -> int:
        """How many passages the documents have."""
        return sum(live.n_live for live in self.generation.shards)

    def close(self) -> None:
        """Let the generation go."""
        self.searcher.close()

    def open_bm25(self) -> LuceneSparseSearcher:
        """The search of whole documents by their words."""
        return open_bm25(self.generation)

    def complete_fusion(self, spec: PipelineSpec, systems: Sequence[str]) -> PipelineSpec:
        """The spec, with the collection's own fusion where a client names none.

        Systems that are not both of its rankings are fused as those of other indexes.
        """
        names = [ranking.value for ranking in self.rankings]
        if len(systems) < 2 or sorted(systems) != sorted(names):
            return spec
        return complete_fusion(spec, [CollectionRanking(system) for system in systems])

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
        """What clients are told: its size, its language, and how its rankings are fused."""
        about: dict[str, Any] = {
            'documents': len(self),
            'language': self.generation.settings.language,
            'generation': self.generation.number,
        }
        if len(self.rankings) > 1:
            share = dense_share(self.rankings)
            about |= {'fusion': 'interpolation', 'weights': [share, round(1 - share, 6)]}
        return about
