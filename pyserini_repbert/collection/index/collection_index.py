"""`CollectionIndex`: one generation of a collection, and the search of its documents."""

from __future__ import annotations

import copy
import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pyserini_repbert.collection.adaptation import adaptation_in_use, why_learn_again
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import Generation, open_generation, read_known
from pyserini_repbert.collection.identity import KnownCollection
from pyserini_repbert.collection.index.numbers import GenerationNumbers
from pyserini_repbert.collection.index.store import CollectionStore
from pyserini_repbert.collection.opened_models import FurtherEncoders, OpenedOnce
from pyserini_repbert.collection.rankings import (
    CollectionRanking,
    default_fusion,
    first_rankings,
    learned_rankings,
    rankings_of,
    rescoring_kind,
    searched_rankings,
    stored_rankings,
)
from pyserini_repbert.collection.searching import (
    CollectionSearcher,
    SearchSettings,
    learned_settings,
    open_collection_encoder,
)
from pyserini_repbert.data.documents import read_docids
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.numbers import DocumentNumbers
from pyserini_repbert.indexes.generations import Generations
from pyserini_repbert.indexes.kind import (
    ExplainingModel,
    Index,
    IndexKind,
    SearchOptions,
)
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.offered import OfferedRankings, ScannedRanking
from pyserini_repbert.names.building import OnBuild, build_silently
from pyserini_repbert.record import Input, checksum
from pyserini_repbert.search.adapted_folder import (
    AdaptedSearch,
    learned_fusion,
    read_adapted,
    read_query_map,
)
from pyserini_repbert.search.scans import scans

if TYPE_CHECKING:
    from pyserini_repbert.collection.field_counts import FieldCounter
    from pyserini_repbert.collection.judgments import Learning
    from pyserini_repbert.collection.searching import DocumentRanking, FilteredRanking
    from pyserini_repbert.collection.status import SourceStatus
    from pyserini_repbert.search.dense import QueryEncoder

logger = logging.getLogger(__name__)

# Filters whose rankings are kept.
_MOST_FILTERS = 32
# Fields that clients are told of.
_MOST_FIELDS = 1000


class CollectionIndex(Index):
    """The newest generation of a collection when it was opened.

    Parameters
    ----------
    kind, location, options : as in `IndexKind.open`
    before : an earlier generation, opened with the same options: shards that both have are shared,
        and so are encoders, where the models are the same

    Attributes
    ----------
    generation : does not change while the index is open
    filter : which documents count
    """

    def __init__(
        self,
        kind: IndexKind,
        location: str,
        options: SearchOptions,
        before: CollectionIndex | None = None,
    ) -> None:
        super().__init__(kind, location, options)
        shards = {} if before is None else before.generation.opened_shards
        self._query_encoder = OpenedOnce(self._open_query_encoder)
        self._further_encoders = FurtherEncoders()
        self._searcher: CollectionSearcher | None = None
        # Of all documents: an open Lucene index is for all filters.
        self._unfiltered: dict[str, DocumentRanking] = {}
        self._opening = threading.Lock()
        # Within the filter.
        self._opened: dict[str, DocumentRanking | FilteredRanking] = {}
        self._within: dict[DocumentFilter, Self] = {}
        self._lock = threading.Lock()
        self.generation: Generation = open_generation(Path(location), shards)
        if before is not None:
            self.share_encoders(before)
            # They are kept by their models.
            self._further_encoders = before._further_encoders
        try:
            self._adapted_search = self._read_adapted()
            wanted: Sequence[str] = options.rankings
            if self._adapted_search is not None and not wanted:
                wanted = learned_rankings(self.generation.settings, self._adapted_search)
            self._rankings = rankings_of(self.generation.settings, wanted)
            self._check_scan()
            self.filter = _filter_of(options, self.generation)
        except BaseException:
            self.generation.close()
            raise

    def _read_adapted(self) -> AdaptedSearch | None:
        """What the folder of `adapted` says; None without one.

        That is the collection's own folder where the options say so, with what a person set.
        """
        options = self.options
        if not (options.uses_learned or options.uses_settings):
            return None if self.adapted is None else read_adapted(self.adapted)
        folder = self.learned()
        if folder is None:
            return None
        own = read_adapted(folder)
        if options.uses_settings:
            self._take_settings(own)
        if not options.uses_learned:
            return None
        self.adapted = folder
        return own

    def _take_settings(self, own: AdaptedSearch) -> None:
        """Search with the k1, b and rerankers of the collection's own folder."""
        options = self.options
        k1 = own.k1 if options.k1 is None else options.k1
        b = own.b if options.b is None else options.b
        self.options = replace(options, k1=k1, b=b)
        if options.uses_learned:
            self.options = replace(self.options, aggregate=own.aggregate)
        self.stages = own.stages

    def _check_scan(self) -> None:
        """Raises InputError for a scan without a ranking of vectors."""
        of_vectors = {ranking.exact for ranking in self._scanned.values()}
        scan = self.options.scan
        if scan and not of_vectors & set(map(str, self._searched)):
            raise InputError(
                f"'{scan}' is for a ranking of vectors, and {' '.join(self.rankings)} was asked "
                'for: leave one out',
                parameters=(scan, 'rankings'),
            )

    @property
    def rankings(self) -> tuple[str, ...]:
        return tuple(str(ranking) for ranking in self._rankings)

    @property
    def _searched(self) -> set[str]:
        """The rankings by one model each that are searched."""
        return searched_rankings(self.generation.settings, self._rankings)

    @cached_property
    def _scanned(self) -> dict[str, ScannedRanking]:
        """The rankings whose hits a scan finds.

        The ranking of the dense vectors has the name of the scan; others put their own name before
        it.
        """
        scanned = {}
        for scan in scans():
            scanned[scan] = ScannedRanking(scan, str(CollectionRanking.DENSE))
            for kind in self.generation.settings.further_models:
                if kind.has_vectors:
                    scanned[f'{kind.ranking}-{scan}'] = ScannedRanking(scan, kind.ranking)
        return scanned

    def _exact(self, name: str) -> str:
        """The ranking of exact search whose hits a ranking has."""
        scanned = self._scanned.get(name)
        return name if scanned is None else scanned.exact

    @property
    def offered(self) -> OfferedRankings:
        settings = self.generation.settings
        stored = tuple(map(str, stored_rankings(settings)))
        first = tuple(map(str, first_rankings(settings)))
        names = (*stored, *self._scanned)
        usual = ''
        if rescoring_kind(settings) is not None:
            usual = str(CollectionRanking.RESCORED)
            names = (*stored, usual, *self._scanned)
        of_vectors = frozenset((str(CollectionRanking.DENSE), *scans()))
        return OfferedRankings(
            names,
            of_vectors=of_vectors,
            of_models=frozenset(names) - {str(CollectionRanking.BM25)},
            of_documents=frozenset(names),
            with_feedback=of_vectors,
            scanned=self._scanned,
            usual=usual,
            fused=first if len(first) > 1 else (),
        )

    def fusion_of(self, rankings: Sequence[str]) -> FusionSettings | None:
        exact = [self._exact(name) for name in rankings]
        is_twice = len(set(exact)) < len(exact)
        if len(exact) < 2 or is_twice or not set(exact) <= set(self.offered.names):
            return None
        return default_fusion(exact)

    @property
    def encoder(self) -> str:
        return self.options.encoder or self.generation.settings.encoder

    @property
    def fusion(self) -> FusionSettings:
        """How the rankings are fused: as `adapt` learned, or by the default of collections."""
        if self._adapted_search is not None:
            learned = learned_fusion(self._adapted_search)
            if learned is not None:
                return learned
        return default_fusion(self._rankings)

    @property
    def searches_vectors(self) -> bool:
        return self._rankings[0] in (CollectionRanking.DENSE, CollectionRanking.RESCORED)

    @property
    def searches_words(self) -> bool:
        return CollectionRanking.BM25 in self._searched

    def learned(self) -> str | None:
        folder = adaptation_in_use(self.generation.folder, self.generation.settings)
        return None if folder is None else str(folder)

    def why_learn_again(self, learning: Learning) -> str | None:
        return why_learn_again(self.generation, learning)

    @property
    def generation_number(self) -> int:
        return self.generation.number

    def check_successor(self, newer: Generations) -> None:
        assert newer.known is not None
        self.known.check(newer.known)

    @property
    def known(self) -> KnownCollection:
        return self.generation.known

    def has_newer(self) -> bool:
        newest = read_known(self.generation.folder)
        self.known.check(newest)
        return newest.sha256 != self.known.sha256

    def searcher(
        self,
        machine: Machine,
        fusion: FusionSettings | None = None,
        on_build: OnBuild = build_silently,
    ) -> CollectionSearcher:
        if self._searcher is None:
            options = self.options
            open_encoder = partial(self._query_encoder.get, machine.devices[0])
            if options.encoder is not None:
                # There may be none of the name that the user gives.
                open_encoder()
            query_map = None
            if self.adapted is not None and self._adapted_search is not None:
                query_map = read_query_map(
                    open_encoder(),
                    self._adapted_search,
                    folder=self.adapted,
                    dimension=self.generation.settings.dimension,
                )
            settings = SearchSettings(
                rankings=self.rankings,
                aggregation=options.aggregate,
                fusion=fusion,
                k1=options.k1,
                b=options.b,
                query_map=query_map,
                scan=options.scan,
            )
            self._searcher = self._search(open_encoder, settings, machine)
        return self._searcher.within(self.filter)

    def _search(
        self,
        open_encoder: Callable[[], QueryEncoder],
        settings: SearchSettings,
        machine: Machine,
    ) -> CollectionSearcher:
        return CollectionSearcher(
            self.generation, open_encoder, settings, machine.devices[0], self._further_encoders
        )

    def ranking(self, name: str, machine: Machine) -> DocumentRanking | FilteredRanking:
        with self._lock:
            if name not in self._opened:
                self._opened[name] = self._open_ranking(name, machine)
            return self._opened[name]

    def _open_ranking(self, name: str, machine: Machine) -> DocumentRanking | FilteredRanking:
        with self._opening:
            if name not in self._unfiltered:
                (known,) = rankings_of(self.generation.settings, [self._exact(name)])
                scan = self._scanned[name].scan if name in self._scanned else ''
                self._unfiltered[name] = self._all_documents(machine).ranking(known, scan)
        ranking = self._unfiltered[name]
        return ranking if self.filter.is_open else ranking.within(self.filter)

    def _all_documents(self, machine: Machine) -> CollectionSearcher:
        if self._searcher is None:
            self.searcher(machine)
        assert self._searcher is not None
        return self._searcher

    def taught_by(self) -> str | None:
        if self.adapted is None:
            return None
        from pyserini_repbert.collection.judging.own_settings import teacher_of

        return teacher_of(Path(self.adapted))

    def as_learned(self, folder: str, machine: Machine) -> CollectionSearcher:
        """As in `Index`. Raises MismatchError if that was learned for another encoder."""
        encoder = self._all_documents(machine).dense.query_encoder
        settings = learned_settings(encoder, folder, self.generation.settings)
        searcher = self._search(lambda: encoder, settings, machine)
        return searcher.within(self.filter)

    def is_open(self, name: str) -> bool:
        return name in self._opened

    def within(self, wanted: DocumentFilter) -> Self:
        # Refuses one that cannot be read, before anything is opened.
        wanted.mask(self.generation)
        with self._lock:
            if wanted not in self._within:
                if len(self._within) >= _MOST_FILTERS:
                    self._within.pop(next(iter(self._within)))
                other = copy.copy(self)
                other.filter = wanted
                other._opened = {}
                other._lock = threading.Lock()
                self._within[wanted] = other
            return self._within[wanted]

    def warnings(self) -> list[str]:
        return self.filter.warnings(self.generation)

    def store(self, machine: Machine) -> CollectionStore:
        return CollectionStore(self.generation)

    def numbers(self, machine: Machine) -> DocumentNumbers:
        return GenerationNumbers(self.generation, self.filter)

    def n_passages(self, machine: Machine) -> int:
        return sum(live.n_live for live in self.generation.shards)

    def n_hits(self, machine: Machine) -> int:
        return len(self.generation)

    def prepare(self, machine: Machine) -> None:
        for live in self.generation.shards:
            # Searches continue if the folder is moved away.
            live.shard.map_all()
        self._field_counter.prepare()
        has_new_encoder = not self._query_encoder.is_open
        dense = self._all_documents(machine).dense
        if has_new_encoder:
            dense.search('warm', 1)
        else:
            # The encoder reads the questions of the earlier generation's requests.
            dense.of_vectors(np.ones((1, dense.dimension), np.float32), 1)

    @cached_property
    def _field_counter(self) -> FieldCounter:
        # A search in a terminal counts nothing.
        from pyserini_repbert.collection.field_counts import FieldCounter

        return FieldCounter(self.generation)

    @property
    def explaining_model(self) -> ExplainingModel | None:
        models = self.generation.settings.further_models
        if not models:
            return None
        # The ranking that orders the best hits, if there is one.
        kind = rescoring_kind(self.generation.settings) or next(iter(models))
        model = models[kind]
        return ExplainingModel(model.encoder, kind.work.reranker_settings(model))

    def about(self) -> dict[str, Any]:
        """As in `Index`: documents, language, how its rankings are fused, and its fields.

        Of many fields, those that most documents have.
        """
        from pyserini_repbert.collection.status import source_states

        counts = self._field_counter.counts()
        names = sorted(counts, key=lambda name: (-counts[name].documents, name))[:_MOST_FIELDS]
        types = self.generation.field_types
        about: dict[str, Any] = {
            'documents': len(self.generation),
            'language': self.generation.settings.language,
            'generation': self.generation.number,
            'fields': {name: sorted(types[name]) for name in sorted(names)},
            'field_counts': {name: asdict(counts[name]) for name in sorted(names)},
            'sources': [_shown_source(state) for state in source_states(self.generation)],
        }
        rankings = first_rankings(self.generation.settings)
        if len(rankings) > 1:
            usual = default_fusion(rankings)
            about |= {
                'fusion': str(usual.method),
                'weights': list(usual.weights),
                'normalize': str(usual.normalize),
            }
        return about

    def _open_query_encoder(self, device: str) -> QueryEncoder:
        options = self.options
        return open_collection_encoder(
            self.generation, options.encoder, device, options.precision, options.max_length
        )

    def share_encoders(self, other: CollectionIndex) -> None:
        """Search with the encoders of another index, which has the same options, where the models
        are the same.

        It is called before the first search.
        """
        settings = self.generation.settings
        of_other = other.generation.settings
        if settings.model_key() == of_other.model_key():
            self._query_encoder = other._query_encoder
        if settings.further_models == of_other.further_models:
            self._further_encoders = other._further_encoders

    def inputs(self) -> tuple[Input, ...]:
        index = Input('index', self.location, self.generation.sha256)
        if self.adapted is None:
            return (index,)
        return Input('adapted', self.adapted, checksum(self.adapted)), index

    def close(self) -> None:
        if '_field_counter' in vars(self):
            self._field_counter.close()
        for ranking in self._unfiltered.values():
            ranking.close()
        if self._searcher is not None:
            self._searcher.close()
        self.generation.close()


def _filter_of(options: SearchOptions, generation: Generation) -> DocumentFilter:
    """The documents that count. Raises InputError for a file that cannot be read."""
    only_ids = None
    if options.only_ids is not None:
        only_ids = _listed_docids(options.only_ids, generation)
    not_ids: frozenset[str] = frozenset()
    if options.not_ids is not None:
        not_ids = _listed_docids(options.not_ids, generation)
    return DocumentFilter(options.filter, only_ids, not_ids)


def _listed_docids(path: str, generation: Generation) -> frozenset[str]:
    """The docids of a file; those that are not in the collection are logged."""
    docids = read_docids(path)
    docnos = generation.docnos(docids).tolist()
    unknown = [docid for docid, docno in zip(docids, docnos, strict=True) if docno < 0]
    if unknown:
        logger.warning(
            '%d of %d docids in %s are not in %s: %.80r first',
            len(unknown),
            len(docids),
            path,
            generation.folder,
            unknown[0],
        )
    return frozenset(docids)


def _shown_source(state: SourceStatus) -> dict[str, Any]:
    """What anybody may know of a source: of a path, the last part."""
    return {
        'name': os.path.basename(state.name) or state.name,
        'documents': state.documents,
        'files': state.files,
        'rows': state.rows,
        'synced': state.synced,
        'unread': state.report.unread,
    }
