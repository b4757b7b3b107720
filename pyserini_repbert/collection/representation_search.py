"""Search for documents by a further model's values of their passages: term weights, or token
vectors.

The search is exact: each passage is scored, and documents are ranked by their passages. With a
scan, some documents may be missed: those with no passage that it finds. The scores of the others
are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.dense_search import best_positions
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.opened_models import further_model
from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.collection.scans import CandidateScan, collection_scan
from pyserini_repbert.data.ordering import rank_by_score
from pyserini_repbert.encode.text_encoder import check_model
from pyserini_repbert.extension import Representation
from pyserini_repbert.index.sample import background_of
from pyserini_repbert.ranking import (
    NO_HITS,
    NO_WORD,
    Background,
    Query,
    Ranking,
    Reason,
    ReasonKind,
    Run,
    Searcher,
)
from pyserini_repbert.search.aggregation import PassageAggregation
from pyserini_repbert.search.documents_of_passages import aggregate_groups
from pyserini_repbert.trace import Trace

# How much deeper each further search for candidates goes.
_DEEPER = 4


class RepresentationSearcher(Searcher):
    """Searches the documents of a collection's generation by a representation of their passages.

    Parameters
    ----------
    generation : open, until the searcher is no longer used
    kind : the representation
    vectors : the rows of the passages
    query_encoder : the collection's model of this kind
    aggregation : how passages' scores become document scores

    Attributes
    ----------
    scan : finds passages by the representation's vectors; None: all are scored
    takes_docids : whether the texts of topics are docids, see `by_documents`

    Raises InputError for a collection without such a model, MismatchError for another model.
    """

    takes_docids: bool = False

    def __init__(
        self,
        generation: Generation,
        kind: Representation,
        vectors: PassageVectors,
        query_encoder: Any,
        aggregation: PassageAggregation | str = PassageAggregation.MAX,
    ) -> None:
        self.aggregation = PassageAggregation(aggregation)
        self.generation = generation
        self.kind = kind
        self.recorded_as = kind.work.recorded_as
        self.query_encoder = query_encoder
        self._vectors = vectors
        check_model(generation.folder, vars(further_model(generation, kind)), query_encoder)
        self._rows = [shard.rows_of(kind) for shard in vectors.shards]
        for shard, rows in zip(vectors.shards, self._rows, strict=True):
            # Made now, not at the first search.
            rows.prepare(shard.folder)
        can_match = [np.empty(0, np.bool_), *(rows.can_match for rows in self._rows)]
        self._counted: NDArray[np.bool_] = vectors.live & np.concatenate(can_match)
        # Of all documents, also within a filter.
        self._sample = vectors.sample_rows[self._counted[vectors.sample_rows]]
        if self.aggregation is PassageAggregation.FIRST:
            self._counted = self._counted & (vectors.numbers == 0)
        self.scan: CandidateScan | None = None

    def with_scan(self, name: str) -> Self:
        """The same search by a scan.

        Raises InputError for vectors that cannot be scanned so, DamagedFileError for a file that is
        not intact.
        """
        scan = collection_scan(name).of_representation(self.generation, self.kind, self._vectors)
        return self.with_settings(scan=scan)

    def within(self, wanted: DocumentFilter) -> Self:
        """The same search among the documents that a filter lets through."""
        documents = wanted.mask(self.generation)
        return self.with_settings(_counted=self._counted & documents[self._vectors.documents])

    def by_documents(self) -> Self:
        """As in `Ranker`: the query is what `RepresentationWork.document_query` gives."""
        return self.with_settings(takes_docids=True)

    def holds(self, docid: str) -> bool:
        """Whether there is a document of this docid, with or without text."""
        return bool(self.generation.docnos([docid])[0] >= 0)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        return self.generation.texts(docids)

    def __len__(self) -> int:
        """How many documents have a text."""
        return self._vectors.n_documents

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        depth = k
        if self.takes_docids and k is not None:
            # One more, as a document finds itself.
            depth = k + 1
        rankings: Run = {}
        queries = self.queries_of([topic.text for topic in topics])
        for topic, query in zip(topics, queries, strict=True):
            ranking = self.of_query(query, depth)
            rankings[topic.qid] = ranking.without(topic.text) if self.takes_docids else ranking
        return rankings

    def queries_of(self, texts: Sequence[str]) -> list[Any]:
        """The queries of topics of these texts; None for one that finds nothing."""
        if self.takes_docids:
            return [self._document_query(docid) for docid in texts]
        return self.encode(texts)

    def encode(self, queries: Sequence[str]) -> list[Any]:
        """Questions as the representation reads them; None for one that finds nothing."""
        asked: list[Any] = self.kind.work.encode_queries(self.query_encoder, queries)
        return asked

    @property
    def gives_document_scores(self) -> bool:
        return True

    def document_scores(
        self, topic: Query, docids: Sequence[str], hits: Ranking
    ) -> list[float | None]:
        score_of = dict(zip(hits.docids, hits.scores, strict=True))
        missing = [docid for docid in docids if docid not in score_of]
        if missing:
            (query,) = self.queries_of([topic.text])
            score_of |= self.scores_by_docid(query, missing)
        scores = [score_of.get(docid) for docid in docids]
        if self.kind.work.scores_all:
            return scores
        return [score or None for score in scores]

    def scores_by_docid(self, query: Any, docids: Sequence[str]) -> dict[str, float]:
        """The scores of documents, by docid, of those with a passage that counts."""
        if query is None:
            return {}
        scores_of = partial(self._scores_of, query)
        return self._vectors.scores_by_docid(docids, self._counted, scores_of, self.aggregation)

    def of_query(self, query: Any, k: int | None) -> Ranking:
        """The ranking of a query of `queries_of`, ties by docid; k None: all hits."""
        if query is None or not len(self._vectors):
            return NO_HITS
        if self.scan is not None and k is not None:
            return self._of_candidates(self.scan, query, k)
        scores = self._scores(query)
        is_hit = self._counted if self.kind.work.scores_all else self._counted & (scores != 0)
        found = np.flatnonzero(is_hit)
        if self.aggregation is PassageAggregation.FIRST:
            docnos = self._vectors.documents[found]
            totals = scores[found]
        else:
            is_found = self.generation.mask_of(self._vectors.documents[found])
            docnos = np.flatnonzero(is_found).astype(np.int32)
            totals = self._aggregated(scores, docnos)
        best = best_positions(totals, len(totals) if k is None else k)
        docids = np.array(self.generation.docids(docnos[best]), dtype=object)
        ranking = rank_by_score(docids, totals[best], k)
        return ranking.with_background(self._background_of(scores[self._sample]))

    def _background_of(self, scores: NDArray[np.float32]) -> Background:
        """`Ranking.background`, by the scores of the sample of passages."""
        if not self.kind.work.scores_all:
            return NO_WORD
        return background_of(scores, int(np.count_nonzero(self._counted)))

    def _of_candidates(self, scan: CandidateScan, query: Any, k: int) -> Ranking:
        """The ranking of the documents that a scan finds, k deep."""
        # So many passages are of k documents, if these have as many as others.
        depth = k * -(-len(self._vectors) // max(len(self), 1))
        n_counted = int(np.count_nonzero(self._counted))
        rows = scan.candidates(query, depth, self._counted)
        docnos = np.unique(self._vectors.documents[rows])
        while len(docnos) < k and len(rows) < n_counted:
            depth *= _DEEPER
            rows = scan.candidates(query, depth, self._counted)
            docnos = np.unique(self._vectors.documents[rows])
        scored = self._vectors.score_documents(
            docnos.astype(np.int64),
            self._counted,
            partial(self._scores_of, query),
            self.aggregation,
        )
        best = best_positions(scored.totals, k)
        found = docnos[scored.positions[best]]
        docids = np.array(self.generation.docids(found), dtype=object)
        ranking = rank_by_score(docids, scored.totals[best], k)
        return ranking.with_background(self.background(query))

    def background(self, query: Any) -> Background:
        """`Ranking.background` of a query that finds something."""
        return self._background_of(self._scores_of(query, self._sample))

    def identity(self) -> Mapping[str, Any]:
        identity = super().identity()
        if self.scan is None:
            return identity
        return {**identity, self.scan.name: self.scan.sha256}

    def _scores(self, query: Any) -> NDArray[np.float32]:
        """The scores of all rows, float32 (n,)."""
        parts = [rows.scores(query) for rows in self._rows]
        return np.concatenate([np.empty(0, np.float32), *parts])

    def _scores_of(self, query: Any, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of some rows, float32 (m,)."""
        scores = np.empty(len(rows), np.float32)
        first = 0
        for part in self._rows:
            inside = np.flatnonzero((rows >= first) & (rows < first + len(part)))
            if len(inside):
                scores[inside] = part.scores_of(query, rows[inside] - first)
            first += len(part)
        return scores

    def _aggregated(
        self, scores: NDArray[np.float32], docnos: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """The scores of documents by all their passages that count, float32 (m,)."""
        if not len(docnos):
            return np.empty(0, np.float32)
        rows, counts = self._vectors.rows_of(docnos.astype(np.int64))
        is_counted = self._counted[rows]
        owners = np.repeat(np.arange(len(docnos)), counts)[is_counted]
        starts = np.searchsorted(owners, np.arange(len(docnos)))
        return aggregate_groups(scores[rows[is_counted]], starts, self.aggregation)

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        """What made the score of each document's best passage, by docid.

        A document without a reason is left out.
        """
        (asked,) = self.queries_of([query])
        if asked is None:
            return {}
        reasons: dict[str, tuple[Reason, ...]] = {}
        docnos = self.generation.docnos(docids)
        for docid, docno in zip(docids, docnos.tolist(), strict=True):
            rows, _ = self._vectors.rows_of(np.array([docno], np.int64))
            rows = rows[self._counted[rows]]
            if len(rows):
                best = rows[[int(np.argmax(self._scores_of(asked, rows)))]]
                (passage,) = self._vectors.values(self.kind, best)
                words = self.kind.work.matches(self.query_encoder, asked, passage)
                if words:
                    reasons[docid] = (Reason(ReasonKind(self.kind.name), self.name, words),)
        return reasons

    def _document_query(self, docid: str) -> Any:
        """A document as a query; None if it is not here, or has no text."""
        rows, _ = self._vectors.rows_of(self.generation.docnos([docid]))
        passages = self._vectors.values(self.kind, rows)
        return self.kind.work.document_query(passages) if passages else None
