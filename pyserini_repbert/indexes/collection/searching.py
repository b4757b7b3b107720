"""`CollectionIndex`: one generation of a collection, and the search of its documents."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.collection.adaptation import adaptation_in_use
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.reading import Generation, open_generation
from pyserini_repbert.collection.searching import (
    CollectionRanking,
    CollectionSearcher,
    SearchSettings,
    default_fusion,
    open_collection_encoder,
    rankings_of,
)
from pyserini_repbert.collection.shards import PassageShard
from pyserini_repbert.data.documents import read_docids
from pyserini_repbert.encode.term_weights import TermWeightsEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.indexes.kind import Building, Index, IndexKind, SearchOptions
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.record import Input, checksum
from pyserini_repbert.search.adapted_folder import learned_fusion, read_adapted, read_query_map
from pyserini_repbert.search.dense import QueryEncoder


class CollectionIndex(Index):
    """The newest generation of a collection when it was opened.

    Parameters
    ----------
    kind, location, options : as of `IndexKind.open`
    before : an earlier generation, opened with the same options: shards that both have are shared,
        and so are encoders, where the models are the same

    Attributes
    ----------
    generation : stays as it is while the index is open
    """

    def __init__(
        self,
        kind: IndexKind,
        location: str,
        options: SearchOptions,
        before: CollectionIndex | None = None,
    ) -> None:
        super().__init__(kind, location, options)
        shards: dict[str, PassageShard] = {}
        if before is not None:
            shards = {live.shard.name: live.shard for live in before.generation.shards}
        self._before = before
        self._searcher: CollectionSearcher | None = None
        self.generation: Generation = open_generation(Path(location), shards)
        try:
            self._rankings = rankings_of(self.generation.settings, options.rankings)
            self._check_approximate()
            if options.uses_learned:
                self.adapted = self.learned()
        except BaseException:
            self.generation.close()
            raise

    def _check_approximate(self) -> None:
        """Raises InputError for an approximate search without the dense ranking."""
        if self.options.ann and CollectionRanking.DENSE not in self._rankings:
            raise InputError(
                f'an approximate index is of the dense ranking, and {" ".join(self.rankings)} was '
                'asked for: leave one out',
                parameters=('ann', 'rankings'),
            )

    @property
    def rankings(self) -> tuple[str, ...]:
        return tuple(str(ranking) for ranking in self._rankings)

    @property
    def fusion(self) -> FusionSettings:
        """How the rankings are fused: as `adapt` learned, or by the default of collections."""
        if self.adapted is not None:
            learned = learned_fusion(read_adapted(self.adapted))
            if learned is not None:
                return learned
        return default_fusion(self._rankings)

    @property
    def searches_words(self) -> bool:
        return CollectionRanking.BM25 in self._rankings

    def learned(self) -> str | None:
        """The folder of what the collection learned, if it is in use; None if not."""
        folder = adaptation_in_use(self.generation.folder, self.generation.settings)
        return None if folder is None else str(folder)

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: Building = lambda index: int,
    ) -> CollectionSearcher:
        options = self.options
        device = machine.devices[0]
        encoder = self._query_encoder(device)
        query_map = None
        if self.adapted is not None:
            dimension = self.generation.settings.dimension
            query_map = read_query_map(encoder, self.adapted, dimension)
        settings = SearchSettings(
            rankings=self.rankings,
            aggregation=options.aggregate,
            fusion=fusion,
            k1=options.k1,
            b=options.b,
            query_map=query_map,
            ann=options.ann,
        )
        searcher = CollectionSearcher(
            self.generation, encoder, settings, device, self._sparse_encoder()
        )
        self._searcher = searcher.within(self._filter())
        # What it shares is taken; the earlier generation may be closed.
        self._before = None
        return self._searcher

    def ranking(self, name: str, machine: Machine) -> Ranker:
        (ranking,) = rankings_of(self.generation.settings, [name])
        searcher = self._searcher or self.searcher(machine)
        return searcher.ranking(ranking)

    def _filter(self) -> DocumentFilter:
        """The documents that count. Raises InputError for a file that cannot be read."""
        only_ids = None
        if self.options.only_ids is not None:
            only_ids = frozenset(read_docids(self.options.only_ids))
        not_ids: frozenset[str] = frozenset()
        if self.options.not_ids is not None:
            not_ids = frozenset(read_docids(self.options.not_ids))
        return DocumentFilter(self.options.filter, only_ids, not_ids)

    def _query_encoder(self, device: str) -> QueryEncoder:
        """The dense encoder of queries; the earlier generation's, if the model is the same."""
        settings = self.generation.settings
        searcher = self._before and self._before._searcher
        if searcher and searcher.generation.settings.model_key() == settings.model_key():
            return searcher.dense.query_encoder
        options = self.options
        return open_collection_encoder(
            self.generation, options.encoder, device, options.precision, options.max_length
        )

    def _sparse_encoder(self) -> TermWeightsEncoder | None:
        """The earlier generation's learned sparse model, if it is the same; else None."""
        searcher = self._before and self._before._searcher
        key = self.generation.settings.sparse_key
        if not searcher or searcher.generation.settings.sparse_key != key:
            return None
        return searcher.sparse_encoder

    def inputs(self) -> tuple[Input, ...]:
        index = Input('index', self.location, self.generation.sha256)
        if self.adapted is None:
            return (index,)
        return Input('adapted', self.adapted, checksum(self.adapted)), index

    def close(self) -> None:
        self.generation.close()
