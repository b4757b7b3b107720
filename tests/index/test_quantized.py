"""Vectors in int8, and what smaller vectors lose."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from pyserini_repbert.index.overlap import measure_overlap
from pyserini_repbert.index.quantized import Int8Vectors, quantize, stored_as

FINITE = st.floats(-(2.0**100), 2.0**100, width=32)


def test_by_hand():
    vectors = np.array([[1.0, -0.4, 0.0], [0.0, 0.0, 0.0], [0.25, 254.0, -2.9]], np.float32)
    quantized = quantize(vectors)
    assert quantized.numbers.tolist() == [[127, -51, 0], [0, 0, 0], [0, 127, -1]]
    np.testing.assert_allclose(quantized.scales, [1 / 127, 2.0**-100, 2.0], rtol=2e-5)
    assert quantized.scales[2] == 2.0
    np.testing.assert_array_equal(quantized[[2, 1]], [[0, 254, -2], [0, 0, 0]])


@settings(deadline=None)
@given(arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=FINITE))
def test_what_was_read_is_stored_as_the_same_bytes(vectors):
    once = quantize(vectors)
    again = quantize(np.asarray(once))
    np.testing.assert_array_equal(again.numbers, once.numbers)
    np.testing.assert_array_equal(again.scales, once.scales)
    # no value is further away than half a scale, but for the division's rounding
    errors = np.abs(np.asarray(once, np.float64) - vectors)
    assert (errors <= 0.5001 * once.scales[:, None]).all()
    assert (once.scales <= np.maximum(np.abs(vectors).max(axis=1) / 126.99, 2.0**-100)).all()


def test_slices_are_views_and_other_rows_are_float32():
    vectors = quantize(np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32))
    values = np.asarray(vectors)
    assert values.dtype == np.float32 and vectors.shape == (9, 4) and len(vectors) == 9
    view = vectors[2:8:2]
    assert isinstance(view, Int8Vectors) and np.shares_memory(view.numbers, vectors.numbers)
    np.testing.assert_array_equal(view, values[2:8:2])
    np.testing.assert_array_equal(vectors[3], values[3])
    mask = values[:, 0] > 0
    for rows in ([4, 1, 4], np.array([], np.int64), mask):
        assert vectors[rows].dtype == np.float32
        np.testing.assert_array_equal(vectors[rows], values[rows])
    np.testing.assert_array_equal(np.concatenate([vectors, view]), [*values, *values[2:8:2]])
    assert np.asarray(vectors, np.float64).dtype == np.float64


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf, np.finfo(np.float32).max])
def test_what_is_not_finite_in_int8_shows(value):
    quantized = np.asarray(quantize(np.array([[1, value, 0]], np.float32)))
    assert not np.isfinite(quantized).all()


def test_the_overlap_by_hand():
    """Two queries, of rows 0 and 1, among three rows: one hit of two stays for one of them."""
    angles = np.linspace(0, 1, 40)
    whole = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    same = measure_overlap(whole, whole, lambda vectors: vectors)
    assert (same.queries, same.at_10, same.at_100) == (40, 1.0, 1.0)

    shortened = measure_overlap(whole, whole[:, :1], lambda vectors: vectors[:, :1])
    # Of the cosine alone, the best rows are the first, whatever is searched for.
    scores = whole @ whole.T
    np.fill_diagonal(scores, -np.inf)
    common = 0
    for query in range(40):
        expected = set(np.argsort(-scores[query], kind='stable')[:10].tolist())
        common += len(expected & set([row for row in range(11) if row != query][:10]))
    assert shortened.at_10 == pytest.approx(common / 400) and shortened.at_10 < 0.7
    # All others are among the best 100.
    assert shortened.at_100 == 1.0


def test_the_overlap_is_of_passages_throughout_a_shard(monkeypatch):
    monkeypatch.setattr('pyserini_repbert.index.overlap._ROWS', 64)
    random = np.random.default_rng(1)
    whole = random.standard_normal((1000, 8)).astype(np.float32)
    overlap = measure_overlap(whole, quantize(whole), lambda vectors: vectors)
    assert overlap.queries == 100
    stored = np.asarray(stored_as(whole, 'int8'))
    rows = np.arange(0, 1000, 10)
    shares = {10: [], 100: []}
    for row in rows:
        others = np.delete(np.arange(1000), row)
        expected, nearest = (
            others[np.argsort(-(vectors[others].astype(float) @ whole[row].astype(float)))]
            for vectors in (whole, stored)
        )
        for depth, values in shares.items():
            values.append(len(set(expected[:depth]) & set(nearest[:depth])) / depth)
    assert overlap.at_10 == pytest.approx(np.mean(shares[10]))
    assert overlap.at_100 == pytest.approx(np.mean(shares[100]))
    assert 0.9 < overlap.at_100 < 1


def test_one_passage_has_no_other_to_find():
    whole = np.ones((1, 3), np.float32)
    overlap = measure_overlap(whole, quantize(whole), lambda vectors: vectors)
    assert (overlap.queries, overlap.at_10, overlap.at_100) == (1, 1.0, 1.0)
