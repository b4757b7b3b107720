"""Postings of a bundle, by hand and against a dense matrix."""

from types import SimpleNamespace

import numpy as np
import pytest

from pyserini_repbert.errors import InputError
from pyserini_repbert.index import postings
from pyserini_repbert.index.postings import Postings, PostingsBlock
from pyserini_repbert.models.term_vectors import NO_TERMS, TermVector, TermVectors


def vector(**weights):
    """vector(t1=0.5, t3=2) -> the weights of terms 1 and 3."""
    terms = np.array([int(name[1:]) for name in weights], np.int64)
    return TermVector(terms, np.array(list(weights.values()), np.float32))


def test_a_block_by_hand():
    vectors = TermVectors.of([vector(t1=2, t3=1), NO_TERMS, vector(t0=4, t3=0.5)])
    block = PostingsBlock.of(vectors, 10, 5)
    assert block.starts.tolist() == [0, 1, 2, 2, 4, 4]
    assert block.rows.tolist() == [2, 0, 0, 2]
    assert block.weights.tolist() == [4, 2, 1, 0.5]
    assert block.score(vector(t0=1, t3=3)).tolist() == [3, 0, 5.5]
    assert block.score(vector(t2=1, t4=1)).tolist() == [0, 0, 0]
    assert block.score(NO_TERMS).tolist() == [0, 0, 0]


class Bundle:
    """Vectors, read in groups as a bundle gives them."""

    folder = 'here'

    def __init__(self, vectors, vocabulary, layout='blocks'):
        self.all = vectors
        self.settings = SimpleNamespace(layout=layout, vocabulary=vocabulary)
        self.shards = [SimpleNamespace(weights=TermVectors.of(vectors).weights)]

    def __len__(self):
        return len(self.all)

    def vectors(self, size):
        for first in range(0, len(self.all), size):
            yield first, TermVectors.of(self.all[first : first + size])


@pytest.mark.parametrize('vocabulary', [300, 70001])
def test_scores_equal_a_matrix_product(monkeypatch, vocabulary):
    """Many terms, in several blocks."""
    monkeypatch.setattr(postings, 'BLOCK_ROWS', 1024)
    random = np.random.default_rng(0)
    matrix = np.zeros((2500, vocabulary), np.float32)
    vectors = []
    for row in matrix:
        terms = np.sort(random.choice(vocabulary, 5, replace=False))
        row[terms] = random.random(5)
        vectors.append(TermVector(terms, row[terms]))
    index = Postings(Bundle(vectors, vocabulary))
    assert [block.first_row for block in index] == [0, 1024, 2048]
    query = TermVector(vectors[7].terms, random.random(5).astype(np.float32))
    scores = np.concatenate([block.score(query) for block in index])
    np.testing.assert_allclose(scores, matrix[:, query.terms] @ query.weights, rtol=1e-6)


def test_vectors_with_all_terms_are_refused():
    with pytest.raises(InputError, match='epic-prune'):
        Postings(Bundle([NO_TERMS], 3, layout='all'))
