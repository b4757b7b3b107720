"""Dense search for documents: passages are found by their vectors, documents ranked by passages.

The documents are exactly those that scoring every passage would give. The search takes a few times
as many passages as documents are wanted. These are enough once no unseen document can be among the
best: an unseen document scores less than the last passage found, with every `PassageAggregation`.
If they are not, for example because one document has thousands of passages, the rest is searched
without the documents already found. Otherwise, passages are searched deeper, and finally all of
them are scored.

With a scan, some documents may be missed: those with no passage that it finds. The scores of
documents that are found are exact with every `PassageAggregation`, because all of their passages
are scored. Feedback is taken from exact search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.document_rows import CollectionRows
from pyserini_repbert.collection.excerpts import answering_excerpts, read_excerpts
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.passage_vectors import PassageVectors, distinct_in_order
from pyserini_repbert.collection.rankings import CollectionRanking, default_fusion
from pyserini_repbert.collection.scans import PassageScan, collection_scan
from pyserini_repbert.data.ordering import rank_by_score
from pyserini_repbert.encode.text_encoder import (
    TextDocumentEncoder,
    check_model,
    truncated_as,
)
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import (
    Excerpts,
    Query,
    QueryRewriting,
    Ranking,
    Reason,
    ReasonKind,
)
from pyserini_repbert.search.aggregation import PassageAggregation
from pyserini_repbert.search.dense import QueryEncoder, VectorSearcher
from pyserini_repbert.search.document_rows import DocumentRows
from pyserini_repbert.search.documents_of_passages import aggregate_groups
from pyserini_repbert.search.parts import ArrayVectors
from pyserini_repbert.search.quick_exact import QuickIndex
from pyserini_repbert.search.scores import TopRows, VectorSearch
from pyserini_repbert.systems.encoders import document_encoder, stored_name

# How much deeper each further search for passages goes.
_DEEPER = 4
_DEEPER_SEARCHES = 2
# So few queries look at least so deep: a document of fewer passages cannot hide all others. Where
# it is longer, each question is searched once more without it.
_ALONE = 8
_LEAST_DEPTH = 256
# The vectors of the rows that a filter leaves are kept, if they are at most this share of all rows,
# and take at most so many bytes.
_KEPT_SHARE = 1 / 16
_KEPT_BYTES = 8_000_000
# If a smaller share of the rows counts, exact search is used instead of a scan.
_EXACT_SHARE = 1 / 16
# Queries whose vectors are at hand when their passages are chosen: several batches.
_LAST_QUERIES = 1024


@dataclass
class _LastQueries:
    """The vectors, float32 (d,), of the queries that were encoded last, by their texts.

    `query_map` is the map that they have passed.
    """

    vectors: dict[str, NDArray[np.float32]]
    query_map: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class _FoundDocuments:
    """Numbers of documents, int32 (n,), and their scores, float32 (n,)."""

    docnos: NDArray[np.int32]
    scores: NDArray[np.float32]


_NOTHING = _FoundDocuments(np.empty(0, np.int32), np.empty(0, np.float32))


@dataclass(frozen=True)
class _FewRows:
    """The rows that count, if they are few: their numbers, int64 (m,), and their vectors."""

    numbers: NDArray[np.int64]
    index: QuickIndex


class DenseDocumentSearcher(VectorSearcher, recorded_as='DocumentSearcher'):
    """Searches the documents of a collection's generation by their passages' vectors.

    Parameters
    ----------
    generation : open, until the searcher is no longer used
    query_encoder : the collection's, for queries
    device : where vectors are multiplied
    aggregation : how passages' scores become document scores
    scan : the name of the scan that finds passages; '': exact search

    Attributes
    ----------
    scan : finds passages; None: exact search
    documents : by number, whether each counts within a filter, bool (numbers,); None: all do
    """

    scan: PassageScan | None

    def __init__(
        self,
        generation: Generation,
        query_encoder: QueryEncoder,
        device: str = 'cpu',
        aggregation: PassageAggregation | str = PassageAggregation.MAX,
        scan: str = '',
    ) -> None:
        self.aggregation = PassageAggregation(aggregation)
        self.generation = generation
        self.vectors = PassageVectors(generation)
        self.documents: NDArray[np.bool_] | None = None
        self._last_queries = _LastQueries({})
        # Opened where a hit is explained, once: copies of this searcher share it.
        self._sentence_encoder: list[TextDocumentEncoder] = []
        super().__init__(self.vectors, query_encoder, device)
        if scan:
            self.scan = self._open_scan(scan)

    def _open_scan(self, name: str) -> PassageScan:
        return collection_scan(name).of_passages(self.vectors, self._exact, self.device_name)

    def with_scan(self, name: str) -> Self:
        """The same search by a scan.

        Raises InputError for a collection that cannot be scanned so, DamagedFileError for a file
        that is not intact.
        """
        return self.with_settings(scan=self._open_scan(name))

    def document_rows(self) -> DocumentRows:
        return CollectionRows(self.generation, self.vectors, self.documents)

    def usual_fusion(self, others: Sequence[str]) -> FusionSettings:
        if len(others) != 1:
            return super().usual_fusion(others)
        return default_fusion([str(CollectionRanking.DENSE), *others])

    def _search_of(self, *_: object) -> VectorSearch:
        # Blocks are multiplied on a GPU, too: `GpuIndex` has no mask of rows.
        parts = [shard.part for shard in self.vectors.shards]
        self._exact = QuickIndex(self.vectors, self.device_name, parts)
        counted = self.vectors.live
        if self.aggregation is PassageAggregation.FIRST:
            counted = counted & (self.vectors.numbers == 0)
        self._count(counted)
        return self._exact.search

    def _count(self, rows: NDArray[np.bool_]) -> None:
        """Search only these rows, bool (n,); if they are few, their vectors are kept."""
        self._counted = rows
        self._n_counted = int(np.count_nonzero(rows))
        self._few: _FewRows | None = None
        n_bytes = 4 * self._n_counted * self.vectors.settings.dimension
        is_share = self._n_counted <= _KEPT_SHARE * len(self.vectors)
        if is_share and n_bytes <= _KEPT_BYTES:
            numbers = np.flatnonzero(rows)
            vectors = ArrayVectors(self.vectors.gather(numbers))
            self._few = _FewRows(numbers, QuickIndex(vectors, self.device_name))

    def within(self, wanted: DocumentFilter) -> Self:
        """The same search among the documents that a filter lets through."""
        documents = wanted.mask(self.generation)
        other = self.with_settings(documents=documents)
        other._count(self._counted & documents[self.vectors.documents])
        return other

    def _find(self, vectors: NDArray[np.float32], depth: int) -> list[TopRows]:
        """The best rows that count, of each query vector, float32 (n, d)."""
        if self._few is not None:
            tops = self._few.index.search(vectors, depth)
            return [TopRows(top.scores, self._few.numbers[top.rows]) for top in tops]
        is_share = self._n_counted >= _EXACT_SHARE * len(self.vectors)
        if self.scan is not None and is_share:
            return self.scan.search(vectors, depth, self._counted)
        allowed = None if self._n_counted == len(self.vectors) else self._counted
        return self._exact.search(vectors, depth, allowed)

    def _feedback_rows(self, queries: NDArray[np.float32], depth: int) -> list[TopRows]:
        """The best passages, of all documents: a filter does not change what a query means."""
        return self._exact.search(queries, depth, self.vectors.live)

    def _vectors_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.vectors.gather(rows)

    def _check_encoder(self) -> None:
        super()._check_encoder()
        check_model(self.index_dir, vars(self.vectors.settings), self.query_encoder)

    def __len__(self) -> int:
        """How many documents can be found: those with text."""
        return self.vectors.n_documents

    @property
    def n_searched(self) -> int:
        return self._n_counted

    def encode(self, queries: Sequence[str]) -> NDArray[np.float32]:
        vectors = super().encode(queries)
        encoded = dict(zip(queries, vectors, strict=True))
        if self._last_queries.query_map is self.query_map:
            # The newest are at the end.
            earlier = self._last_queries.vectors.items()
            others = {query: vector for query, vector in earlier if query not in encoded}
            encoded = {**others, **encoded}
        most = max(_LAST_QUERIES, len(queries))
        # A new dictionary, as another thread may read the one before.
        self._last_queries.vectors = dict(list(encoded.items())[-most:])
        self._last_queries.query_map = self.query_map
        return vectors

    def vector_of(self, query: str) -> NDArray[np.float32]:
        """A query's vector, float32 (d,); the vectors of the last queries are kept."""
        if self.takes_docids:
            zeros = np.zeros(self.dimension, np.float32)
            return self.document_vectors([query]).get(query, zeros)
        vector = None
        if self._last_queries.query_map is self.query_map:
            vector = self._last_queries.vectors.get(query)
        if vector is None:
            vector = super().encode([query])[0]
        return vector

    def by_documents(self) -> Self:
        """As in `Ranker`: a document's query is the mean of its passages' vectors."""
        return self.with_settings(takes_docids=True)

    def with_rewriting(self, rewriting: QueryRewriting) -> Self:
        # The vectors of the last queries belong to the original questions.
        return super().with_rewriting(rewriting).with_settings(_last_queries=_LastQueries({}))

    def document_vectors(self, docids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The mean of the vectors of each document's passages, float32 (d,), by docid.

        An unknown one, or one without text, has none.
        """
        vectors: dict[str, NDArray[np.float32]] = {}
        docnos = self.generation.docnos(docids)
        for docid, docno in zip(docids, docnos.tolist(), strict=True):
            rows, _ = self.vectors.rows_of(np.array([docno], np.int64))
            if docno >= 0 and len(rows):
                vectors[docid] = self.vectors.gather(rows).mean(axis=0)
        return vectors

    def holds(self, docid: str) -> bool:
        """Whether there is a document of this docid, with or without text."""
        return bool(self.generation.docnos([docid])[0] >= 0)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        return self.generation.texts(docids)

    @property
    def gives_document_scores(self) -> bool:
        # With feedback, a search uses another vector than the question's.
        return self.feedback is None

    def document_scores(
        self, topic: Query, docids: Sequence[str], hits: Ranking
    ) -> list[float | None]:
        score_of = dict(zip(hits.docids, hits.scores, strict=True))
        missing = [docid for docid in docids if docid not in score_of]
        if missing:
            score_of |= self.scores_by_docid(self.vector_of(topic.text), missing)
        return [score_of.get(docid) for docid in docids]

    @property
    def is_of_best_passages(self) -> bool:
        """Whether the best hit has the best passage: there is no filter, and no passage is
        missed.
        """
        return self.documents is None and self._has_best

    def nearest_documents(self, vector: NDArray[np.float32], n: int) -> list[str]:
        """The documents of a question's n best passages, whatever the filter; `vector` is float32
        (d,).
        """
        (top,) = self._exact.search(vector[None], n, self.vectors.live)
        return self.generation.docids(np.unique(self.vectors.documents[top.rows]))

    def best_score(self, vector: NDArray[np.float32]) -> float:
        """The score of a question's best passage, whatever the filter; `vector` is float32 (d,)."""
        (top,) = self._exact.search(vector[None], 1, self.vectors.live)
        return float(top.scores[0])

    def scores_by_docid(
        self, query: NDArray[np.float32], docids: Sequence[str]
    ) -> dict[str, float]:
        """As in `VectorSearcher`; a document without a passage that counts has no score."""
        scores_of = partial(self.vectors.scores, query)
        return self.vectors.scores_by_docid(docids, self._counted, scores_of, self.aggregation)

    def _rankings(self, vectors: NDArray[np.float32], k: int) -> list[Ranking]:
        depth = k * -(-len(self.vectors) // max(len(self), 1))
        n_alone = _ALONE if self._has_best else 0
        if len(vectors) <= n_alone:
            depth = max(depth, _LEAST_DEPTH)
        best_of: dict[int, _FoundDocuments] = {}
        waiting = list(range(len(vectors)))
        for _ in range(1 + _DEEPER_SEARCHES):
            if not waiting:
                break
            are_alone = len(waiting) <= n_alone
            best_of |= self._best_within(vectors, waiting, depth, k, are_alone=are_alone)
            waiting = [number for number in waiting if number not in best_of]
            depth *= _DEEPER
        for number in waiting:
            # One query at a time: the scores of all passages are held.
            (top,) = self._find(vectors[[number]], self._n_counted)
            best_of[number] = self._best_documents(vectors[number], top, k) or _NOTHING
        return self._named([best_of[number] for number in range(len(vectors))], k)

    def _best_within(
        self,
        vectors: NDArray[np.float32],
        numbers: Sequence[int],
        depth: int,
        k: int,
        *,
        are_alone: bool,
    ) -> dict[int, _FoundDocuments]:
        """The best documents of queries, if so many best rows are enough to determine them.

        Parameters
        ----------
        vectors : of all queries
        numbers : of the queries to search
        depth : best rows of a query
        k : how many documents
        are_alone : where the best rows do not tell, search again without the documents in them
        """
        best_of = {}
        for number, top in zip(numbers, self._find(vectors[numbers], depth), strict=True):
            best = self._best_documents(vectors[number], top, k)
            if best is None and are_alone:
                best = self._with_unseen(vectors[number], top, k)
            if best is not None:
                best_of[number] = best
        return best_of

    @property
    def _has_best(self) -> bool:
        """Whether the best row of a document that is found tells its score."""
        # A scan may have missed a document's best passage.
        return self.scan is None and self.aggregation is PassageAggregation.MAX

    def _with_unseen(self, query: NDArray[np.float32], top: TopRows, k: int) -> _FoundDocuments:
        """The k best documents, where all best rows are of fewer documents.

        Other documents rank below those that are seen. They are searched without the rows of these:
        a document of thousands of passages would hide them again.

        Parameters
        ----------
        query : its vector
        top : the best rows
        k : how many documents
        """
        seen = self._documents_of(top)
        counted = self._counted
        depth = len(top.rows)
        while len(seen.docnos) < k and len(top.rows):
            is_seen = self.generation.mask_of(seen.docnos)
            counted = counted & ~is_seen[self.vectors.documents]
            (top,) = self._exact.search(query[None], depth, counted)
            others = self._documents_of(top)
            seen = _FoundDocuments(
                np.concatenate([seen.docnos, others.docnos]),
                np.concatenate([seen.scores, others.scores]),
            )
            depth *= _DEEPER
        best = best_positions(seen.scores, k)
        return _FoundDocuments(seen.docnos[best], seen.scores[best])

    def _documents_of(self, top: TopRows) -> _FoundDocuments:
        """The documents of the best rows, each with the score of its first row."""
        seen, firsts = np.unique(self.vectors.documents[top.rows], return_index=True)
        return _FoundDocuments(seen, top.scores[firsts])

    def _named(self, found: Sequence[_FoundDocuments], k: int) -> list[Ranking]:
        """The ranking of each query, k documents deep: docids are read once for all of them."""
        all_docnos = np.concatenate([_NOTHING.docnos, *(best.docnos for best in found)])
        docnos, positions = np.unique(all_docnos, return_inverse=True)
        docids = np.array(self.generation.docids(docnos), dtype=object)[positions]
        rankings = []
        start = 0
        for best in found:
            end = start + len(best.docnos)
            rankings.append(rank_by_score(docids[start:end], best.scores, k))
            start = end
        return rankings

    def _best_documents(
        self, query: NDArray[np.float32], top: TopRows, k: int
    ) -> _FoundDocuments | None:
        """The k best documents, and those that tie with the last.

        None if more passages are needed to tell.

        Parameters
        ----------
        query : its vector, float32 (d,)
        top : the best rows
        k : how many documents
        """
        seen = self._documents_of(top)
        has_all = len(top.rows) >= self._n_counted
        if len(seen.docnos) < k and not has_all:
            return None
        totals = seen.scores
        if not self._has_best and self.aggregation is not PassageAggregation.FIRST:
            totals = self._aggregated(query, seen.docnos)
            if not has_all and np.partition(totals, -k)[-k] < top.scores[-1]:
                return None
        best = best_positions(totals, k)
        return _FoundDocuments(seen.docnos[best], totals[best])

    def _aggregated(
        self, query: NDArray[np.float32], docnos: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """The scores of documents by all their passages, float32 (m,)."""
        rows, counts = self.vectors.rows_of(docnos.astype(np.int64))
        starts = np.cumsum(counts) - counts
        return aggregate_groups(self.vectors.scores(query, rows), starts, self.aggregation)

    def excerpts(self, query: str, docids: Sequence[str], n: int = 1) -> dict[str, Excerpts]:
        """The n passages of each document whose inner products with the query are greatest.

        They are best first, by docid. A document without text, or that does not exist, has none.
        """
        docnos = self.generation.docnos(docids).tolist()
        best = {}
        for docno, scores in self._passage_scores(query, docnos).items():
            best[docno] = sorted(scores, key=lambda number: (-scores[number], number))[:n]
        excerpts_of = read_excerpts(self.generation, best, query)
        pairs = zip(docids, docnos, strict=True)
        return {docid: excerpts_of[docno] for docid, docno in pairs if docno in excerpts_of}

    def answering_excerpts(self, query: str, docids: Sequence[str]) -> dict[str, Excerpts]:
        """The passage of each document that a person is shown, see `answering_parts`.

        A document without text, or that does not exist, has none.
        """
        docnos = self.generation.docnos(docids).tolist()
        background = float(self.vectors.sample_mean @ self.vector_of(query))
        above: dict[int, dict[int, float]] = {}
        for docno, scores in self._passage_scores(query, docnos).items():
            above[docno] = {number: score - background for number, score in scores.items()}
        excerpts_of = answering_excerpts(self.generation, above, query)
        pairs = zip(docids, docnos, strict=True)
        return {docid: excerpts_of[docno] for docid, docno in pairs if docno in excerpts_of}

    def _passage_scores(self, query: str, docnos: Sequence[int]) -> dict[int, dict[int, float]]:
        """The inner products of a query and all passages of documents, by the passage's number,
        by the document's number. Numbers of documents below 0 are left out.
        """
        known = distinct_in_order(docno for docno in docnos if docno >= 0)
        rows, counts = self.vectors.rows_of(known)
        products = self.vectors.scores(self.vector_of(query), rows).tolist()
        numbers = self.vectors.numbers[rows].tolist()
        scores: dict[int, dict[int, float]] = {}
        start = 0
        for docno, count in zip(known.tolist(), counts.tolist(), strict=True):
            end = start + count
            scores[docno] = dict(zip(numbers[start:end], products[start:end], strict=True))
            start = end
        return scores

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        """The sentence of what a hit shows that is nearest to a query, by docid.

        Sentences are encoded as passages are, see `nearest_sentences`.
        """
        from pyserini_repbert.collection.nearest_sentences import nearest_sentences

        passages = {}
        for docid, excerpts in self.answering_excerpts(query, docids).items():
            if excerpts and excerpts[0].shown_text.strip():
                passages[docid] = excerpts[0]
        texts = [passage.shown_text for passage in passages.values()]
        vector = self.vector_of(query)
        reasons: dict[str, tuple[Reason, ...]] = {}
        nearest = nearest_sentences(vector, texts, self.embed_passages)
        for (docid, passage), sentence in zip(passages.items(), nearest, strict=True):
            start, _ = passage.body_span
            reason = Reason(
                ReasonKind.SENTENCE,
                self.name,
                sentence.words,
                sentence=passage.shown_text[sentence.start : sentence.end],
                start=start + sentence.start,
                end=start + sentence.end,
            )
            reasons[docid] = (reason,)
        return reasons

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, encoded as the collection's passages are, float32 (n, d)."""
        if not self._sentence_encoder:
            self._sentence_encoder.append(self._open_sentence_encoder())
        (encoder,) = self._sentence_encoder
        vectors: NDArray[np.float32] = encoder.embed(texts)
        return vectors

    def _open_sentence_encoder(self) -> TextDocumentEncoder:
        """The encoder of the collection's passages."""
        settings = self.generation.settings
        name = getattr(self.query_encoder, 'name', settings.encoder)
        precision = getattr(self.query_encoder, 'precision', settings.precision)
        with stored_name(f'collection {self.generation.folder}'):
            encoder = document_encoder(
                name, self.device_name, precision=precision, open_encoder=self.query_encoder
            )
        shortened: TextDocumentEncoder = truncated_as(encoder, settings)
        return shortened


def best_positions(totals: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The positions of the k greatest totals, and of those that tie with the last."""
    if len(totals) <= k:
        return np.arange(len(totals))
    return np.flatnonzero(totals >= np.partition(totals, -k)[-k])
