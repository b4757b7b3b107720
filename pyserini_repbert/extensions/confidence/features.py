"""What a search of a collection knows of how well its hits fit: the features of a question's hits.

All come from what a search has computed, except for the question's background: its products with a
fixed sample of passages, one small multiplication.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.bm25_search import Bm25DocumentSearcher
from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
from pyserini_repbert.collection.noted_rankings import KNOWN_HITS
from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.extensions.confidence.models import HIT_FEATURES, TOP
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.search.documents_of_passages import aggregate_groups

# So near to 0 and 1 a reranker's probability may be: its log-odds have to be finite.
_LEAST_RELEVANCE = 1e-6
_MARGIN = HIT_FEATURES.index('margin')


class HitFeatures:
    """Gives the features of hits of one generation.

    Parameters
    ----------
    dense : the search of its vectors; all its documents count as background
    words : its BM25; None without one
    """

    def __init__(
        self, dense: DenseDocumentSearcher, words: Bm25DocumentSearcher | None = None
    ) -> None:
        self._dense = dense
        self._words = words

    def of_hits(
        self,
        query: str,
        docids: Sequence[str],
        rankings: Mapping[str, Ranking],
        relevances: Mapping[str, float] | None = None,
    ) -> NDArray[np.float64]:
        """The features of a question's hits, float64 (hits, features), by `HIT_FEATURES`:

        - the product of the question's vector and the best passage's vector
        - its distance from the mean of the background, in the background's deviations
        - the share of the weight of the question's words that BM25 found in the document
        - the mean over rankings of 1 / log2(1 + rank)
        - the first feature less the mean of the best `TOP` hits'
        - with a reranker: the log-odds of its probability; of a hit that it did not read, the least
          of the others'

        A document that is not among the first `KNOWN_HITS` hits of a ranking counts as not found
        there.

        Parameters
        ----------
        query : the question
        docids : of the hits, best first
        rankings : of the search, by `CollectionRanking`
        relevances : what the last reranker says of the hits that it read, as `relevances_of` gives
            them; None: nothing was reranked
        """
        if not docids:
            return np.empty((0, len(HIT_FEATURES) + (relevances is not None)))
        vector = self._dense.vector_of(query)
        products = self._products(vector, docids)
        distances = self._distances(vector, products)
        margins = products - products[:TOP].mean()
        first_hits = {name: ranking[:KNOWN_HITS] for name, ranking in rankings.items()}
        words = self._shares_of_words(query, docids, first_hits)
        agreement = _agreement(docids, first_hits)
        columns = [products, distances, words, agreement, margins]
        if relevances is not None:
            columns.append(_log_odds(docids, relevances))
        return np.stack(columns, axis=1)

    def _distances(
        self, vector: NDArray[np.float32], products: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Products of a question less the background's mean, in its deviations, (hits,)."""
        background = self._dense.vectors.sample @ vector
        mean = float(background.mean())
        background -= mean
        # As `std`, in a fifth of the time.
        spread = math.sqrt(float(background @ background) / len(background))
        return (products - mean) / (spread or 1.0)

    def _products(self, vector: NDArray[np.float32], docids: Sequence[str]) -> NDArray[np.float64]:
        """The product of each document's best passage, (hits,); 0 of one without text."""
        vectors = self._dense.vectors
        rows, counts = vectors.rows_of(self._dense.generation.docnos(docids))
        has_text = counts > 0
        products = np.zeros(len(docids))
        if has_text.any():
            starts = (np.cumsum(counts) - counts)[has_text]
            scores = vectors.scores(vector, rows)
            products[has_text] = aggregate_groups(scores, starts, self._dense.aggregation.MAX)
        return products

    def _shares_of_words(
        self, query: str, docids: Sequence[str], rankings: Mapping[str, Ranking]
    ) -> NDArray[np.float64]:
        """BM25's score of each document divided by the greatest possible score, (hits,); 0 without
        a score.
        """
        ranking = rankings.get(str(CollectionRanking.BM25))
        if self._words is None or not ranking:
            return np.zeros(len(docids))
        greatest = self._words.greatest_score(query)
        score_of = dict(zip(ranking.docids, ranking.scores, strict=True))
        scores = np.array([score_of.get(docid, 0.0) for docid in docids])
        return scores / greatest if greatest > 0 else np.zeros(len(docids))


def _agreement(docids: Sequence[str], rankings: Mapping[str, Ranking]) -> NDArray[np.float64]:
    """The mean over rankings of 1 / log2(1 + rank) of each document, (hits,)."""
    values = np.zeros(len(docids))
    for ranking in rankings.values():
        rank_of = {docid: rank for rank, docid in enumerate(ranking.docids, 1)}
        ranks = np.array([rank_of.get(docid, np.inf) for docid in docids])
        values += 1 / np.log2(1 + ranks)
    return values / max(len(rankings), 1)


def _log_odds(docids: Sequence[str], relevances: Mapping[str, float]) -> NDArray[np.float64]:
    """The log-odds of each document's relevance, (hits,)."""
    least = min(relevances.values(), default=0.0)
    values = np.array([relevances.get(docid, least) for docid in docids])
    values = values.clip(_LEAST_RELEVANCE, 1 - _LEAST_RELEVANCE)
    odds: NDArray[np.float64] = np.log(values / (1 - values))
    return odds


def question_features(hits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The features of a question, (features,): the greatest of its best `TOP` hits' features.

    Instead of the margins' greatest it has the first two products' distance.
    """
    if not len(hits):
        return np.zeros(hits.shape[1])
    best = hits[:TOP]
    features: NDArray[np.float64] = best.max(axis=0)
    products = np.sort(best[:, 0])[::-1]
    features[_MARGIN] = products[0] - products[1] if len(products) > 1 else 0.0
    return features
