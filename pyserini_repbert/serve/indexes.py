"""The indexes of a service: the rankers that search each, its passages, topics and judgments."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from pyserini_repbert import catalog
from pyserini_repbert.collection.adaptation import adaptation_in_use
from pyserini_repbert.collection.reading import read_known
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import (
    InputError,
    MismatchError,
    MissingResourceError,
    PyseriniRepbertError,
    UnknownNameError,
)
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.lucene.analysis import word_finder
from pyserini_repbert.lucene.impacts import ImpactSearcher
from pyserini_repbert.lucene.indexer import is_lucene_index
from pyserini_repbert.lucene.languages import language_of
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import EPIC_IMPACT, built_variant
from pyserini_repbert.names.impacts import is_impact_bundle
from pyserini_repbert.names.rankers import names_class
from pyserini_repbert.names.sparse import check_impact_encoder
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.pipeline.opening import open_resolved, open_searcher
from pyserini_repbert.pipeline.pipeline import Texts
from pyserini_repbert.pipeline.resolving import resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Ranker, Ranking
from pyserini_repbert.search.adapted_folder import read_adapted
from pyserini_repbert.search.dense import DenseSearcher, QueryEncoder
from pyserini_repbert.search.feedback import VectorFeedback
from pyserini_repbert.serve.collections import ServedCollection
from pyserini_repbert.serve.queues import BatchedRanker, JobQueue
from pyserini_repbert.serve.refusals import OverloadedError
from pyserini_repbert.serve.settings import IndexSettings, Limits, ServeSettings

logger = logging.getLogger(__name__)

DENSE = 'dense'
ANN = 'ann'
HYBRID = 'hybrid'
BM25 = 'bm25'
SPARSE = 'sparse'
COLLECTION = 'collection'
IMPACT = 'impact'
ADAPTED = 'adapted'
# The rankings of vectors, which take feedback.
_VECTOR_SYSTEMS = frozenset((DENSE, ANN))


def index_type_of(alias: str, settings: IndexSettings) -> str:
    """The type of an index by its files, in Pyserini's words: 'tf' (Lucene), 'dense' (a bundle of
    ours), 'faiss', 'impact' or 'collection'.

    Raises UnknownNameError if there is none, MismatchError if the settings name another type, and
    InputError if they name what an index of the type does not take.
    """
    location = settings.location
    if not catalog.find('indexes', location) and not Path(location).is_dir():
        near = catalog.did_you_mean(location, catalog.entries('indexes'))
        raise UnknownNameError(
            f"index '{alias}': '{location}' is neither a folder nor an index of the catalog{near}"
        )
    index_type = _type_at(location)
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
    _check_settings(alias, settings, index_type)
    return index_type


def _check_settings(alias: str, settings: IndexSettings, index_type: str) -> None:
    """Raises InputError for settings that an index of this type does not take."""
    if settings.ray and index_type != 'dense':
        raise InputError(
            f"index '{alias}' is of type '{index_type}': Ray searches dense bundles only"
        )
    if index_type == COLLECTION and (settings.base_index or settings.sparse):
        raise InputError(
            f"index '{alias}' is a collection, which has its own rankings: leave base_index and "
            'sparse out'
        )
    if settings.writable and index_type != COLLECTION:
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
            f"index '{alias}' is said to be of type 'impact', {settings.location} is of type 'tf'"
        )


def _type_at(location: str) -> str:
    """The type of a catalog's index, or of a folder."""
    folder = Path(location)
    if catalog.find('indexes', location):
        return 'dense'
    if is_collection(folder):
        return COLLECTION
    if is_lucene_index(folder):
        return IMPACT if built_variant(folder) == EPIC_IMPACT else 'tf'
    if is_impact_bundle(folder):
        return IMPACT
    return 'dense' if (folder / 'manifest.json').is_file() else 'faiss'


def sparse_specs(
    location: str, wanted: Sequence[str] | None, language: str | None = None
) -> dict[str, PipelineSpec]:
    """The sparse systems of a Lucene index, by name: those wanted; None: the catalog's techniques
    that fit it.

    `language` is that of an index that does not say its own.
    """
    if wanted is None:
        variant = built_variant(Path(location)) or 'bm25'
        entries = catalog.entries('sparse')
        wanted = [name for name, entry in entries.items() if entry.values['variant'] == variant]
    specs = {}
    for spec in wanted:
        name = spec.partition('@')[0]
        # A technique without an index of its own searches this one.
        if catalog.find('sparse', spec):
            spec = f'{spec}@{location}'
        own_language = None if names_class(name) else language
        specs[name] = PipelineSpec(sparse=(spec,), language=own_language)
    return specs


class ServedIndex:
    """An index that answers queries, each system by a ranker, which waits in a queue.

    Parameters
    ----------
    alias : how clients call it
    settings : where it is, and what is offered beside it
    service : the settings of the service
    queues : 'dense', 'java' and 'rerank'
    base : the Lucene index that gives passages and sparse systems; None: the index has its own
    before : of a collection, the same index with an earlier generation, whose encoder is shared

    Attributes
    ----------
    index_type : 'tf' (Lucene), 'dense', 'faiss', 'impact' or 'collection'
    collection : of an index of that type; None for the others
    specs : the sparse systems by name, each opened when it is first searched
    adapted : the folder of what `adapt` wrote, or of what a collection learned and uses; None
    systems : the names that `ranker` takes
    default : the systems of a search that names none: one ranking of the vectors, one of Lucene
    passages : how many it holds
    hits : how many hits a ranking can have: its passages, or a collection's documents
    encoder : name of the encoder of its dense vectors; None without any
    encoder_location : of that encoder: a catalog name or a folder
    query_encoder : the encoder itself, of queries
    language : of Lucene's analyzer; None without one
    find_words : finds the words of a query in a text
    keeps_raws : whether documents are stored as they were given, not only their texts
    topics : by qid; empty if none are known
    qrels : the judgments; empty if none are known
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
        self.encoder: str | None = None
        self.encoder_location = ''
        self.query_encoder: QueryEncoder | None = None
        self.index_type = index_type_of(alias, settings)
        self.collection: ServedCollection | None = None
        self.specs = self._specs()
        has_vectors = self.index_type in ('dense', 'faiss')
        if has_vectors:
            queues['dense'].call(self._open_vectors)
        if self.index_type == COLLECTION:
            self._open_collection(before)
        # One ranking of the vectors and one of Lucene, before `adapted` is one more.
        usual = [*list(self._rankers)[:1], *self._sparse_systems()[:1]]
        learned = self._learned_folder()
        self.adapted = settings.adapted or learned
        if self.adapted:
            self._open_adapted(self.adapted)
        self.systems = self._list_systems()
        # The user's own classes answer only where they are named.
        searchers = [name for name in self.systems if not names_class(name)]
        if not searchers:
            raise InputError(f"index '{alias}' has nothing to search")
        self._open_named_systems()
        opened = [name for name in usual if self.opens(name)]
        if self.adapted and self.adapted == learned:
            # People have chosen that the collection is searched so.
            opened = [ADAPTED]
        self.default = tuple(opened or searchers[:1])

        first: Any = self.ranker(searchers[0]).ranker
        self._store: Ranker = base._store if base else first
        self._check_texts(first)
        self.keeps_raws = isinstance(self._store, LuceneSparseSearcher)
        if self.collection is not None:
            self.passages: int = self.collection.n_passages
            self._store = self.collection.searcher
        else:
            self.passages = len(first) if has_vectors else first.size
        self.hits: int = self.passages if self.collection is None else len(self.collection)
        self.language = self._language()
        self.find_words = word_finder(self.language)
        self._load_judgments()

    def _check_texts(self, first: Ranker) -> None:
        """Raises InputError for an index of impacts without passages, its own or its base's."""
        if self._base is None and isinstance(first, ImpactSearcher) and not first.stores_texts:
            raise InputError(
                f"index '{self.alias}' stores no passages: name the Lucene index that does as its "
                f'base_index'
            )

    def _language(self) -> str | None:
        """The language of the first system that reads words; None if none is open."""
        for ranker in self._rankers.values():
            language = language_of(ranker.ranker)
            if language is not None:
                return language
        return None

    def _list_systems(self) -> tuple[str, ...]:
        """Vectors, then sparse systems, then what `adapt` wrote."""
        vectors = [name for name in self._rankers if name != ADAPTED]
        systems = (*vectors, *self._sparse_systems())
        if self.adapted:
            systems += (ADAPTED,)
        return systems

    def _sparse_systems(self) -> list[str]:
        """The names of the rankings by words."""
        if self.collection is not None:
            return [ranking.value for ranking in self.collection.rankings[1:]]
        return list(self.specs)

    def _load_judgments(self) -> None:
        settings = self.settings
        self.topics: dict[str, Query] = {}
        self.qrels: Qrels = {}
        topics = settings.topics or _known_collection('topics', settings.location)
        if topics:
            self.topics = {topic.qid: topic for topic in load_topics(topics)}
        qrels = settings.qrels or _known_collection('qrels', settings.location)
        if qrels:
            self.qrels = load_qrels(qrels)
        judged = [topic for topic in self.topics.values() if topic.qid in self.qrels]
        self._judged_qids = {_folded(topic.text): topic.qid for topic in judged}

    def _specs(self) -> dict[str, PipelineSpec]:
        """The sparse systems by name: of the index itself, or of its base."""
        settings = self.settings
        if self.index_type == IMPACT:
            return self._impact_specs()
        if self.index_type == 'tf':
            return sparse_specs(settings.location, settings.sparse, settings.language)
        if self._base:
            base = self._base.settings
            return sparse_specs(base.location, settings.sparse, base.language)
        if settings.sparse is not None or catalog.find('indexes', settings.location):
            return sparse_specs(settings.location, settings.sparse, settings.language)
        return {}

    def _impact_specs(self) -> dict[str, PipelineSpec]:
        """The system of an index of weights of terms: Lucene's, or a bundle that has texts."""
        settings = self.settings
        if not is_impact_bundle(settings.location):
            if settings.encoder:
                check_impact_encoder(settings.encoder)
                return {IMPACT: PipelineSpec(index=settings.location, encoder=settings.encoder)}
            return {'epic': PipelineSpec(sparse=(settings.location,))}
        bundle = TermWeightsBundle(settings.location)
        if self._base is None and not bundle.has_texts:
            raise InputError(
                f"index '{self.alias}' stores no passages: encode it with its texts, or name "
                'the Lucene index that has them as its base_index'
            )
        spec = PipelineSpec(
            index=settings.location, encoder=settings.encoder, precision=self._service.precision
        )
        return {'sparse': spec}

    def _open_vectors(self) -> None:
        """Open exact search of the vectors, and approximate search if it is offered."""
        settings = self.settings
        spec = PipelineSpec(
            index=settings.location, encoder=settings.encoder, precision=self._service.precision
        )
        machine = self._machine.model_copy(update={'threads': 1})
        if settings.ray:
            from pyserini_repbert.pipeline.ray_workers import ray_worker_pool

            on_gpu = self._service.device not in ('cpu', 'auto')
            workers = self._held.enter_context(ray_worker_pool(settings.ray, gpu=on_gpu))
            machine = machine.model_copy(update={'ray': workers})
        dense: Any = open_searcher(spec, machine)
        self._rankers[DENSE] = BatchedRanker(dense, self._queues['dense'], DENSE)
        if settings.ann:
            ann = open_searcher(spec.model_copy(update={'ann': True}), machine)
            ann = ann.with_settings(query_encoder=dense.query_encoder)
            self._rankers[ANN] = BatchedRanker(ann, self._queues['dense'], ANN)
        self._set_encoder(dense, str(getattr(dense.query_encoder, 'name', settings.encoder)))
        if self._base is None and not getattr(dense.index, 'has_texts', False):
            raise InputError(
                f"index '{self.alias}' stores no passages: name the Lucene index that does as its "
                f'base_index'
            )
        # The first search is slow.
        dense.search('warm', 1)

    def _open_collection(self, before: Self | None) -> None:
        """Open the collection's documents, and the search of their vectors."""
        collection = ServedCollection(
            self.alias,
            self.settings,
            self._service,
            self._queues['dense'],
            before.collection if before is not None else None,
        )
        self._held.callback(collection.close)
        self.collection = collection
        self._rankers[DENSE] = BatchedRanker(
            collection.searcher.dense, self._queues['dense'], DENSE
        )
        if self.settings.ann:
            is_first = before is None
            ann = collection.open_ann(is_needed=is_first)
            self._rankers[ANN] = BatchedRanker(ann, self._queues['dense'], ANN)
        named = self.settings.encoder or collection.generation.settings.encoder
        self._set_encoder(collection.searcher.dense, named)

    def _set_encoder(self, dense: DenseSearcher, location: str) -> None:
        self.query_encoder = dense.query_encoder
        self.encoder_location = location
        self.encoder = Path(location).name

    def _learned_folder(self) -> str | None:
        """The folder of what a collection learned, if it is in use."""
        if self.collection is None:
            return None
        generation = self.collection.generation
        folder = adaptation_in_use(generation.folder, generation.settings)
        return None if folder is None else str(folder)

    def _open_adapted(self, folder: str) -> None:
        """Open what `adapt` wrote, as one system; with a reranker, it works in the queue of
        rerankers.
        """
        settings = self.settings
        spec = PipelineSpec(adapted=folder, index=settings.location, encoder=settings.encoder)
        # The classes that the operator names: the folder may name no other.
        allowed = [name.partition('@')[0] for name in settings.sparse or ()]
        allowed += self._service.rerankers or ()
        has_reranker = bool(read_adapted(folder).stages)
        queue = self._queues['rerank' if has_reranker else 'java']
        ranker: Ranker
        if self.collection is not None and not has_reranker:
            ranker = queue.call(partial(self.collection.open_adapted, folder))
            self._held.callback(ranker.close)
        else:
            resolved = resolve(spec, self._machine, allowed)
            ranker = queue.call(lambda: open_resolved(resolved, self._machine).pipeline)
        self._rankers[ADAPTED] = BatchedRanker(ranker, queue, ADAPTED)

    def _open_sparse(self, system: str) -> None:
        if system not in self._rankers:
            if self.collection is not None:
                searcher: Ranker = self.collection.open_sparse().with_settings(
                    threads=self._machine.threads
                )
                self._held.callback(searcher.close)
            else:
                searcher = open_searcher(self.specs[system], self._machine)
            self._rankers[system] = BatchedRanker(searcher, self._queues['java'], system)

    def _open_named_systems(self) -> None:
        """Open the sparse systems that the settings name: one that cannot be opened fails at the
        start, not at the first query.
        """
        if self.settings.sparse:
            for name in self.specs:
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

        Raises LostCollectionError where the folder does not hold the collection any more.
        """
        if self.collection is None:
            return False
        known = self.collection.generation.known
        newest = read_known(self.collection.generation.folder)
        known.check(newest)
        if not self.settings.adapted and self.adapted != self._learned_folder():
            return True
        return newest.sha256 != known.sha256

    def searchable_systems(self) -> list[str]:
        """The rankings that can be opened here, without the user's own classes."""
        names = [name for name in self.systems if not names_class(name)]
        return [name for name in names if self.opens(name)]

    def close(self) -> None:
        """Release the workers of a Ray cluster, and the generation of a collection."""
        self._held.close()

    def resolve_systems(self, names: Sequence[str]) -> tuple[str, ...]:
        """The systems of a request: the default for none; for 'hybrid', dense and BM25, or all
        rankings of a collection.

        Raises UnknownNameError for a system that is not here, InputError for one given twice.
        """
        hybrid = [DENSE, BM25]
        if self.collection is not None and len(self.collection.rankings) > 1:
            hybrid = [ranking.value for ranking in self.collection.rankings]
        systems: list[str] = []
        for name in names or self.default:
            systems += hybrid if name == HYBRID else [name]
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
        """Whether what `adapt` wrote is more than a search of the collection's generation."""
        adapted = self._rankers.get(ADAPTED)
        return adapted is not None and not isinstance(adapted.ranker, CollectionSearcher)

    @property
    def document_systems(self) -> tuple[str, ...]:
        """The systems that take a document in place of a question."""
        unable = set()
        if self._reranks_adapted:
            unable.add(ADAPTED)
        if self.index_type == 'faiss':
            unable |= _VECTOR_SYSTEMS
        if self.index_type == IMPACT:
            unable.update(self.specs)
        return tuple(name for name in self.systems if name not in unable and not names_class(name))

    def encodes_queries(self, system: str) -> bool:
        """Whether a model reads the queries of a system."""
        return system in (DENSE, ANN, ADAPTED, SPARSE) or self.index_type == IMPACT

    def check_filter(self, text: str | None, systems: Sequence[str]) -> None:
        """Raises InputError for an unreadable filter, or one of an index that is no collection."""
        if text is None:
            return
        if self.collection is None:
            raise InputError(
                f"index '{self.alias}' is not a collection: a filter needs documents with fields"
            )
        if ADAPTED in systems and self._reranks_adapted:
            raise InputError(
                f"system '{ADAPTED}' has a reranker, and no filter: name the rankings of the index"
            )
        self.collection.mask(text)

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
        if not _VECTOR_SYSTEMS.intersection(systems):
            raise InputError(
                "'prf' is feedback of a dense ranking, and none is asked: name system 'dense', or "
                "'bm25+rm3' for feedback of BM25"
            )
        if self.index_type == 'faiss':
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
        weights = _bm25_weights(settings)
        if weights:
            searcher: Any = ranker.ranker
            weighted = searcher.with_settings(settings=replace(searcher.settings, **weights))
            ranker = BatchedRanker(weighted, ranker.queue, system)
        if settings.filter is not None and self.collection is not None:
            ranker = self.collection.rank_within(
                settings.filter, ranker, system, is_usual=not weights
            )
        if settings.prf is not None and system in _VECTOR_SYSTEMS:
            feedback = VectorFeedback.parse(settings.prf)
            moved = ranker.ranker.with_settings(feedback=feedback)
            ranker = BatchedRanker(moved, ranker.queue, system)
        return ranker

    def holds(self, docid: str, systems: Sequence[str]) -> bool:
        """Whether systems search a document of this docid; a collection has some without text."""
        if self.collection is not None:
            return self.collection.searcher.holds(docid)
        return any(self.ranker(system).holds(docid) for system in systems)

    def source_for(self, like: str | None) -> Texts:
        """What gives a pipeline the texts of hits.

        Of a collection, they are the passages that fit the query best; the query is a document
        where `like` is one.
        """
        if self.collection is None:
            return self
        if like is None:
            return self.collection.store
        return self.collection.store.by_documents()

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts, or whole documents, one for each docid, None where the index lacks it."""
        return self._store.texts(docids)

    def with_texts(self, query: str, ranking: Ranking, n_excerpts: int = 1) -> Ranking:
        """The hits with their texts: of documents, the passages that fit the query best.

        A hit has none where the index lacks it. `n_excerpts` is how many passages a document has.
        """
        if self.collection is not None:
            ranking = self.collection.store.with_stored_texts(query, ranking, n_excerpts)
        texts = self.texts(ranking.docids)
        return ranking.with_texts(dict(zip(ranking.docids, texts, strict=True)))

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        """Documents as they are stored, one for each docid, None where the index lacks it."""
        if isinstance(self._store, LuceneSparseSearcher):
            return self._store.raws(docids)
        if self.collection is not None:
            return self.collection.raws(docids)
        raws: list[str | None] = []
        for docid, text in zip(docids, self.texts(docids), strict=True):
            raw = None
            if text is not None:
                # As Lucene stores a document.
                raw = json.dumps({'id': docid, 'contents': text}, ensure_ascii=False)
            raws.append(raw)
        return raws

    def grades(self, qid: str) -> dict[str, int]:
        """The judgments of a topic: docid -> grade.

        Raises MissingResourceError for a topic without judgments.
        """
        if qid not in self.qrels:
            raise MissingResourceError(
                f"index '{self.alias}' has no judgments for topic '{qid[:200]}'"
            )
        return self.qrels[qid]

    def judged_qid(self, query: str) -> str | None:
        """The qid of the judged topic with the same text, apart from case, spaces and a final
        '?'; None without one.
        """
        return self._judged_qids.get(_folded(query))


def _known_collection(kind: str, location: str) -> str | None:
    """The collection of a catalog's index, if the catalog has its 'topics' or 'qrels'."""
    entry = catalog.find('indexes', location)
    if entry is None:
        return None
    collection = str(entry.values['collection'])
    return collection if catalog.find(kind, collection) else None


def _bm25_weights(settings: PipelineSpec) -> dict[str, float]:
    """The constants of BM25 that a request gives."""
    weights = {}
    if settings.k1 is not None:
        weights['k1'] = settings.k1
    if settings.b is not None:
        weights['b'] = settings.b
    return weights


def _folded(text: str) -> str:
    return ' '.join(text.casefold().split()).rstrip('?')
