"""Learned sparse search for documents: passages are scored by weights of terms, documents ranked by
their passages.

The search is exact, and adds up in float64. Only documents with a passage that shares a term with
the query are hits. Postings belong to shards, and are kept in memory: 6 bytes a weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.dense_search import best_positions
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.passage_vectors import PassageVectors
from pyserini_repbert.collection.sparse_model import SparseModel
from pyserini_repbert.data.runs import rank_by_score
from pyserini_repbert.encode.term_weights import TermWeightsEncoder
from pyserini_repbert.encode.text_encoder import check_model
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.term_vectors import TermVector, TermVectors
from pyserini_repbert.ranking import (
    NO_HITS,
    Query,
    Ranking,
    Reason,
    ReasonKind,
    Run,
    Searcher,
    WordWeight,
)
from pyserini_repbert.rerank.term_explanations import contributions
from pyserini_repbert.search.aggregation import PassageAggregation
from pyserini_repbert.search.documents_of_passages import aggregate_groups
from pyserini_repbert.systems.encoders import term_weights_encoder
from pyserini_repbert.trace import Trace


class TermWeightsDocumentSearcher(Searcher, recorded_as='TermSearcher'):
    """Searches the documents of a collection's generation by their passages' weights of terms.

    Parameters
    ----------
    generation : open, until the searcher is not used any more
    vectors : the rows of its passages
    query_encoder : the collection's learned sparse model
    aggregation : how passages' scores become document scores

    Attributes
    ----------
    takes_docids : whether the texts of topics are docids, see `by_documents`

    Raises InputError for a collection without a learned sparse model, MismatchError for another
    model.
    """

    takes_docids: bool = False

    def __init__(
        self,
        generation: Generation,
        vectors: PassageVectors,
        query_encoder: TermWeightsEncoder,
        aggregation: PassageAggregation | str = PassageAggregation.MAX,
    ) -> None:
        self.generation = generation
        self.query_encoder = query_encoder
        self.aggregation = PassageAggregation(aggregation)
        self._vectors = vectors
        check_model(generation.folder, vars(sparse_model_of(generation)), query_encoder)
        self._counted = vectors.live
        if self.aggregation is PassageAggregation.FIRST:
            self._counted = vectors.live & (vectors.numbers == 0)
        # Made now, not at the first search.
        for shard in vectors.shards:
            _ = shard.postings

    def within(self, wanted: DocumentFilter) -> Self:
        """The same search among the documents that a filter lets through."""
        documents = wanted.mask(self.generation)
        return self.with_settings(_counted=self._counted & documents[self._vectors.documents])

    def by_documents(self) -> Self:
        """As in `Ranker`: a document's query is the mean of its passages' weights of terms."""
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
        rankings: Run = {}
        if self.takes_docids:
            for topic in topics:
                # One more, as a document finds itself.
                depth = None if k is None else k + 1
                ranking = self.of_vector(self._document_vector(topic.text), depth)
                rankings[topic.qid] = ranking.without(topic.text)
            return rankings
        vectors = self.query_encoder.encode_queries([topic.text for topic in topics])
        for topic, vector in zip(topics, vectors, strict=True):
            rankings[topic.qid] = self.of_vector(vector, k)
        return rankings

    @property
    def gives_document_scores(self) -> bool:
        return True

    def document_scores(self, topic: Query, docids: Sequence[str], hits: Ranking) -> list[float]:
        score_of = dict(zip(hits.docids, hits.scores, strict=True))
        if all(docid in score_of for docid in docids):
            return [score_of[docid] for docid in docids]
        if self.takes_docids:
            query = self._document_vector(topic.text)
        else:
            query = self.query_encoder.encode_query(topic.text)
        ranking = self.of_vector(query, None)
        score_of = dict(zip(ranking.docids, ranking.scores, strict=True))
        return [score_of.get(docid, 0.0) for docid in docids]

    def of_vector(self, query: TermVector, k: int | None) -> Ranking:
        """The ranking of a query's weights of terms, ties by docid; k None: all hits."""
        if not len(query.terms) or not len(self._vectors):
            return NO_HITS
        scores = self._scores(query)
        found = np.flatnonzero(scores)
        if self.aggregation is PassageAggregation.FIRST:
            docnos = self._vectors.documents[found]
            totals = scores[found]
        else:
            is_found = self.generation.mask_of(self._vectors.documents[found])
            docnos = np.flatnonzero(is_found).astype(np.int32)
            totals = self._aggregated(scores, docnos)
        best = best_positions(totals, len(totals) if k is None else k)
        docids = np.array(self.generation.docids(docnos[best]), dtype=object)
        return rank_by_score(docids, totals[best], k)

    def _scores(self, query: TermVector) -> NDArray[np.float32]:
        """The scores of all rows, float32 (n,); 0 where a row does not count."""
        scores = np.zeros(len(self._vectors), np.float32)
        start = 0
        for shard in self._vectors.shards:
            for block in shard.postings:
                first = start + block.first_row
                scores[first : first + block.n_rows] = block.score(query)
            start += len(shard)
        scores[~self._counted] = 0
        return scores

    def _aggregated(
        self, scores: NDArray[np.float32], docnos: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """The scores of documents by all their passages, float32 (m,)."""
        if not len(docnos):
            return np.empty(0, np.float32)
        rows, counts = self._vectors.rows_of(docnos.astype(np.int64))
        starts = np.cumsum(counts) - counts
        return aggregate_groups(scores[rows], starts, self.aggregation)

    def reasons(self, query: str, docids: Sequence[str]) -> dict[str, tuple[Reason, ...]]:
        """The terms that add most to the score of each document's best passage, by docid.

        A document whose passages share no term with the query has none.
        """
        if self.takes_docids:
            vector = self._document_vector(query)
        else:
            vector = self.query_encoder.encode_query(query)
        reasons: dict[str, tuple[Reason, ...]] = {}
        docnos = self.generation.docnos(docids)
        for docid, docno in zip(docids, docnos.tolist(), strict=True):
            rows, _ = self._vectors.rows_of(np.array([docno], np.int64))
            passages = self._vectors.terms(rows)
            if passages:
                best = max(passages, key=vector.dot)
                words = self._words(vector, best)
                if words:
                    reasons[docid] = (Reason(ReasonKind.TERMS, self.name, words),)
        return reasons

    def _words(self, query: TermVector, passage: TermVector) -> tuple[WordWeight, ...]:
        """The terms of both with what they add to the score, the greatest first."""
        words = []
        for share in contributions(self.query_encoder, query, passage):
            if share['contribution'] > 0:
                words.append(WordWeight(share['term'], share['contribution']))
        return tuple(words)

    def _document_vector(self, docid: str) -> TermVector:
        """The mean weights of a document's passages; none where it is not here, or has no text."""
        docnos = self.generation.docnos([docid])
        rows, _ = self._vectors.rows_of(docnos)
        passages = TermVectors.of(self._vectors.terms(rows))
        weights = passages.weights / np.float32(max(len(rows), 1))
        return TermVector.summed(passages.terms, weights)


def sparse_model_of(generation: Generation) -> SparseModel:
    """The learned sparse model of a generation. Raises InputError where it has none."""
    model = generation.settings.sparse_model
    if model is None:
        raise InputError(
            'the collection has no learned sparse model: search another of its rankings'
        )
    return model


def open_sparse_encoder(generation: Generation, device: str = 'cpu') -> TermWeightsEncoder:
    """The encoder of queries of a collection's learned sparse model.

    Raises InputError where the collection has none.
    """
    model = sparse_model_of(generation)
    return term_weights_encoder(model.encoder, device, precision=model.precision)
