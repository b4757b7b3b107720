"""`LuceneIndex`: a Lucene index, searched as its own record says."""

from __future__ import annotations

from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.manifest import missing_manifest
from pyserini_repbert.indexes.kind import Building, Index, IndexKind, SearchOptions
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.names.sparse import names_impact_encoder, open_impacts, open_sparse
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.record import Input, checksum

WORDS = 'bm25'
IMPACTS = 'impact'


class LuceneIndex(Index):
    """A Lucene index of words or of impacts.

    Raises InputError for an encoder of vectors, which no Lucene index has.
    """

    def __init__(self, kind: IndexKind, location: str, options: SearchOptions) -> None:
        super().__init__(kind, location, options)
        if options.encoder and not names_impact_encoder(options.encoder):
            raise missing_manifest(location)

    @property
    def rankings(self) -> tuple[str, ...]:
        return (IMPACTS if self.options.encoder else WORDS,)

    @property
    def searches_words(self) -> bool:
        return not self.options.encoder

    @property
    def needs_java(self) -> bool:
        return True

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: Building = lambda index: int,
    ) -> Ranker:
        options = self.options
        if options.encoder:
            return open_impacts(self.location, options.encoder)
        return open_sparse(
            self.location,
            device=machine.devices[0],
            k1=options.k1,
            b=options.b,
            language=options.language,
        )

    def inputs(self) -> tuple[Input, ...]:
        return (Input('index', self.location, checksum(self.location)),)
