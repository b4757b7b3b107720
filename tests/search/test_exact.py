from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from pyserini_repbert.search import exact


class Vectors:
    """Blocks of an array."""

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return len(self.array)

    def blocks(self, size):
        for first in range(0, len(self.array), size):
            yield first, self.array[first : first + size]


def _expected(vectors, query, k):
    """All rows at least as good as the k-th, best first, lower rows first among equals."""
    scores = vectors.astype(np.float32) @ query
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    if k < len(order):
        order = [row for row in order if scores[row] >= scores[order[k - 1]]]
    return scores[order], order


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 5), st.integers(1, 70), st.integers(1, 17))
def test_equals_sorting_all_scores(seed, n, n_queries, k, block):
    """Small whole numbers: sums are exact, ties are many."""
    random = np.random.default_rng(seed)
    vectors = random.integers(-2, 3, (n, 3)).astype(np.float32)
    queries = random.integers(-2, 3, (n_queries, 3)).astype(np.float32)
    for query, found in zip(queries, exact.search(Vectors(vectors), queries, k, block_rows=block), strict=True):
        scores, rows = _expected(vectors, query, min(k, n))
        np.testing.assert_array_equal(found.scores, scores)
        assert sorted(found.rows.tolist()) == sorted(rows)
        np.testing.assert_array_equal(vectors[found.rows] @ query, found.scores)


@pytest.mark.parametrize('order', ['rising', 'falling', 'random'])
def test_the_order_of_the_vectors_does_not_matter(order):
    """Rising scores defeat the first block's thresholds, falling ones make them too high for what follows."""
    random = np.random.default_rng(0)
    vectors = random.standard_normal((5000, 8)).astype(np.float32)
    query = random.standard_normal(8).astype(np.float32)
    if order != 'random':
        vectors = vectors[np.argsort(vectors @ query)[:: 1 if order == 'rising' else -1]]
    found = exact.search(Vectors(vectors), query[None], 100, block_rows=300)[0]
    scores = vectors @ query
    assert found.rows.tolist() == np.argsort(-scores)[:100].tolist()
    np.testing.assert_allclose(found.scores, np.sort(scores)[::-1][:100], rtol=1e-5)


def test_topics_one_after_the_other_do_not_cost_a_second_pass(monkeypatch):
    """The queries' own topics fill the first block, or the last: its scores say nothing about the other blocks."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((60, 16)).astype(np.float32)
    vectors = np.repeat(centres, 100, axis=0) + 0.7 * random.standard_normal((6000, 16)).astype(np.float32)
    products, multiplied = exact._products, []
    monkeypatch.setattr(exact, '_products', lambda *a: multiplied.append(len(a[1])) or products(*a))
    for own in (centres[:20], centres[-20:]):
        multiplied.clear()
        found = exact.search(Vectors(vectors), own, 50, block_rows=1000)
        assert [set(top.rows.tolist()) for top in found] == [
            set(np.argsort(-row)[:50].tolist()) for row in own @ vectors.T
        ]
        assert sum(multiplied) < 1.6 * len(vectors)  # all of them once, and the sample


def test_nearly_all_hits_of_many_queries_take_one_pass(monkeypatch):
    random = np.random.default_rng(0)
    vectors, queries = (random.standard_normal((n, 8)).astype(np.float32) for n in (5000, 20))
    products, multiplied = exact._products, []
    monkeypatch.setattr(exact, '_products', lambda *a: multiplied.append(len(a[1])) or products(*a))
    found = exact.search(Vectors(vectors), queries, 4990, block_rows=1000)
    assert sum(multiplied) == len(vectors)
    assert all(len(top.rows) == 4990 for top in found)


def test_scores_do_not_depend_on_which_queries_are_searched_again(monkeypatch):
    """A sample that misleads about some queries costs a second pass, and no hit."""
    random = np.random.default_rng(0)
    vectors, queries = (random.standard_normal((n, 384)).astype(np.float32) for n in (5000, 37))
    guessed, products, multiplied = exact._guessed, exact._products, []
    too_high = torch.arange(37) % 3 == 0
    monkeypatch.setattr(exact, '_guessed', lambda *a: guessed(*a) + 1000 * too_high)
    monkeypatch.setattr(exact, '_products', lambda *a: multiplied.append(len(a[1])) or products(*a))
    found = exact.search(Vectors(vectors), queries, 60, block_rows=250)
    assert sum(multiplied) > 2 * len(vectors)
    blocks = [products(torch.from_numpy(queries), vectors[first : first + 250]) for first in range(0, 5000, 250)]
    for scores, top in zip(torch.cat(blocks, dim=1).numpy(), found, strict=True):
        assert top.scores.tobytes() == scores[top.rows].tobytes()
        assert top.scores.tobytes() == np.sort(scores)[::-1][:60].tobytes()


def test_many_queries_are_searched_in_groups(monkeypatch):
    monkeypatch.setattr(exact, 'QUERY_GROUP', 4)
    random = np.random.default_rng(1)
    vectors, queries = (random.standard_normal((n, 6)).astype(np.float32) for n in (200, 11))
    done = []
    found = exact.search(Vectors(vectors), queries, 3, block_rows=64, on_progress=done.append)
    assert done == [4, 4, 3]
    for top, query in zip(found, queries, strict=True):
        assert top.rows.tolist() == np.argsort(-(vectors @ query))[:3].tolist()


def test_half_precision_vectors_are_multiplied_in_single_precision():
    random = np.random.default_rng(2)
    vectors = random.standard_normal((50, 300)).astype(np.float16)
    query = random.standard_normal(300).astype(np.float32)
    found = exact.search(Vectors(vectors), query[None], 50)[0]
    np.testing.assert_allclose(found.scores, np.sort(vectors.astype(np.float32) @ query)[::-1], rtol=1e-4, atol=1e-4)


def test_more_hits_than_vectors_and_no_vectors():
    vectors = np.eye(3, dtype=np.float32)
    assert exact.search(Vectors(vectors), vectors[:1], 10)[0].rows.tolist() == [0, 1, 2]
    scores, rows = exact.search(Vectors(np.empty((0, 3), np.float32)), vectors[:1], 10)[0]
    assert len(scores) == len(rows) == 0
    assert exact.search(Vectors(vectors), np.empty((0, 3), np.float32), 2) == []
