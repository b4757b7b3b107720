"""EPIC as a first stage: a Lucene index of its impacts, searched with its query weights.

Indexes of the impacts of a `SparseEncoder` are searched the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.encode.impact_encoder import ImpactEncoder
from pyserini_repbert.encode.text_encoder import check_model
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.lucene.jvm import calling, java_calls, java_class, quiet_java
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher, index_folder
from pyserini_repbert.lucene.sparse_settings import record_of
from pyserini_repbert.ranking import Query, Ranker, Run, by_score
from pyserini_repbert.systems.epic.encoder import QUERY_UNIT, EpicImpactQueryEncoder
from pyserini_repbert.trace import Trace


class EpicImpactSearcher(Ranker):
    """Searches a Lucene index of the variant 'epic-impact'; safe to use from several threads.

    Scores approximate EPIC's (its eq. 5), on the same scale: inner products of quantised weights.

    Parameters
    ----------
    index : the index's folder or name
    model : catalog name, checkpoint folder or encoder; default: the one that the index names
    device : where queries are encoded
    """

    def __init__(
        self, index: StrPath, model: str | Path | ImpactEncoder | None = None, device: str = 'cpu'
    ) -> None:
        quiet_java()
        self.index = folder = index_folder(index)
        self.settings: dict[str, Any] = record_of(folder)
        try:
            built_with = str(self.settings['encoder'])
            self._unit = float(self.settings['step']) / QUERY_UNIT
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f'{folder} is no EPIC impact index: build one of that variant'
            ) from error
        self._stored = LuceneSparseSearcher(folder)
        self.name = folder.name
        self.size = self._stored.size
        if model is None:
            model = built_with
        self.query_encoder = EpicImpactQueryEncoder(model, device)
        check_model(folder, self.settings, self.query_encoder.encoder)
        with java_calls():
            self._java = calling(java_class('io.anserini.search.SimpleImpactSearcher'), str(folder))
            self._map = java_class('java.util.HashMap')
            self._list = java_class('java.util.ArrayList')
            self._whole = java_class('java.lang.Integer')

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        encoded = {}
        for topic in topics:
            levels = self.query_encoder.encode(topic.text)
            if levels:
                encoded[topic.qid] = levels
        rankings: Run = {}
        if not encoded:
            return rankings
        depth = self.size if k is None else min(k, self.size)
        with java_calls():
            queries = self._list()
            qids = self._list()
            for qid, levels in encoded.items():
                weights = self._map()
                for name, level in levels.items():
                    weights.put(name, self._whole(level))
                queries.add(weights)
                qids.add(qid)
            answers = calling(self._java.batch_search, queries, qids, depth, self.threads)
            for entry in answers.entrySet().toArray():
                hits = list(entry.getValue())
                scores = [hit.score * self._unit for hit in hits]
                rankings[str(entry.getKey())] = by_score([hit.docid for hit in hits], scores)
        return rankings

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        return [text or None for text in self._stored.texts(docids)]

    def close(self) -> None:
        self._stored.close()
        with java_calls():
            self._java.close()
