"""`DenseIndex`: the search of dense vectors, exact or by a scan."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.numbers import DocumentNumbers
from pyserini_repbert.indexes.dense.numbers import BundleNumbers
from pyserini_repbert.indexes.dense.searcher import DenseSearcher
from pyserini_repbert.indexes.kind import Index
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.offered import OfferedRankings, ScannedRanking
from pyserini_repbert.indexes.stores import DocumentStore
from pyserini_repbert.names.building import OnBuild, build_silently
from pyserini_repbert.names.indexes import ready_folder
from pyserini_repbert.record import Input, checksum
from pyserini_repbert.search.adapted_folder import read_adapted, read_query_map
from pyserini_repbert.search.dense import QueryEncoder
from pyserini_repbert.search.scans import scans

EXACT = 'dense'


class DenseIndex(Index):
    """An index of dense vectors; one of the catalog is built before it is searched."""

    _folder: Path | None = None
    _searcher: DenseSearcher | None = None

    @property
    def rankings(self) -> tuple[str, ...]:
        return (self.options.scan or EXACT,)

    @property
    def offered(self) -> OfferedRankings:
        """Exact search, and each scan; a FAISS folder does not give its vectors."""
        names = (EXACT, *scans())
        at_hand = names if self.kind.index_type(self.location) != 'faiss' else ()
        return OfferedRankings(
            names,
            of_vectors=frozenset(names),
            of_models=frozenset(names),
            of_documents=frozenset(at_hand),
            with_feedback=frozenset(at_hand),
            scanned={name: ScannedRanking(name, EXACT) for name in scans()},
        )

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: OnBuild = build_silently,
    ) -> DenseSearcher:
        if self._searcher is None:
            self._ready_folder(machine, on_build)
            self._searcher = self._open(machine, self.options.encoder, self.options.scan)
        return self._searcher

    def _ready_folder(self, machine: Machine, on_build: OnBuild = build_silently) -> Path:
        """The folder of the index, which is built first if necessary."""
        if self._folder is None:
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
        return self._folder

    def _open(
        self, machine: Machine, encoder: str | QueryEncoder | None, scan: str
    ) -> DenseSearcher:
        spread = None
        if machine.ray is not None:
            from pyserini_repbert.indexes.dense.on_ray import ShardSearch

            spread = partial(ShardSearch, machine.ray, device=machine.devices[0])
        searcher = DenseSearcher(
            self._ready_folder(machine),
            encoder,
            machine.devices[0],
            spread=spread,
            device_dtype=self.options.device_dtype,
            precision=self.options.precision,
            max_length=self.options.max_length,
            **({scan: True} if scan else {}),
        )
        searcher = searcher.with_settings(name=Path(searcher.name).name)
        if self.adapted is None:
            return searcher
        query_map = read_query_map(
            searcher.query_encoder,
            read_adapted(self.adapted),
            folder=self.adapted,
            dimension=searcher.dimension,
        )
        return searcher.with_settings(query_map=query_map)

    def ranking(self, name: str, machine: Machine) -> DenseSearcher:
        """Exact search, or a scan; both have one encoder."""
        searcher = self.searcher(machine)
        if name in scans() and name != self.options.scan:
            return self._open(machine, searcher.query_encoder, name)
        return searcher

    @property
    def encoder(self) -> str | None:
        encoder = self._searcher and self._searcher.query_encoder
        return getattr(encoder, 'name', self.options.encoder)

    def prepare(self, machine: Machine) -> None:
        self.searcher(machine).search('warm', 1)

    def store(self, machine: Machine) -> DocumentStore | None:
        bundle = self._bundle(machine)
        if bundle is None or not bundle.has_texts:
            return None
        return DocumentStore(bundle)

    def numbers(self, machine: Machine) -> DocumentNumbers | None:
        bundle = self._bundle(machine)
        return None if bundle is None else BundleNumbers(bundle)

    def _bundle(self, machine: Machine) -> DenseBundle | None:
        """The bundle that is open for searches; None for a FAISS folder."""
        bundle = self._searcher and self._searcher.index
        if bundle is None and self.kind.index_type(self.location) != 'faiss':
            bundle = DenseBundle(self._ready_folder(machine), verify=False)
        return bundle if isinstance(bundle, DenseBundle) else None

    def n_passages(self, machine: Machine) -> int:
        return len(self.searcher(machine))

    def inputs(self) -> tuple[Input, ...]:
        index = Input('index', self.location, checksum(str(self._folder)))
        if self.adapted is None:
            return (index,)
        return Input('adapted', self.adapted, checksum(self.adapted)), index
