"""Exact search in NumPy finds what exact search in PyTorch finds."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pyserini_repbert.index.quantized import quantize
from pyserini_repbert.search import quick_exact
from pyserini_repbert.search.exact import ExactIndex
from pyserini_repbert.search.parts import ArrayVectors
from pyserini_repbert.search.quick_exact import QuickIndex
from pyserini_repbert.search.scores import NotFiniteError


@pytest.fixture(autouse=True)
def _without_pytorch(monkeypatch):
    monkeypatch.setattr(quick_exact, 'needs_pytorch', lambda n_texts: False)
    monkeypatch.setattr(quick_exact, '_BLOCK_ROWS', 7)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(1, 40),
    k=st.integers(1, 45),
    stored=st.sampled_from(['float32', 'float16', 'int8']),
    has_filter=st.booleans(),
)
def test_it_finds_what_pytorch_finds(seed, n_rows, k, stored, has_filter):
    rng = np.random.default_rng(seed)
    # Few different values: many scores are equal.
    vectors = rng.integers(-2, 3, (n_rows, 3)).astype(np.float32)
    queries = rng.integers(-2, 3, (2, 3)).astype(np.float32)
    held = quantize(vectors) if stored == 'int8' else vectors.astype(stored)
    allowed = rng.random(n_rows) < 0.6 if has_filter else None
    index = QuickIndex(ArrayVectors(held))
    expected = ExactIndex(ArrayVectors(held)).search(queries, k, allowed)
    found = index.search(queries, k, allowed)
    assert 'in_pytorch' not in vars(index)
    for top, other in zip(found, expected, strict=True):
        assert np.array_equal(top.scores, other.scores)
        # Ties are ordered by docid later.
        assert sorted(top.rows) == sorted(other.rows)


def test_near_ties_are_decided_by_scores():
    rng = np.random.default_rng(0)
    direction = rng.normal(size=384).astype(np.float32)
    vectors = direction + rng.normal(size=(300, 384)).astype(np.float32) * np.float32(1e-6)
    (found,) = QuickIndex(ArrayVectors(vectors)).search(direction[None], 10)
    (expected,) = ExactIndex(ArrayVectors(vectors)).search(direction[None], 10)
    assert np.array_equal(found.scores, expected.scores)
    assert set(found.rows) == set(expected.rows)


def test_a_vector_that_is_not_finite_is_an_error():
    vectors = np.ones((20, 3), np.float32)
    vectors[13, 1] = np.nan
    with pytest.raises(NotFiniteError):
        QuickIndex(ArrayVectors(vectors)).search(np.ones((1, 3), np.float32), 2)


@pytest.mark.parametrize('factor', [2.0**64, 2.0**100])
def test_great_numbers_are_left_to_pytorch(factor):
    vectors = np.full((20, 3), factor, np.float32)
    index = QuickIndex(ArrayVectors(vectors))
    index.search(np.full((1, 3), 2.0**25, np.float32), 2)
    assert ('in_pytorch' in vars(index)) == (factor > 2.0**90)
