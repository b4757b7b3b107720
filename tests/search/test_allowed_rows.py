"""Exact search among some of the rows equals a search that leaves the others out afterwards."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from pyserini_repbert.search import exact, products
from pyserini_repbert.search.exact import ArrayVectors, ExactIndex
from pyserini_repbert.search.products import Float32Products
from pyserini_repbert.search.rounded import (
    ByteProducts,
    ByteVectors,
    RoundedParts,
    RoundedProducts,
    RoundedVectors,
    multiplies_bytes_exactly,
)


def expected(vectors, query, k, allowed):
    """The allowed rows at least as good as the k-th, as {row: score}."""
    scores = vectors @ query
    rows = np.flatnonzero(allowed)
    if k < len(rows):
        kth = np.sort(scores[rows])[::-1][k - 1]
        rows = rows[scores[rows] >= kth]
    return {int(row): float(scores[row]) for row in rows}


@settings(deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(1, 20),
    st.integers(1, 70),
    st.integers(1, 17),
    st.sampled_from([0.0, 0.03, 0.5, 0.95, 1.0]),
)
def test_equals_leaving_out_afterwards(seed, n, n_queries, k, block, share):
    """Small whole numbers: sums are exact, ties are many."""
    random = np.random.default_rng(seed)
    vectors = random.integers(-2, 3, (n, 3)).astype(np.float32)
    queries = random.integers(-2, 3, (n_queries, 3)).astype(np.float32)
    allowed = random.random(n) < share
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Float32Products, 'block_rows', block)
        found = ExactIndex(ArrayVectors(vectors)).search(queries, k, allowed)
    for query, top in zip(queries, found, strict=True):
        assert dict(zip(top.rows.tolist(), top.scores.tolist(), strict=True)) == expected(
            vectors, query, k, allowed
        )
        assert (np.diff(top.scores) <= 0).all()


@pytest.mark.parametrize('n_queries', [1, 40])
@pytest.mark.parametrize('share', [0.01, 0.1, 0.9])
def test_estimated_thresholds_lose_no_allowed_row(monkeypatch, n_queries, share):
    """The best rows of all are not allowed: a threshold from all rows would lose every hit."""
    monkeypatch.setattr(exact, 'SAMPLE_ROWS', 64)
    monkeypatch.setattr(products, 'SAMPLE_ROWS', 64)
    random = np.random.default_rng(1)
    vectors = random.standard_normal((6000, 8)).astype(np.float32)
    queries = random.standard_normal((n_queries, 8)).astype(np.float32)
    best = np.argsort(-(vectors @ queries[0]))
    allowed = np.zeros(6000, np.bool_)
    allowed[best[int(6000 * (1 - share)) :]] = True
    for query, top in zip(
        queries, ExactIndex(ArrayVectors(vectors)).search(queries, 20, allowed), strict=True
    ):
        scores = np.where(allowed, vectors @ query, -np.inf)
        assert top.rows.tolist() == np.argsort(-scores)[:20].tolist()


@pytest.mark.skipif(not multiplies_bytes_exactly(), reason='int8 saturates')
def test_rounded_copies_sample_allowed_rows_alone():
    random = np.random.default_rng(2)
    vectors = random.standard_normal((500, 8)).astype(np.float32)
    allowed = random.random(500) < 0.3
    query = random.standard_normal((1, 8)).astype(np.float32)
    parts = [ArrayVectors(vectors[:200]), ArrayVectors(vectors[200:])]
    bytes_of_parts = RoundedParts([ByteVectors(part, 8) for part in parts])
    rounded_parts = RoundedParts([RoundedVectors(part, 8) for part in parts])
    in_bytes = ByteProducts(bytes_of_parts, query).sample(allowed)
    in_bfloat16 = RoundedProducts(rounded_parts, query).sample(allowed)
    expected_products = torch.from_numpy(query @ vectors[allowed].T)
    torch.testing.assert_close(in_bytes, expected_products, atol=0.1, rtol=0)
    torch.testing.assert_close(in_bfloat16.float(), expected_products, atol=0.1, rtol=0)
