"""Exact search by term weights: inner products of sparse vectors over a vocabulary.

Use it with a bundle of SPLADE's or EPIC's weights. Only passages that share a term with the query
are hits. The postings are in memory; for many millions of passages, export the bundle to Lucene.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyserini_repbert.data.ordering import rank_by_score
from pyserini_repbert.encode.term_weights import TermWeightsEncoder, check_fits
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.index.postings import Postings
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.models.term_vectors import TermVector
from pyserini_repbert.ranking import NO_HITS, NO_WORD, Query, Ranking, Run, Searcher
from pyserini_repbert.search.scores import merged, top_rows
from pyserini_repbert.trace import Trace


class TermWeightsSearcher(Searcher, recorded_as='ExactImpactSearcher'):
    """Searches a bundle of term weights exactly.

    A score is the inner product of the query's vector with the passage's, added up in float64.
    Equal scores are ordered by docid. Hits have texts where the index stores them.

    Parameters
    ----------
    index : a bundle, opened
    query_encoder : the encoder that the bundle was built with

    Attributes
    ----------
    size : the number of passages

    Raises
    ------
    InputError : a bundle whose vectors have every term
    MismatchError : the index was built with another encoder
    """

    def __init__(self, index: TermWeightsBundle, query_encoder: TermWeightsEncoder) -> None:
        check_fits(index, query_encoder)
        self.index = index
        self.query_encoder = query_encoder
        self.name = query_encoder.name
        self.size = len(index)
        self._postings = Postings(index)

    def __len__(self) -> int:
        return self.size

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        vectors = self.query_encoder.encode_queries([topic.text for topic in topics])
        rankings: Run = {
            topic.qid: self.of_vector(vector, k)
            for topic, vector in zip(topics, vectors, strict=True)
        }
        return rankings

    def of_vector(self, query: TermVector, k: int | None) -> Ranking:
        """The ranking of a query's vector, ties by docid; k None: all passages with a common term.

        Raises MismatchError for a term beyond the vocabulary.
        """
        if not len(query.terms):
            return NO_HITS
        vocabulary = self.index.settings.vocabulary
        if query.terms[0] < 0 or query.terms[-1] >= vocabulary:
            raise MismatchError(
                f'terms {query.terms[0]} to {query.terms[-1]} were given, index '
                f'{self.index.folder} has 0 to {vocabulary - 1}'
            )
        depth = len(self) if k is None else k
        parts = []
        starts = []
        for block in self._postings:
            scores = block.score(query).astype(np.float32)
            rows = np.flatnonzero(scores)
            parts.append(top_rows(scores[rows], rows, depth))
            starts.append(block.first_row)
        top = merged(parts, starts, depth)
        docids = np.array(self.index.docids(top.rows), dtype=object)
        return rank_by_score(docids, top.scores, k).with_background(NO_WORD)

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        return self.index.texts(docids)
