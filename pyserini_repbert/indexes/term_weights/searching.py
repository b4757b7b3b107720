"""`TermWeightsIndex`: the exact search of a bundle of weights of terms."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.indexes.kind import Building, Index
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.names.impacts import open_impact_searcher
from pyserini_repbert.record import Input, checksum
from pyserini_repbert.search.impacts import ExactImpactSearcher

RANKING = 'sparse'


class TermWeightsIndex(Index):
    """A bundle of weights of terms."""

    @property
    def rankings(self) -> tuple[str, ...]:
        return (RANKING,)

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: Building = lambda index: int,
    ) -> ExactImpactSearcher:
        searcher = open_impact_searcher(
            self.location,
            self.options.encoder,
            machine.devices[0],
            precision=self.options.precision,
            query_length=self.options.max_length,
        )
        return searcher.with_settings(name=Path(searcher.name).name)

    def inputs(self) -> tuple[Input, ...]:
        return (Input('index', self.location, checksum(self.location)),)
