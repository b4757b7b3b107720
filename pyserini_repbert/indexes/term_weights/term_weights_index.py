"""`TermWeightsIndex`: the exact search of a bundle of term weights."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.indexes.kind import ExplainingModel, Index
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.offered import OfferedRankings
from pyserini_repbert.indexes.stores import DocumentStore
from pyserini_repbert.indexes.term_weights.opening import open_term_weights_searcher
from pyserini_repbert.indexes.term_weights.searcher import TermWeightsSearcher
from pyserini_repbert.names.building import OnBuild, build_silently
from pyserini_repbert.record import Input, checksum

RANKING = 'sparse'


class TermWeightsIndex(Index):
    """A bundle of term weights."""

    _searcher: TermWeightsSearcher | None = None

    @property
    def rankings(self) -> tuple[str, ...]:
        return (RANKING,)

    @property
    def offered(self) -> OfferedRankings:
        return OfferedRankings(self.rankings, of_models=frozenset(self.rankings))

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: OnBuild = build_silently,
    ) -> TermWeightsSearcher:
        if self._searcher is None:
            searcher = open_term_weights_searcher(
                self.location,
                self.options.encoder,
                machine.devices[0],
                precision=self.options.precision,
                query_length=self.options.max_length,
            )
            self._searcher = searcher.with_settings(name=Path(searcher.name).name)
        return self._searcher

    @cached_property
    def term_weights(self) -> TermWeightsBundle:
        return TermWeightsBundle(self.location)

    @property
    def explaining_model(self) -> ExplainingModel:
        settings = self.term_weights.settings
        # As many weights as are stored make the score.
        return ExplainingModel(settings.encoder, {'prune': settings.prune})

    def store(self, machine: Machine) -> DocumentStore | None:
        bundle = TermWeightsBundle(self.location, verify=False)
        return DocumentStore(bundle) if bundle.has_texts else None

    def n_passages(self, machine: Machine) -> int:
        return len(self.searcher(machine))

    def inputs(self) -> tuple[Input, ...]:
        return (Input('index', self.location, checksum(self.location)),)
