"""Searching a collection: its rankings of documents, fused, and the passages that answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.excerpts import only_excerpts
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.opened_models import FurtherEncoders, OpenedOnce
from pyserini_repbert.collection.rankings import (
    CollectionRanking,
    check_ranking,
    default_fusion,
    first_rankings,
    learned_rankings,
    rankings_of,
    rescoring_kind,
    searched_rankings,
)
from pyserini_repbert.collection.settings import CollectionSettings
from pyserini_repbert.extension import Representation, representations
from pyserini_repbert.files import StrPath
from pyserini_repbert.fusion.fused import Fusion
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.ranking import (
    Excerpts,
    QueryRewriting,
    Ranker,
    Ranking,
)
from pyserini_repbert.search.adapted_folder import (
    learned_fusion,
    read_adapted,
    read_query_map,
)
from pyserini_repbert.search.aggregation import PassageAggregation

if TYPE_CHECKING:
    from pyserini_repbert.collection.bm25_search import Bm25DocumentSearcher, FilteredBm25
    from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
    from pyserini_repbert.collection.representation_search import RepresentationSearcher
    from pyserini_repbert.collection.rescoring import RescoredSearcher
    from pyserini_repbert.encode.text_encoder import TextEncoder
    from pyserini_repbert.search.dense import QueryEncoder

    # A ranking of a generation's documents: `within` restricts it.
    DocumentRanking = (
        DenseDocumentSearcher | RepresentationSearcher | Bm25DocumentSearcher | RescoredSearcher
    )
    FilteredRanking = (
        DenseDocumentSearcher | RepresentationSearcher | FilteredBm25 | RescoredSearcher
    )


# Filters of a searcher whose documents are kept.
_MOST_FILTERS = 32


@dataclass(frozen=True)
class SearchSettings:
    """How a collection is searched.

    Attributes
    ----------
    rankings : those that are fused, in this order; none: the usual ones of the collection
    aggregation : how passages' scores become document scores
    fusion : how the rankings are fused; None: `default_fusion`
    k1, b : of BM25; None: 0.9 and 0.4
    query_map : learned from judgments, float32 (d, d), as in `VectorSearcher`
    scan : the name of the scan that finds passages by their vectors; '': exact search
    """

    rankings: Sequence[str] = ()
    aggregation: PassageAggregation | str = PassageAggregation.MAX
    fusion: FusionSettings | None = None
    k1: float | None = None
    b: float | None = None
    query_map: NDArray[np.float32] | None = None
    scan: str = ''

    def __post_init__(self) -> None:
        PassageAggregation(self.aggregation)
        for ranking in self.rankings:
            check_ranking(ranking)


def learned_settings(
    query_encoder: QueryEncoder, folder: StrPath, collection: CollectionSettings
) -> SearchSettings:
    """How a collection is searched by what `adapt` learned.

    Parameters
    ----------
    query_encoder : the collection's
    folder : what `adapt` wrote
    collection : the collection's settings

    Raises MismatchError if it was learned for another encoder.
    """
    adapted = read_adapted(folder)
    query_map = read_query_map(
        query_encoder, adapted, folder=folder, dimension=collection.dimension
    )
    return SearchSettings(
        rankings=learned_rankings(collection, adapted),
        aggregation=adapted.aggregate,
        fusion=learned_fusion(adapted),
        k1=adapted.k1,
        b=adapted.b,
        query_map=query_map,
    )


class CollectionSearcher(Fusion, recorded_as='CollectionSearcher'):
    """Searches the documents of a collection's generation by all its rankings.

    A hit's `excerpts` are the passages that fit the query best by their vectors, no matter which
    ranking found the hit. The search of passages, and with it PyTorch, is opened when it is first
    asked for: BM25 alone does not need it, unless a hit has several passages.

    Parameters
    ----------
    generation : is closed with the searcher
    open_encoder : opens the collection's encoder, for queries
    settings : what is searched, and how
    device : where vectors are multiplied
    further_encoders : opens the encoders of further models when their rankings are asked for

    Attributes
    ----------
    further_encoders : as given
    searched : the rankings that are searched, those below another one included
    filter : which documents count
    """

    has_excerpts = True
    # Getting a few hits from Lucene takes less time than starting a thread.
    _searches_in_turn = True
    # Whether questions are searched, or documents (`by_documents`).
    _has_questions = True

    def __init__(
        self,
        generation: Generation,
        open_encoder: Callable[[], QueryEncoder],
        settings: SearchSettings | None = None,
        device: str = 'cpu',
        further_encoders: FurtherEncoders | None = None,
    ) -> None:
        settings = settings or SearchSettings()
        rankings = rankings_of(generation.settings, settings.rankings)
        self.generation = generation
        self.further_encoders = further_encoders or FurtherEncoders()
        self._search_settings = settings
        searched = searched_rankings(generation.settings, rankings)
        dense_scan = settings.scan if CollectionRanking.DENSE in searched else ''
        self._scans_dense = bool(dense_scan)
        self.searched = searched

        # Without a reference to this searcher, which would otherwise never be freed.
        def open_dense() -> DenseDocumentSearcher:
            from pyserini_repbert.collection.dense_search import DenseDocumentSearcher

            dense = DenseDocumentSearcher(
                generation, open_encoder(), device, settings.aggregation, dense_scan
            )
            name = Path(dense.name).name
            return dense.with_settings(name=name, query_map=settings.query_map)

        # Copies of this searcher share it.
        self._dense = OpenedOnce(open_dense)
        # Their scores among all documents.
        self._all_parts = tuple(self.ranking(ranking) for ranking in rankings)
        super().__init__(self._all_parts, settings.fusion or default_fusion(rankings))
        self.name = generation.folder.name
        self.filter = DocumentFilter()
        self._filtered: dict[DocumentFilter, tuple[Ranker, ...]] = {}

    @property
    def dense(self) -> DenseDocumentSearcher:
        """The search of passages, also where the dense ranking is not asked for."""
        return self._dense.get()

    def ranking(self, ranking: str, scan: str = '') -> DocumentRanking:
        """A ranking of all documents, whether or not it is among the parts.

        With the name of a scan, that finds passages, whatever the settings say. Raises InputError
        if they cannot be scanned so.
        """
        ranking = check_ranking(ranking)
        settings = self._search_settings
        if ranking == CollectionRanking.DENSE:
            return self.dense.with_scan(scan) if scan else self.dense
        if ranking == CollectionRanking.RESCORED:
            return self._rescored_ranking()
        for kind in representations():
            if kind.ranking == ranking:
                further = self._further_ranking(kind)
                name = scan or settings.scan
                return further.with_scan(name) if name and kind.has_vectors else further
        return self._ranking_of_words()

    def _ranking_of_words(self) -> Bm25DocumentSearcher:
        from pyserini_repbert.collection.bm25_search import Bm25DocumentSearcher
        from pyserini_repbert.lucene.sparse_settings import SparseSettings

        settings = self._search_settings
        usual = SparseSettings()
        words = SparseSettings(
            k1=usual.k1 if settings.k1 is None else settings.k1,
            b=usual.b if settings.b is None else settings.b,
            language=self.generation.settings.language,
        )
        searcher = Bm25DocumentSearcher(self.generation, words)
        return searcher.with_settings(name=CollectionRanking.BM25.value)

    def _rescored_ranking(self) -> RescoredSearcher:
        from pyserini_repbert.collection.rescoring import RescoredSearcher

        kind = rescoring_kind(self.generation.settings)
        assert kind is not None
        rankings = first_rankings(self.generation.settings)
        parts = [self.ranking(ranking) for ranking in rankings]
        fusion = Fusion(parts, default_fusion(rankings))
        fusion = fusion.with_settings(_searches_in_turn=self._searches_in_turn)
        searcher = RescoredSearcher(fusion, self._further_ranking(kind))
        return searcher.with_settings(name=CollectionRanking.RESCORED.value)

    def _further_ranking(self, kind: Representation) -> RepresentationSearcher:
        from pyserini_repbert.collection.representation_search import RepresentationSearcher

        searcher = RepresentationSearcher(
            self.generation,
            kind,
            vectors=self.dense.vectors,
            query_encoder=self.further_encoders.get(self.generation, kind, self.dense.device_name),
            aggregation=self._search_settings.aggregation,
        )
        return searcher.with_settings(name=kind.ranking)

    @property
    def words(self) -> Bm25DocumentSearcher | None:
        """BM25 of all documents, if it is among the rankings."""
        if CollectionRanking.BM25 not in self.searched:
            return None
        from pyserini_repbert.collection.bm25_search import Bm25DocumentSearcher

        for part in self._all_parts:
            for leaf in part.leaves():
                if isinstance(leaf, Bm25DocumentSearcher):
                    return leaf
        return None

    def within(self, wanted: DocumentFilter) -> Self:
        """The same search among the documents that a filter lets through.

        Each ranking ranks only the documents that the filter lets through, and then the rankings
        are fused. So there are k documents where a ranking has k. A filter is evaluated once for a
        generation. Raises InputError for a filter that cannot be read, or names a field that is not
        there.
        """
        if wanted.is_open:
            return self
        if wanted not in self._filtered:
            if len(self._filtered) >= _MOST_FILTERS:
                self._filtered.pop(next(iter(self._filtered)))
            self._filtered[wanted] = tuple(part.within(wanted) for part in self._all_parts)
        return self.with_settings(parts=self._filtered[wanted], filter=wanted)

    def with_query_map(self, query_map: NDArray[np.float32]) -> CollectionSearcher:
        """The same search with another map of the dense ranking's queries."""
        dense = self.dense
        searcher = CollectionSearcher(
            self.generation,
            lambda: dense.query_encoder,
            replace(self._search_settings, query_map=query_map),
            dense.device_name,
            self.further_encoders,
        )
        return searcher.within(self.filter)

    def by_documents(self) -> Self:
        """As in `Ranker`: a document is searched by the mean of its passages' vectors, and by its
        best terms or their mean weights; its hits have the passages that are nearest to that mean.
        """
        return self.with_settings(
            parts=tuple(part.by_documents() for part in self.parts),
            _dense=OpenedOnce(lambda: self.dense.by_documents()),
            _all_parts=tuple(part.by_documents() for part in self._all_parts),
            _filtered={},
            _has_questions=False,
        )

    def with_rewriting(self, rewriting: QueryRewriting) -> Self:
        return self.with_settings(
            parts=tuple(part.with_rewriting(rewriting) for part in self.parts),
            _all_parts=tuple(part.with_rewriting(rewriting) for part in self._all_parts),
            _filtered={},
        )

    def warnings(self, query: str) -> list[str]:
        """As in `Ranker`; if no document matches the filter, only that."""
        return self.filter.warnings(self.generation) or super().warnings(query)

    def holds(self, docid: str) -> bool:
        """Whether there is a document of this docid, with or without text."""
        return bool(self.generation.docnos([docid])[0] >= 0)

    def __len__(self) -> int:
        """How many documents there are, those without text included."""
        return len(self.generation)

    def identity(self) -> Mapping[str, Any]:
        scanned = {}
        if self._scans_dense:
            assert self.dense.scan is not None
            scanned[self.dense.scan.name] = self.dense.scan.sha256
        return {
            **super().identity(),
            'generation': self.generation.sha256,
            'aggregation': str(PassageAggregation(self._search_settings.aggregation)),
            'method': str(self.settings.method),
            'weights': self.settings.weights,
            'normalize': str(self.settings.normalize),
            'filter': repr(self.filter),
            **scanned,
        }

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Whole documents: title and text, joined by a space."""
        return self.generation.texts(docids)

    def with_stored_texts(self, query: str, ranking: Ranking, n_excerpts: int = 1) -> Ranking:
        """The hits with the passages of each that fit the query best."""
        excerpts = self._only_excerpts(query, ranking)
        if excerpts is None:
            excerpts = self.dense.excerpts(query, ranking.docids, n_excerpts)
        return ranking.with_excerpts(excerpts)

    def with_shown_texts(self, query: str, ranking: Ranking) -> Ranking:
        if not self._has_questions:
            # A docid says nothing about passages.
            return self.with_stored_texts(query, ranking)
        excerpts = self._only_excerpts(query, ranking)
        if excerpts is None:
            excerpts = self.dense.answering_excerpts(query, ranking.docids)
        return ranking.with_excerpts(excerpts)

    def _only_excerpts(self, query: str, ranking: Ranking) -> dict[str, Excerpts] | None:
        """The only passage of each hit; None if one has several, or vectors are open.

        To open them takes longer than to see that there is nothing to choose.
        """
        if self._dense.is_open:
            return None
        return only_excerpts(self.generation, query, ranking.docids)

    def close(self) -> None:
        super().close()
        self.generation.close()


def open_collection_encoder(
    generation: Generation,
    name: str | None = None,
    device: str = 'cpu',
    precision: Precision | str = 'float32',
    max_length: int | None = None,
    open_encoder: TextEncoder | None = None,
) -> QueryEncoder:
    """The encoder of queries for a collection.

    Parameters
    ----------
    generation : of the collection
    name : catalog name or checkpoint folder; default: the one that the collection names
    device : where it runs
    precision, max_length : as in `RepBertQueryEncoder`
    open_encoder : of passages, if it is open; it is shared if it has the same model
    """
    from pyserini_repbert.systems.encoders import query_encoder as open_query_encoder, stored_name

    settings = {
        'precision': Precision(precision),
        'max_length': max_length,
        'open_encoder': open_encoder,
    }
    if name:
        return open_query_encoder(name, device, **settings)
    with stored_name(f'collection {generation.folder}'):
        return open_query_encoder(generation.settings.encoder, device, **settings)
