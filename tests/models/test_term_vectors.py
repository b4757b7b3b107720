"""Sparse vectors, by hand."""

import numpy as np
from hypothesis import given, strategies as st

from pyserini_repbert.models.term_vectors import NO_TERMS, TermVector, TermVectors, largest


def test_repeated_terms_are_summed():
    vector = TermVector.summed([7, 3, 7], [1.0, 0.5, 2.0])
    assert vector.as_dict() == {3: 0.5, 7: 3.0}
    assert len(TermVector.summed([], [])) == 0


def test_inner_product_is_over_the_terms_of_both():
    query = TermVector.summed([1, 5, 9], [2.0, 1.0, 4.0])
    passage = TermVector.summed([0, 5, 9], [7.0, 3.0, 0.5])
    assert query.dot(passage) == passage.dot(query) == 5.0
    assert query.dot(NO_TERMS) == NO_TERMS.dot(query) == 0
    assert passage.weights_of(np.asarray([9, 10, 0])).tolist() == [0.5, 0.0, 7.0]


def test_vectors_one_after_the_other():
    vectors = TermVectors.of(
        [TermVector.summed([1], [1.0]), NO_TERMS, TermVector.summed([0, 4], [2.0, 3.0])]
    )
    assert vectors.offsets.tolist() == [0, 1, 1, 3]
    assert [vector.as_dict() for vector in vectors] == [{1: 1.0}, {}, {0: 2.0, 4: 3.0}]
    assert len(TermVectors.of([])) == 0


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]), max_size=30), st.integers(1, 30))
def test_pruning_equals_sorting(values, r):
    weights = np.asarray(values, dtype=np.float32)
    expected = sorted(sorted(range(len(values)), key=lambda term: (-values[term], term))[:r])
    assert largest(weights, r).terms.tolist() == [term for term in expected if values[term]]
