"""The indexes of a service: the rankers that search each, its passages, topics and judgments."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pyserini_repbert import catalog
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import (
    InputError,
    MismatchError,
    MissingResourceError,
    PyseriniRepbertError,
    UnknownNameError,
)
from pyserini_repbert.lucene.indexer import is_lucene_index
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import EPIC_IMPACT, built_variant
from pyserini_repbert.names.rankers import names_class, takes_index
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.pipeline.adapted_folder import apply_adaptation
from pyserini_repbert.pipeline.opening import open_pipeline, open_searcher
from pyserini_repbert.pipeline.spec import Machine, PipelineSpec
from pyserini_repbert.ranking import Query, Ranker
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings
from pyserini_repbert.serve.together import Queue, Together

logger = logging.getLogger(__name__)

DENSE = 'dense'
ANN = 'ann'
HYBRID = 'hybrid'
ADAPTED = 'adapted'


def type_of(alias: str, settings: IndexSettings) -> str:
    """The type of the index that lies at the settings' place, by Pyserini's name, or 'dense', a
    bundle of ours.
    """
    place = settings.place
    folder = Path(place)
    if catalog.find('indexes', place):
        kind = 'dense'
    elif not folder.is_dir():
        raise UnknownNameError(
            f"index '{alias}': '{place}' is neither a folder nor an index of the catalog"
            f'{catalog.did_you_mean(place, catalog.entries("indexes"))}'
        )
    elif is_lucene_index(folder):
        kind = 'impact' if built_variant(folder) == EPIC_IMPACT else 'tf'
    else:
        kind = 'dense' if (folder / 'manifest.json').is_file() else 'faiss'
    wanted = settings.index_type or kind
    if wanted != kind and {wanted, kind} != {'faiss', 'dense'}:
        raise MismatchError(
            f"index '{alias}' is said to be of type '{wanted}', {place} is of type '{kind}'"
        )
    if settings.ray and kind != 'dense':
        raise InputError(f"index '{alias}' is of type '{kind}': Ray searches dense bundles only")
    return kind


def sparse_specs(place: str, wanted: Sequence[str] | None) -> dict[str, PipelineSpec]:
    """The sparse systems by name: those wanted, or the catalog's techniques that fit the Lucene
    index at a place.
    """
    if wanted is None:
        variant = built_variant(Path(place)) or 'bm25'
        wanted = [
            name
            for name, entry in catalog.entries('sparse').items()
            if entry.values['variant'] == variant
        ]
    return {
        spec.partition('@')[0]: PipelineSpec(
            sparse=(spec,), index=place if takes_index(spec) else None
        )
        for spec in wanted
    }


class ServedIndex:
    """An index that answers queries, each system by a ranker, which waits in a queue.

    Attributes
    ----------
    systems : the names that `ranker` takes
    default : the systems of a search that names none: one ranking of the vectors, one of Lucene
    passages : how many it holds
    encoder : name of the encoder of its dense vectors; None without any
    keeps_raws : whether documents are stored as they were given, not only their texts
    topics, qrels : its topics by qid, its judgments; empty if none are known
    """

    def __init__(
        self,
        alias: str,
        settings: IndexSettings,
        service: ServeSettings,
        queues: dict[str, Queue],
        base: Self | None,
    ) -> None:
        self.alias = alias
        self.settings = settings
        self._service = service
        self._queues = queues
        self._held = contextlib.ExitStack()
        self._rankers: dict[str, Together] = {}
        self._machine = Machine(devices=(service.device,), threads=service.threads)
        self.index_type = type_of(alias, settings)
        self.encoder: str | None = None
        self.specs: dict[str, PipelineSpec] = {}
        if self.index_type == 'impact':
            self.specs = {'epic': PipelineSpec(sparse=(settings.place,))}
        elif base and self.index_type != 'tf':
            self.specs = sparse_specs(base.settings.place, settings.sparse)
        elif (
            self.index_type == 'tf'
            or settings.sparse is not None
            or catalog.find('indexes', settings.place)
        ):
            self.specs = sparse_specs(settings.place, settings.sparse)
        dense = (
            queues['dense'].call(self._open_dense)
            if self.index_type in ('dense', 'faiss')
            else None
        )
        if dense is not None and base is None and not getattr(dense.index, 'has_texts', False):
            raise InputError(
                f"index '{alias}' stores no passages: name the Lucene index that does as its "
                f'base_index'
            )
        self.systems = (*self._rankers, *self.specs)
        one_of_each = (*tuple(self._rankers)[:1], *tuple(self.specs)[:1])
        if (
            settings.adapted
        ):  # what `adapt` wrote is one system; a reranker in it works in the queue of rerankers
            spec = PipelineSpec(
                adapted=settings.adapted, index=settings.place, encoder=settings.encoder
            )
            queue = queues['rerank' if apply_adaptation(spec).stages else 'java']
            pipeline = queue.call(lambda: open_pipeline(spec, self._machine).pipeline)
            self._rankers[ADAPTED] = Together(pipeline, queue, ADAPTED)
            self.systems += (ADAPTED,)
        searchers = [name for name in self.systems if not names_class(name)]
        if not searchers:
            raise InputError(f"index '{alias}' has nothing to search")
        for name in self.specs if settings.sparse else ():
            self.ranker(
                name
            )  # one that cannot be opened fails at the start, not at the first query
        self.default = tuple(name for name in one_of_each if self._opens(name)) or tuple(
            searchers[:1]
        )
        store: Any = self.ranker(searchers[0]).ranker
        self._store: Ranker = base._store if base else store
        self.keeps_raws = isinstance(self._store, LuceneSparseSearcher)
        self.passages = len(store) if dense is not None else store.size
        entry = catalog.find('indexes', settings.place)
        known = '' if entry is None else str(entry.values['collection'])
        topics = settings.topics or (catalog.find('topics', known) and known)
        qrels = settings.qrels or (catalog.find('qrels', known) and known)
        self.topics: dict[str, Query] = (
            {query.qid: query for query in load_topics(topics)} if topics else {}
        )
        self.qrels: Qrels = load_qrels(qrels) if qrels else {}
        self._by_text = {
            _folded(query.text): qid for qid, query in self.topics.items() if qid in self.qrels
        }

    def _opens(self, name: str) -> bool:
        """Whether a system can be opened; vectors are searched without Java, too."""
        try:
            self.ranker(name)
        except PyseriniRepbertError as error:
            if not self._rankers:
                raise
            logger.warning("index '%s' answers without '%s': %s", self.alias, name, error)
            return False
        return True

    def _open_dense(self) -> Any:
        settings = self.settings
        spec = PipelineSpec(
            index=settings.place, encoder=settings.encoder, precision=self._service.precision
        )
        machine = self._machine.model_copy(update={'threads': 1})
        if settings.ray:
            from pyserini_repbert.pipeline.ray_workers import connected

            workers = self._held.enter_context(
                connected(settings.ray, gpu=self._service.device not in ('cpu', 'auto'))
            )
            machine = machine.model_copy(update={'ray': workers})
        dense: Any = open_searcher(spec, machine)
        self._rankers[DENSE] = Together(dense, self._queues['dense'], DENSE)
        if settings.ann:
            ann = open_searcher(spec.model_copy(update={'ann': True}), machine)
            ann = ann.with_settings(query_encoder=dense.query_encoder)
            self._rankers[ANN] = Together(ann, self._queues['dense'], ANN)
        self.encoder = Path(str(getattr(dense.query_encoder, 'name', settings.encoder))).name
        dense.search('warm', 1)
        return dense

    def close(self) -> None:
        """Release the workers of a Ray cluster."""
        self._held.close()

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """The systems of a request: the default for none, dense and BM25 for 'hybrid'."""
        names = names or self.default
        wanted = [
            part for name in names for part in ((DENSE, 'bm25') if name == HYBRID else (name,))
        ]
        for name in wanted:
            if name not in self.systems:
                raise UnknownNameError(
                    f"index '{self.alias}' has no system "
                    f"'{name[:60]}'{catalog.did_you_mean(name, self.systems)}: "
                    f'it has {", ".join(self.systems)}'
                )
        if twice := next((name for name in wanted if wanted.count(name) > 1), None):
            raise InputError(f"system '{twice}' was given twice")
        return tuple(wanted)

    def ranker(self, system: str, k1: float | None = None, b: float | None = None) -> Together:
        """The ranker of a system, opened if it is not yet; k1 and b are BM25's, None: the
        index's.
        """
        if system not in self._rankers:
            self._queues['java'].call(lambda: self._open_sparse(system))
        ranker = self._rankers[system]
        weights = {name: value for name, value in (('k1', k1), ('b', b)) if value is not None}
        if not weights:
            return ranker
        searcher: Any = ranker.ranker
        return Together(
            searcher.with_settings(settings=replace(searcher.settings, **weights)),
            ranker.queue,
            system,
        )

    def _open_sparse(self, system: str) -> None:
        if system not in self._rankers:
            ranker = open_searcher(self.specs[system], self._machine)
            self._rankers[system] = Together(ranker, self._queues['java'], system)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        """Passage texts, one for each docid, None where the index lacks it."""
        return self._store.texts(docids)

    def raws(self, docids: Sequence[str]) -> list[str | None]:
        """Documents as they are stored, one for each docid, None where the index lacks it."""
        if isinstance(self._store, LuceneSparseSearcher):
            return self._store.raws(docids)
        return [
            None
            if text is None
            else json.dumps({'id': docid, 'contents': text}, ensure_ascii=False)  # as in Lucene
            for docid, text in zip(docids, self.texts(docids), strict=True)
        ]

    def grades(self, qid: str) -> dict[str, int]:
        """The judgments of a topic: docid -> grade.

        Raises MissingResourceError for a topic without judgments.
        """
        if qid not in self.qrels:
            raise MissingResourceError(
                f"index '{self.alias}' has no judgments for topic '{qid[:200]}'"
            )
        return self.qrels[qid]

    def judged(self, query: str) -> str | None:
        """The qid of the judged topic with the same text, apart from case, spaces and a final
        '?'; None without one.
        """
        return self._by_text.get(_folded(query))


def _folded(text: str) -> str:
    return ' '.join(text.casefold().split()).rstrip('?')
