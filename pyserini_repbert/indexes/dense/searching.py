"""`DenseIndex`: the exact or approximate search of dense vectors."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.indexes.dense.on_ray import ShardSearch
from pyserini_repbert.indexes.kind import Building, Index
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.names.dense import RepBertSearcher
from pyserini_repbert.names.indexes import ready_folder
from pyserini_repbert.record import Input, checksum
from pyserini_repbert.search.adapted_folder import read_query_map

RANKING = 'dense'


class DenseIndex(Index):
    """An index of dense vectors; one of the catalog is built before it is searched."""

    _folder: Path

    @property
    def rankings(self) -> tuple[str, ...]:
        return (RANKING,)

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: Building = lambda index: int,
    ) -> RepBertSearcher:
        options = self.options
        self._folder = ready_folder(
            self.location,
            options.encoder,
            machine.devices[0],
            machine.build,
            options.corpus,
            options.precision,
            on_build=on_build,
        )
        spread = None
        if machine.ray is not None:
            spread = partial(ShardSearch, machine.ray, device=machine.devices[0])
        searcher = RepBertSearcher(
            self._folder,
            options.encoder,
            machine.devices[0],
            spread=spread,
            ann=options.ann,
            device_dtype=options.device_dtype,
            precision=options.precision,
            max_length=options.max_length,
        )
        searcher = searcher.with_settings(name=Path(searcher.name).name)
        if self.adapted is None:
            return searcher
        query_map = read_query_map(searcher.query_encoder, self.adapted, searcher.dimension)
        return searcher.with_settings(query_map=query_map)

    def inputs(self) -> tuple[Input, ...]:
        index = Input('index', self.location, checksum(self._folder))
        if self.adapted is None:
            return (index,)
        return Input('adapted', self.adapted, checksum(self.adapted)), index
