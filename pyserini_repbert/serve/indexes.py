"""The indexes of a service: the rankers that search each, its passages and its topics."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pyserini_repbert import catalog
from pyserini_repbert.addresses import FILE_SCHEME
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.noted_rankings import KNOWN_HITS
from pyserini_repbert.errors import (
    InputError,
    MismatchError,
    PyseriniRepbertError,
    UnknownNameError,
)
from pyserini_repbert.fusion.fused import Fusion, look_deeper
from pyserini_repbert.indexes.documents import IndexDocuments
from pyserini_repbert.indexes.kind import Index, IndexKind, SearchOptions, kind_of
from pyserini_repbert.indexes.lucene.lucene_index import techniques_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.offered import ScannedRanking
from pyserini_repbert.indexes.stores import DocumentStore
from pyserini_repbert.lucene.index_record import built_variant
from pyserini_repbert.lucene.languages import language_of
from pyserini_repbert.lucene.query_words import word_finder
from pyserini_repbert.names.rankers import names_class
from pyserini_repbert.names.sparse import check_impact_encoder
from pyserini_repbert.pipeline.opening import open_resolved, open_searcher
from pyserini_repbert.pipeline.resolving import resolve, with_usual_fusion
from pyserini_repbert.pipeline.spec import PipelineSpec, parse_stage
from pyserini_repbert.ranking import Ranker, Ranking
from pyserini_repbert.search.adapted_folder import read_adapted
from pyserini_repbert.search.dense import QueryEncoder
from pyserini_repbert.search.feedback import VectorFeedback
from pyserini_repbert.serve.index_topics import IndexTopics
from pyserini_repbert.serve.queues import BatchedRanker, JobQueue
from pyserini_repbert.serve.refusals import OverloadedError
from pyserini_repbert.serve.settings import IndexSettings, Limits, ServeSettings

if TYPE_CHECKING:
    from pyserini_repbert.pipeline.pipeline import Texts

logger = logging.getLogger(__name__)

DENSE = 'dense'
BM25 = 'bm25'
HYBRID = 'hybrid'
ADAPTED = 'adapted'


def index_type_of(alias: str, settings: IndexSettings) -> str:
    """The type of an index by its files, in Pyserini's words: 'tf' (Lucene), 'dense' (a bundle of
    ours), 'faiss', 'impact' or 'collection'.

    Raises UnknownNameError if there is none, MismatchError if the settings name another type, and
    InputError if they have a setting that an index of this type does not take.
    """
    location = settings.location
    kind = kind_of(location)
    is_there = Path(location).is_dir() or kind.holds(Path(location))
    if not is_there and not catalog.find('indexes', location):
        near = catalog.did_you_mean(location, catalog.entries('indexes'))
        raise UnknownNameError(
            f"index '{alias}': '{location}' is neither a folder nor an index of the catalog{near}"
        )
    index_type = kind.index_type(location)
    expected = settings.index_type or index_type
    if (expected, index_type) == ('impact', 'tf'):
        # Lucene's files do not say that they hold impacts.
        _check_impacts(alias, settings)
        index_type = 'impact'
    if expected != index_type and {expected, index_type} != {'faiss', 'dense'}:
        raise MismatchError(
            f"index '{alias}' should be of type '{expected}', but {location} is of "
            f"type '{index_type}'"
        )
    _check_settings(alias, settings, kind, index_type)
    return index_type


def _check_settings(alias: str, settings: IndexSettings, kind: IndexKind, index_type: str) -> None:
    """Raises InputError for settings that an index of this kind does not take."""
    for scan in settings.scans:
        kind.check(settings.location, SearchOptions(scan=scan))
    if settings.ray and (index_type == 'faiss' or 'ray' not in kind.takes):
        raise InputError(
            f"index '{alias}' is of type '{index_type}': Ray searches dense bundles only"
        )
    if kind.finds_passages and (settings.base_index or settings.sparse):
        raise InputError(
            f"index '{alias}' is {kind.what}, which has its own rankings: leave base_index and "
            'sparse out'
        )
    if settings.writable and not kind.is_writable:
        raise InputError(
            f"index '{alias}' is of type '{index_type}': only a collection is writable"
        )
    if settings.language and index_type != 'tf' and not settings.sparse:
        raise InputError(
            f"index '{alias}' is of type '{index_type}': a language is for a Lucene index that "
            'does not say its own'
        )


def _check_impacts(alias: str, settings: IndexSettings) -> None:
    """Raises InputError for an index of another program's impacts without an encoder of queries,
    and for one that is said to have words.
    """
    if settings.encoder is None:
        raise InputError(
            f"index '{alias}' is of type 'impact', and does not name its encoder: give encoder, as "
            'MODULE:CLASS or MODULE:CLASS@MODEL'
        )
    if built_variant(Path(settings.location)):
        raise MismatchError(
            f"index '{alias}' should be of type 'impact', but {settings.location} is of type 'tf'"
        )
    check_impact_encoder(settings.encoder)


def sparse_specs(
    location: str, wanted: Sequence[str] | None, language: str | None = None
) -> dict[str, PipelineSpec]:
    """The sparse systems of a Lucene index, by name: those wanted; None: the catalog's techniques
    that fit it.

    `language` is for an index that does not say its own.
    """
    if wanted is None:
        wanted = techniques_of(built_variant(Path(location)) or BM25)
    specs = {}
    for spec in wanted:
        name = spec.partition('@')[0]
        # A technique without a separate index searches this one.
        if catalog.find('sparse', spec):
            spec = f'{spec}@{location}'
        own_language = None if names_class(name) else language
        specs[name] = PipelineSpec(sparse=(spec,), language=own_language)
    return specs


class ServedIndex:
    """An index that answers queries, each system by a ranker, which waits in a queue.

    The systems are the rankings of the index, sparse ones that the settings name or that a base
    index has, and what `adapt` wrote. Rankings by scans are among them if the settings say so.

    Parameters
    ----------
    alias : how clients call it
    settings : its location, and what is offered in addition
    service : the settings of the service
    queues : 'dense', 'java' and 'rerank'
    base : the Lucene index that gives passages and sparse systems; None: the index has its own
    before : of a collection, the same index with an earlier generation, whose encoder is shared

    Attributes
    ----------
    index : the searched index, open until `close`
    index_type : 'tf' (Lucene), 'dense', 'faiss', 'impact' or 'collection'
    beside : the sparse systems that are not rankings of the index, by name
    adapted : the folder of what `adapt` wrote, or of what a collection learned and uses; None
    systems : the names that `ranker` takes
    default : the systems of a search that names none: one ranking of the vectors, one of Lucene
    default_stages : the rerankers of such a search, which are set for a collection
    store : the documents, or passages, of the index, or of its base
    passage_finder : gives hits the passages that fit the query best; None if hits are passages
    passages : how many it holds
    hits : how many hits a ranking can have: its passages, or a collection's documents
    encoder : name of the encoder of its dense vectors; None without any, or with several
    encoder_location : of that encoder: a catalog name or a folder
    query_encoder : the encoder itself, of queries
    language : of Lucene's analyzer; None without one
    find_words : finds the words of a query in a text
    topics : its topics and their judgments
    known_to_parts : what extensions keep for further searches, until something is learned
    """

    def __init__(
        self,
        alias: str,
        settings: IndexSettings,
        service: ServeSettings,
        queues: dict[str, JobQueue],
        base: Self | None,
        before: Self | None = None,
    ) -> None:
        self.alias = alias
        self.settings = settings
        self._service = service
        self._queues = queues
        self._base = base
        self._held = contextlib.ExitStack()
        self._machine = Machine(devices=(service.device,), threads=service.threads)
        self._rankers: dict[str, BatchedRanker] = {}
        # By systems that can no longer be scanned, the rankings that are searched instead.
        self._exact: dict[str, str] = {}
        self.known_to_parts: dict[Any, Any] = {}
        self.index_type = index_type_of(alias, settings)
        self.encoder: str | None = None
        self.encoder_location = ''
        self.query_encoder: QueryEncoder | None = None
        self.index = self._open_index(before)
        self._held.callback(self.index.close)
        try:
            self.beside = self._specs_beside()
            self._open_vectors(before)
            if settings.scans:
                self._open_scanned(before)
            self._choose_systems()
            self._open_documents()
            self.topics = IndexTopics(alias, settings)
        except BaseException:
            self.close()
            raise

    def _open_index(self, before: Self | None) -> Index:
        """Open the index itself; its rankings are opened later."""
        settings = self.settings
        kind = kind_of(settings.location)
        options = SearchOptions(
            # Words have none.
            encoder=None if self.index_type == 'tf' else settings.encoder,
            precision=self._service.precision,
            language=settings.language,
            # Others are opened when they are first searched.
            rankings=(DENSE,) if 'rankings' in kind.takes else (),
            uses_settings=settings.adapted is None,
        )
        return kind.open(settings.location, options, before.index if before else None)

    def _specs_beside(self) -> dict[str, PipelineSpec]:
        """The sparse systems by name that the settings name, or that the base has."""
        settings = self.settings
        where = self._base.settings if self._base else settings
        if settings.sparse is None:
            has_others = self._base or catalog.find('indexes', settings.location)
            if not has_others or not self.index.offered.of_vectors:
                return {}
        return sparse_specs(where.location, settings.sparse, where.language)

    def _open_vectors(self, before: Self | None) -> None:
        """Open exact search of the vectors."""
        if not self.index.offered.of_vectors:
            return
        queue = self._queues['dense']
        dense: Any
        if before is None:
            dense = queue.call(self._open_dense)
        else:
            # Not in the queue, where requests to the earlier generation wait.
            dense = self._open_dense()
        self._rankers[DENSE] = BatchedRanker(dense, queue, DENSE)
        if self.index.encoder is not None:
            self.query_encoder = dense.query_encoder
            self.encoder_location = self.index.encoder
            self.encoder = Path(self.encoder_location).name

    def _open_dense(self) -> Ranker:
        machine = self._machine.model_copy(update={'threads': 1})
        if self.settings.ray:
            from pyserini_repbert.pipeline.ray_workers import ray_worker_pool

            on_gpu = self._service.device not in ('cpu', 'auto')
            workers = self._held.enter_context(ray_worker_pool(self.settings.ray, gpu=on_gpu))
            machine = machine.model_copy(update={'ray': workers})
        dense = self.index.ranking(DENSE, machine)
        # The first search is slow.
        self.index.prepare(machine)
        return dense

    def _open_scanned(self, before: Self | None) -> None:
        """Open the rankings that the scans of the settings find.

        One that an earlier generation had, and that can no longer be scanned, is searched
        exactly. Raises InputError if no ranking can be scanned.
        """
        exact_of = {
            name: ranking.exact
            for name, ranking in self.index.offered.scanned.items()
            if ranking.scan in self.settings.scans
        }
        refusals = {}
        for name, exact in exact_of.items():
            try:
                ranker = self.index.ranking(name, self._machine)
            except InputError as error:
                refusals[name] = error
            else:
                self._rankers[name] = BatchedRanker(ranker, self.ranker(exact).queue, name)
        if before is None and not exact_of.keys() - refusals.keys():
            raise next(iter(refusals.values()))
        for name, refusal in refusals.items():
            if before is None:
                logger.warning("index '%s' answers without '%s': %s", self.alias, name, refusal)
            elif name in before.systems:
                logger.warning("index '%s' is searched exactly: %s", self.alias, refusal)
                self._exact[name] = exact_of[name]
                ranker = self.ranker(exact_of[name])
                self._rankers[name] = BatchedRanker(ranker.ranker, ranker.queue, name)

    def _choose_systems(self) -> None:
        """Decide which systems there are, and which of them answer if none is named."""
        usual = self._usual_systems()
        learned = self.index.learned()
        self.adapted = self.settings.adapted or learned
        if self.adapted:
            self._open_adapted(self.adapted)
        self.systems = self._list_systems()
        # The user's own classes answer only if they are named.
        self._searchers = [name for name in self.systems if not names_class(name)]
        if not self._searchers:
            raise InputError(f"index '{self.alias}' has nothing to search")
        self._open_named_systems()
        opened = [name for name in usual if self.opens(name)]
        if self.adapted and self.adapted == learned:
            # People have chosen that the collection is searched so.
            opened = [ADAPTED]
        self.default = tuple(opened or self._searchers[:1])
        self.default_stages = tuple(parse_stage(stage) for stage in self.index.stages)

    def _usual_systems(self) -> list[str]:
        """The ranking that the index names, or one of vectors and one of Lucene."""
        if self.index.offered.usual and self.settings.sparse is None:
            return [self.index.offered.usual]
        of_vectors = self.index.offered.of_vectors
        known = [*self._own_systems(), *self.beside]
        vectors = [name for name in known if name in of_vectors]
        others = [name for name in known if name not in of_vectors]
        return [*vectors[:1], *others[:1]]

    def _open_documents(self) -> None:
        """Open what the index stores, and count it."""
        if not self._rankers:
            self.ranker(self._searchers[0])
        machine = self._machine
        self.store = self._stored()
        self.passage_finder: Ranker | None = None
        if self.index.kind.finds_passages:
            finder = self.index.searcher(machine)
            self.passage_finder = BatchedRanker(finder, self._queues['dense'], self.alias)
        self.passages = self.index.n_passages(machine)
        self.hits = self.index.n_hits(machine)
        self.language = self._language()
        self.find_words = word_finder(self.language)

    def _stored(self) -> DocumentStore:
        """The stored documents: the base's, otherwise the index's.

        Raises InputError without passages.
        """
        if self._base is not None:
            return self._base.store
        store = self.index.store(self._machine)
        if store is None:
            raise InputError(
                f"index '{self.alias}' stores no passages: name the Lucene index that does as its "
                f'base_index'
            )
        return store

    def _language(self) -> str | None:
        """The language of the first system that reads words; None if none is open."""
        for ranker in self._rankers.values():
            language = language_of(ranker.ranker)
            if language is not None:
                return language
        return None

    def _list_systems(self) -> tuple[str, ...]:
        """The rankings of the index, then those beside it, then what `adapt` wrote."""
        systems = (*self._own_systems(), *self.beside)
        if self.adapted:
            systems += (ADAPTED,)
        return systems

    def _own_systems(self) -> list[str]:
        """The rankings of the index, including the rankings of open scans."""
        if self.settings.sparse is not None and self.index.searches_words:
            return []
        offered = self.index.offered
        return [
            name for name in offered.names if name not in offered.scanned or name in self._rankers
        ]

    @property
    def scanned(self) -> dict[str, ScannedRanking]:
        """By name, the systems whose hits a scan finds."""
        known = self.index.offered.scanned
        return {name: known[name] for name in self.systems if name in known}

    def _open_adapted(self, folder: str) -> None:
        """Open what `adapt` wrote, as one system; with a reranker, it works in the queue of
        rerankers.
        """
        settings = self.settings
        # A collection's own reranker is a stage of the search.
        has_reranker = bool(read_adapted(folder).stages) and folder == settings.adapted
        queue = self._queues['rerank' if has_reranker else 'java']

        def open_learned() -> Ranker:
            if not has_reranker:
                learned = self.index.as_learned(folder, self._machine)
                if learned is not None:
                    return look_deeper(learned, KNOWN_HITS)
            spec = PipelineSpec(adapted=folder, index=settings.location, encoder=settings.encoder)
            # The classes that the operator names: the folder may name no other.
            allowed = [name.partition('@')[0] for name in settings.sparse or ()]
            allowed += self._service.rerankers or ()
            resolved = resolve(spec, self._machine, allowed)
            return open_resolved(resolved, self._machine).pipeline

        ranker = queue.call(open_learned)
        self._held.callback(ranker.close)
        is_fusion = isinstance(ranker, Fusion)
        self._rankers[ADAPTED] = BatchedRanker(ranker, queue, ADAPTED, keeps_parts=is_fusion)

    def _open_sparse(self, system: str) -> None:
        if system not in self._rankers:
            if system in self.beside:
                searcher = open_searcher(self.beside[system], self._machine)
            else:
                searcher = self.index.ranking(system, self._machine)
                searcher = searcher.with_settings(threads=self._machine.threads)
            self._held.callback(searcher.close)
            # The hits that it scores again decide how reliable they are.
            is_usual = system == self.index.offered.usual
            self._rankers[system] = BatchedRanker(
                searcher, self._queues['java'], system, keeps_parts=is_usual
            )

    def _open_named_systems(self) -> None:
        """Open the sparse systems that the settings name: one that cannot be opened fails at the
        start, not at the first query.
        """
        if self.settings.sparse:
            for name in self.beside:
                self.ranker(name)

    def opens(self, name: str) -> bool:
        """Whether a system can be opened; vectors are searched without Java, too."""
        try:
            self.ranker(name)
        except OverloadedError:
            raise
        except PyseriniRepbertError as error:
            if not self._rankers:
                raise
            logger.warning("index '%s' answers without '%s': %s", self.alias, name, error)
            return False
        return True

    def has_newer_version(self) -> bool:
        """Whether another generation of the collection is published, or another adaptation is in
        use; False of other indexes.

        Raises LostCollectionError if the folder no longer holds the collection.
        """
        if self.index.has_newer():
            return True
        return not self.settings.adapted and self.adapted != self.index.learned()

    def shown_address(self, address: str) -> str:
        """An address of a document as clients get it; '' for a file that is not theirs."""
        if address.startswith(FILE_SCHEME) and not self._service.shows_files:
            return ''
        return address

    def searchable_systems(self) -> list[str]:
        """The rankings that can be opened here, without the user's own classes."""
        names = [name for name in self.systems if not names_class(name)]
        return [name for name in names if self.opens(name)]

    def close(self) -> None:
        """Release the workers of a Ray cluster, and the index."""
        self._held.close()

    def with_usual_fusion(self, spec: PipelineSpec, systems: Sequence[str]) -> PipelineSpec:
        """The spec, with the index's own fusion where a client names none.

        Systems that are not the rankings that the index fuses are fused as elsewhere.
        """
        usual = self.index.fusion_of(systems)
        return spec if usual is None else with_usual_fusion(spec, usual)

    def resolve_systems(self, names: Sequence[str]) -> tuple[str, ...]:
        """The systems of a request: the default for none; for 'hybrid', dense and BM25, or all
        rankings of a collection.

        Raises UnknownNameError for an unknown system, InputError for one given twice.
        """
        hybrid = self.index.offered.fused or (DENSE, BM25)
        systems: list[str] = []
        for name in names or self.default:
            systems += hybrid if name == HYBRID else (name,)
        for name in systems:
            if name not in self.systems:
                near = catalog.did_you_mean(name, self.systems)
                raise UnknownNameError(
                    f"index '{self.alias}' has no system '{name[:60]}'{near}: "
                    f'it has {", ".join(self.systems)}'
                )
        for name in systems:
            if systems.count(name) > 1:
                raise InputError(f"system '{name}' was given twice")
        return tuple(systems)

    @property
    def _reranks_adapted(self) -> bool:
        """Whether what `adapt` wrote is more than a search of the index."""
        adapted = self._rankers.get(ADAPTED)
        return adapted is not None and not hasattr(adapted.ranker, 'within')

    @property
    def document_systems(self) -> tuple[str, ...]:
        """The systems that take a document instead of a question."""
        names = []
        for name in self.systems:
            is_able = name in self.index.offered.of_documents
            if name in self.beside:
                is_able = not names_class(name)
            elif name == ADAPTED:
                is_able = not self._reranks_adapted
            if is_able:
                names.append(name)
        return tuple(names)

    def encodes_queries(self, system: str) -> bool:
        """Whether a model reads the queries of a system."""
        return system == ADAPTED or system in self.index.offered.of_models

    def forget_learned(self) -> None:
        """Make extensions read again what the collection learned, when they are asked."""
        self.known_to_parts.clear()

    def check_filter(self, text: str | None, systems: Sequence[str]) -> None:
        """Raises InputError for an unreadable filter, and for any if this is not a collection."""
        if text is None:
            return
        if 'filter' not in self.index.kind.takes:
            raise InputError(
                f"index '{self.alias}' is not a collection: a filter needs documents with fields"
            )
        if ADAPTED in systems and self._reranks_adapted:
            raise InputError(
                f"system '{ADAPTED}' has a reranker, and no filter: name the rankings of the index"
            )
        self.index.within(DocumentFilter(text))

    def filter_warnings(self, text: str | None) -> list[str]:
        """What to tell a client about a filter that `check_filter` accepts."""
        if text is None:
            return []
        return self.index.within(DocumentFilter(text)).warnings()

    def check_feedback(self, text: str | None, systems: Sequence[str], limits: Limits) -> None:
        """Raises InputError for feedback that cannot be read, is too deep, or has no dense ranking
        whose vectors are at hand.
        """
        if text is None:
            return
        feedback = VectorFeedback.parse(text)
        if feedback.depth > limits.hits:
            raise InputError(
                f"'prf' reads {feedback.depth} hits of a query, expected at most {limits.hits}"
            )
        if not self.index.offered.of_vectors.intersection(systems):
            raise InputError(
                "'prf' is feedback of a dense ranking, and none is asked: name system 'dense', or "
                "'bm25+rm3' for feedback of BM25"
            )
        if not self.index.offered.with_feedback:
            raise InputError(
                f"index '{self.alias}' is a FAISS folder, and 'prf' takes the vectors of a bundle"
            )

    def ranker(self, system: str, settings: PipelineSpec | None = None) -> BatchedRanker:
        """The ranker of a system, opened if it is not yet.

        Parameters
        ----------
        system : its name
        settings : `k1` and `b` of BM25, `filter` of a collection, `prf` of vectors; None: the
            index's own
        """
        if system not in self._rankers:
            self._queues['java'].call(lambda: self._open_sparse(system))
        ranker = self._rankers[system]
        if settings is None:
            return ranker
        changed: Any = ranker.ranker
        constants = settings.bm25_constants
        if constants:
            changed = changed.with_settings(settings=replace(changed.settings, **constants))
        if settings.filter is not None:
            changed = self._within(settings.filter, changed, ranker, is_usual=not constants)
        if settings.prf is not None and system in self.index.offered.of_vectors:
            changed = changed.with_settings(feedback=VectorFeedback.parse(settings.prf))
        if changed is ranker.ranker:
            return ranker
        return BatchedRanker(changed, ranker.queue, system, ranker.keeps_parts)

    def _within(self, text: str, changed: Any, ranker: BatchedRanker, is_usual: bool) -> Ranker:
        """A ranking among the documents that a filter lets through.

        Parameters
        ----------
        text : the filter
        changed : the ranking, with the settings of the request
        ranker : the system's, in whose queue it is opened
        is_usual : whether it has the settings of the index; requests share it then
        """
        wanted = DocumentFilter(text)
        within: Ranker
        if not is_usual or ranker.name not in self.index.offered.names:
            within = ranker.queue.call(lambda: changed.within(wanted))
            return within
        index = self.index.within(wanted)
        name = self._exact.get(ranker.name, ranker.name)
        if index.is_open(name):
            return index.ranking(name, self._machine)
        within = ranker.queue.call(lambda: index.ranking(name, self._machine))
        return within

    def holds(self, docid: str, systems: Sequence[str]) -> bool:
        """Whether systems search a document of this docid; a collection has some without text."""
        if self.passage_finder is not None:
            return self.passage_finder.holds(docid)
        return any(self.ranker(system).holds(docid) for system in systems)

    def source_for(self, like: str | None) -> Texts:
        """What gives a pipeline the texts of hits.

        For a collection, they are the passages that fit the query best. If `like` is given, the
        query is a document.
        """
        if self.passage_finder is None:
            return self.store
        if like is None:
            return self.passage_finder
        return self.passage_finder.by_documents()

    def documents(self, text: str | None) -> IndexDocuments:
        """The documents that rerankers read beside a ranking; `text` is the filter of a search."""
        index = self.index
        if text is not None:
            index = index.within(DocumentFilter(text))
        return IndexDocuments(index, self._machine, self.with_texts)

    def with_texts(self, query: str, ranking: Ranking, n_excerpts: int = 1) -> Ranking:
        """The hits with their texts: of documents, the passages that fit the query best.

        A hit that the index lacks has none. `n_excerpts` is how many passages a document has.
        """
        if self.passage_finder is not None:
            ranking = self.passage_finder.with_stored_texts(query, ranking, n_excerpts)
        return self._with_whole_texts(ranking)

    def with_shown_texts(self, query: str, ranking: Ranking) -> Ranking:
        """The hits with their texts: of documents, the passage that a person is shown."""
        if self.passage_finder is not None:
            ranking = self.passage_finder.with_shown_texts(query, ranking)
        return self._with_whole_texts(ranking)

    def _with_whole_texts(self, ranking: Ranking) -> Ranking:
        texts = self.store.texts(ranking.docids)
        return ranking.with_texts(dict(zip(ranking.docids, texts, strict=True)))
