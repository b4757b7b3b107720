"""`TermWeightsIndex`: the exact search of a bundle of weights of terms."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.indexes.kind import Building, Index
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.stores import DocumentStore
from pyserini_repbert.names.impacts import open_impact_searcher
from pyserini_repbert.record import Input, checksum
from pyserini_repbert.search.impacts import ExactImpactSearcher

RANKING = 'sparse'


class TermWeightsIndex(Index):
    """A bundle of weights of terms."""

    _searcher: ExactImpactSearcher | None = None

    @property
    def rankings(self) -> tuple[str, ...]:
        return (RANKING,)

    @property
    def of_models(self) -> frozenset[str]:
        return frozenset(self.rankings)

    @property
    def of_documents(self) -> frozenset[str]:
        return frozenset()

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: Building = lambda index: int,
    ) -> ExactImpactSearcher:
        if self._searcher is None:
            searcher = open_impact_searcher(
                self.location,
                self.options.encoder,
                machine.devices[0],
                precision=self.options.precision,
                query_length=self.options.max_length,
            )
            self._searcher = searcher.with_settings(name=Path(searcher.name).name)
        return self._searcher

    def store(self, machine: Machine) -> DocumentStore:
        return DocumentStore(self.searcher(machine))

    @property
    def stores_texts(self) -> bool:
        return TermWeightsBundle(self.location).has_texts

    def n_passages(self, machine: Machine) -> int:
        return len(self.searcher(machine))

    def inputs(self) -> tuple[Input, ...]:
        return (Input('index', self.location, checksum(self.location)),)
