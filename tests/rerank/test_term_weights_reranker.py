"""A model of your own that weighs terms: it counts words. All answers are computed by hand."""

import numpy as np
import pytest

from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.encode.term_weights import PassageTokens, QueryTokens, TermWeightsEncoder
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.indexes.term_weights.searcher import TermWeightsSearcher
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.models.term_vectors import TermVector, TermVectors, largest
from pyserini_repbert.ranking import Candidate, Ranking
from pyserini_repbert.rerank.base import ExplanationSettings
from pyserini_repbert.rerank.term_weights import TermWeightsReranker

WORDS = ['cat', 'dog', 'fish', 'sea']


class WordCounts(TermWeightsEncoder):
    """A passage weighs its words by their number, a query each word by 2, and 'sea' by 1."""

    name = 'word-counts'
    variant = 'sparse_encoder'
    vocabulary = len(WORDS)
    limit = 8
    precision = Precision.FLOAT32
    weights_sha256 = '1' * 64
    expands_queries = True
    stores_all_terms = False
    usual_prune = 2
    storage_types = ('float32', 'uint8')

    def __init__(self, name='word-counts', device='cpu', precision='float32', max_length=None):
        self.asked = (name, device, str(precision), max_length)

    def term_names(self, terms):
        return [WORDS[term] for term in terms]

    def encode_queries(self, queries, token_budget=None):
        return [self.query_tokens(query).vector for query in queries]

    def encode_pruned(self, passages, r=0, token_budget=None, on_progress=int):
        vectors = []
        for text in passages:
            counts = np.array([text.split().count(word) for word in WORDS], np.float32)
            vectors.append(largest(counts, r))
        on_progress(len(vectors))
        return TermVectors.of(vectors)

    def query_tokens(self, query):
        ids = [WORDS.index(word) for word in query.split()]
        vector = TermVector.summed([*ids, 3], [2.0] * len(ids) + [1.0])
        return QueryTokens(ids, np.full(len(ids), 2, np.float32), vector)

    def passage_tokens(self, passage):
        return PassageTokens([WORDS.index(word) for word in passage.split()])


class WordCountReranker(TermWeightsReranker):
    encoder_class = WordCounts


@pytest.fixture
def bundle(tmp_path):
    """Two weights a passage: the single dog of 'b' is not stored."""
    passages = [('a', 'cat cat sea'), ('b', 'cat cat fish fish dog')]
    encode_corpus(passages, WordCounts(), tmp_path / 'index', store_text=True)
    return TermWeightsBundle(tmp_path / 'index')


def scores(hits):
    return {hit.docid: hit.score for hit in hits}


def test_an_index_is_searched(bundle):
    assert (bundle.settings.prune, bundle.settings.weights) == (2, 'float32')
    hits = TermWeightsSearcher(bundle, WordCounts()).search('cat dog', 5)
    assert scores(hits) == {'a': 2 * 2 + 1, 'b': 2 * 2}


def test_candidates_are_scored_by_their_vector_or_their_text(bundle):
    reranker = WordCountReranker('any', 'cpu', bundle, max_length=5)
    assert reranker.encoder.asked == ('any', 'cpu', 'float32', 5)
    candidates = [Candidate('a'), Candidate('b'), Candidate('c', text='dog dog sea cat')]
    # Two weights are kept of a text that the index lacks: 2 dogs, and of the others the first.
    expected = {'a': 5, 'b': 4, 'c': 2 * 2 + 2 * 1}
    assert scores(reranker.rerank('cat dog', candidates)) == expected
    texts = [Candidate('b', text='cat cat fish fish dog')]
    assert scores(WordCountReranker('any').rerank('cat dog', texts)) == {'b': 2 * 2 + 2}


def test_a_score_is_explained_by_terms(bundle):
    reranker = WordCountReranker('any', 'cpu', bundle)
    hits = Ranking(['b'], [0.0])
    (passage,) = reranker.explain('cat dog', hits, ExplanationSettings(top=1))['passages']
    assert passage == {
        'docid': 'b',
        'score': 4.0,
        'quality': None,
        'precision': 'float32',
        'query_terms': [
            {'term': 'cat', 'weight': 2.0},
            {'term': 'dog', 'weight': 2.0},
            {'term': 'sea', 'weight': 1.0},
        ],
        'passage_terms': [
            {'term': 'cat', 'weight': 2.0},
            {'term': 'cat', 'weight': 2.0},
            {'term': 'fish', 'weight': 2.0},
            {'term': 'fish', 'weight': 2.0},
            {'term': 'dog', 'weight': 0.0},
        ],
        'expansions': [],
        'contributions': [
            {'term': 'cat', 'query_weight': 2.0, 'passage_weight': 2.0, 'contribution': 4.0}
        ],
    }
    assert reranker.reason('cat dog', Candidate('c', text='dog sea')) == 'dog 2.00 + sea 1.00'
