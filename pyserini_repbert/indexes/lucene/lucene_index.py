"""`LuceneIndex`: a Lucene index, searched as its own record says, or by a technique."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from pyserini_repbert import catalog
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.manifest import missing_manifest
from pyserini_repbert.indexes.kind import Index, IndexKind, SearchOptions
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.offered import OfferedRankings
from pyserini_repbert.indexes.stores import DocumentStore
from pyserini_repbert.lucene.index_record import EPIC_IMPACT, built_variant
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.names.building import OnBuild, build_silently
from pyserini_repbert.names.sparse import names_impact_encoder, open_impacts, open_sparse
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.record import Input, checksum

WORDS = 'bm25'
# The rankings of EPIC's impacts, and of impacts that another program built.
EPIC = 'epic'
IMPACT = 'impact'


class LuceneIndex(Index):
    """A Lucene index of words or of impacts.

    Raises InputError for an encoder of vectors, which no Lucene index has.
    """

    def __init__(self, kind: IndexKind, location: str, options: SearchOptions) -> None:
        super().__init__(kind, location, options)
        if options.encoder and not names_impact_encoder(options.encoder):
            raise missing_manifest(location)
        # Its searchers by the name of their ranking; '' for the search by the index's own record.
        self._opened: dict[str, Ranker] = {}

    @property
    def rankings(self) -> tuple[str, ...]:
        if self.options.encoder:
            return (IMPACT,)
        return (EPIC,) if self._variant == EPIC_IMPACT else (WORDS,)

    @property
    def _variant(self) -> str:
        """What the index was built for; 'bm25' without a record."""
        return built_variant(Path(self.location)) or WORDS

    @property
    def offered(self) -> OfferedRankings:
        """The catalog's techniques that fit; of impacts, their ranking."""
        if not self.searches_words:
            return OfferedRankings(self.rankings, of_models=frozenset(self.rankings))
        names = tuple(techniques_of(self._variant))
        return OfferedRankings(names, of_documents=frozenset(names))

    @property
    def searches_words(self) -> bool:
        return self.rankings not in ((IMPACT,), (EPIC,))

    @property
    def needs_java(self) -> bool:
        return True

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: OnBuild = build_silently,
    ) -> Ranker:
        return self._open(self.location, '', machine)

    def ranking(self, name: str, machine: Machine) -> Ranker:
        if self.searches_words and name in self.offered.names:
            return self._open(f'{name}@{self.location}', name, machine)
        return super().ranking(name, machine)

    def _open(self, technique: str, name: str, machine: Machine) -> Ranker:
        if name not in self._opened:
            options = self.options
            if options.encoder:
                self._opened[name] = open_impacts(self.location, options.encoder)
            else:
                self._opened[name] = open_sparse(
                    technique,
                    device=machine.devices[0],
                    k1=options.k1,
                    b=options.b,
                    language=options.language,
                )
        return self._opened[name]

    @cached_property
    def _stored(self) -> LuceneSparseSearcher:
        """The reader of the documents, independent of the ranking."""
        for opened in self._opened.values():
            if isinstance(opened, LuceneSparseSearcher):
                return opened
        return LuceneSparseSearcher(self.location)

    def store(self, machine: Machine) -> DocumentStore | None:
        if self.searches_words:
            return LuceneStore(self._stored)
        for _, text in self._stored.passages():
            # As far as the first passage tells.
            return None if text is None else ImpactStore(self._stored)
        return ImpactStore(self._stored)

    def n_passages(self, machine: Machine) -> int:
        return self._stored.size

    def inputs(self) -> tuple[Input, ...]:
        return (Input('index', self.location, checksum(self.location)),)


class LuceneStore(DocumentStore):
    """The documents of a Lucene index, as they were given."""

    keeps_raws = True
    _passages: LuceneSparseSearcher

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        return self._passages.raws(docids)


class ImpactStore(DocumentStore):
    """The passages of a Lucene index of impacts; empty if they are not stored."""

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        return [text or None for text in super().texts(docids)]


def techniques_of(variant: str) -> list[str]:
    """The names of the catalog's techniques that search an index of a variant."""
    entries = catalog.entries('sparse')
    return [name for name, entry in entries.items() if entry.values['variant'] == variant]
