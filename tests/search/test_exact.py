import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings, strategies as st

from pyserini_repbert.index.quantized import quantize
from pyserini_repbert.search import exact, products, rounded
from pyserini_repbert.search.exact import ArrayVectors, ExactIndex
from pyserini_repbert.search.products import Float32Products, IndexPart, IndexParts
from pyserini_repbert.search.scores import pair_scores

BYTES = rounded.multiplies_bytes_exactly()


@pytest.fixture(autouse=True)
def number_of_threads():
    """A pool of threads sets the number for the whole process: it ends with the test."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class Vectors:
    """Blocks of an array."""

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return len(self.array)

    def blocks(self, size):
        for first in range(0, len(self.array), size):
            yield first, self.array[first : first + size]


def _search(vectors, queries, k, block=products.BLOCK_ROWS):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Float32Products, 'block_rows', block)
        return ExactIndex(Vectors(vectors)).search(queries, k)


def _expected(vectors, query, k):
    """All rows at least as good as the k-th, best first, lower rows first among equals."""
    scores = vectors.astype(np.float32) @ query
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    if k < len(order):
        order = [row for row in order if scores[row] >= scores[order[k - 1]]]
    return scores[order], order


@settings(deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(1, 5),
    st.integers(1, 70),
    st.integers(1, 17),
)
def test_equals_sorting_all_scores(seed, n, n_queries, k, block):
    """Small whole numbers: sums are exact, ties are many."""
    random = np.random.default_rng(seed)
    vectors = random.integers(-2, 3, (n, 3)).astype(np.float32)
    queries = random.integers(-2, 3, (n_queries, 3)).astype(np.float32)
    for query, found in zip(queries, _search(vectors, queries, k, block), strict=True):
        scores, rows = _expected(vectors, query, min(k, n))
        np.testing.assert_array_equal(found.scores, scores)
        assert sorted(found.rows.tolist()) == sorted(rows)
        np.testing.assert_array_equal(vectors[found.rows] @ query, found.scores)


@pytest.mark.parametrize('order', ['rising', 'falling', 'random'])
def test_the_order_of_the_vectors_does_not_matter(order):
    """Rising scores defeat the first block's thresholds, falling ones make them too high for
    what follows.
    """
    random = np.random.default_rng(0)
    vectors = random.standard_normal((5000, 8)).astype(np.float32)
    query = random.standard_normal(8).astype(np.float32)
    if order != 'random':
        vectors = vectors[np.argsort(vectors @ query)[:: 1 if order == 'rising' else -1]]
    found = _search(vectors, query[None], 100, 300)[0]
    scores = vectors @ query
    assert found.rows.tolist() == np.argsort(-scores)[:100].tolist()
    np.testing.assert_allclose(found.scores, np.sort(scores)[::-1][:100], rtol=1e-5)


def test_a_score_depends_on_its_pair_alone():
    random = np.random.default_rng(3)
    vectors, queries = (random.standard_normal((n, 300)).astype(np.float32) for n in (3000, 40))
    many = _search(vectors, queries, 50, 170)
    for query, top in zip(queries, many, strict=True):
        one = _search(vectors, query[None], 50)[0]
        assert (one.scores.tobytes(), one.rows.tolist()) == (
            top.scores.tobytes(),
            top.rows.tolist(),
        )
        few = _search(vectors[top.rows[:7]], query[None], 7)[0]
        assert few.scores.tobytes() == top.scores[:7].tobytes() and few.rows.tolist() == list(
            range(7)
        )
    np.testing.assert_allclose(
        many[0].scores, vectors[many[0].rows].astype(float) @ queries[0], rtol=1e-4
    )


def test_more_hits_than_vectors_and_no_vectors():
    vectors = np.eye(3, dtype=np.float32)
    assert _search(vectors, vectors[:1], 10)[0].rows.tolist() == [0, 1, 2]
    scores, rows = _search(np.empty((0, 3), np.float32), vectors[:1], 10)[0]
    assert len(scores) == len(rows) == 0
    assert _search(vectors, np.empty((0, 3), np.float32), 2) == []


def _adversarial(random, count, dimension):
    """Vectors of which each row may be a copy, nearly a copy, huge, tiny, subnormal, zero, or
    cancel in its sums.
    """
    vectors = random.standard_normal((count, dimension))
    for row in range(count):
        kind = random.integers(12)
        if kind < 3 and row:
            vectors[row] = vectors[random.integers(row)]
            vectors[row] *= 1 + (kind == 1) * 2.0 ** -random.integers(7, 26)
            vectors[row] += (
                (kind == 2) * random.standard_normal(dimension) * 2.0 ** -random.integers(7, 26)
            )
        elif kind == 3:
            vectors[row] *= 10.0 ** random.integers(-46, 39)
        elif kind == 4:
            vectors[row] = random.integers(-3, 4, dimension) * 10.0 ** -random.integers(0, 46)
        elif kind == 5:
            vectors[row, random.integers(dimension) :] *= 10.0 ** random.integers(-46, 30)
        elif kind == 6:
            half = dimension // 2
            vectors[row, half : 2 * half] = -vectors[row, :half] * (
                1 + 2.0 ** -random.integers(8, 25)
            )
    return np.clip(vectors, -3.4e38, 3.4e38)


@st.composite
def _hard(draw):
    """Vectors in float32, float16 or int8, queries, and a generator."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dimension = draw(st.sampled_from([1, 2, 7, 64, 200]))
    vectors = _adversarial(random, draw(st.integers(16, 120)), dimension)
    queries = _adversarial(random, draw(st.integers(1, 20)), dimension)
    kind = draw(st.sampled_from(['mild', 'mild queries', 'wild']))
    if kind != 'wild':
        queries = random.standard_normal(queries.shape)
        queries[:, dimension // 2 :] = queries[:, : dimension - dimension // 2]
    if kind == 'mild':
        vectors[np.abs(vectors).max(axis=1) > 1e6] = 1
    dtype = draw(st.sampled_from(['float32', 'float16', 'int8']))
    queries = queries.astype(np.float32)
    if dtype == 'int8':
        # A scale times 127 is somewhat greater than the greatest value.
        return quantize(vectors.clip(-3.3e38, 3.3e38).astype(np.float32)), queries, random
    vectors = vectors.astype(dtype)
    vectors[~np.isfinite(vectors)] = 6e4
    return vectors, queries, random


def _all_scores(vectors, queries):
    rows, owners = np.indices((len(vectors), len(queries))).reshape(2, -1)
    return pair_scores(queries, vectors, rows, owners).reshape(-1, len(queries))


@settings(deadline=None, max_examples=300)
@given(_hard())
@pytest.mark.filterwarnings('ignore:overflow encountered in cast')
def test_no_pair_that_reaches_a_threshold_is_missed(hard):
    """The thresholds are scores of pairs, thus as high as they may be."""
    vectors, queries, random = hard
    index = Vectors(vectors)
    scores = _all_scores(vectors, queries)
    numbers = np.arange(len(queries))
    ways = [Float32Products(index, queries, torch.device('cpu'), IndexParts([IndexPart(index)]))]
    copy = rounded.RoundedParts([rounded.RoundedVectors(index, vectors.shape[1])])
    for amx in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.cpu, '_is_amx_tile_supported', lambda amx=amx: amx)
            if copy.usable and (way := rounded.RoundedProducts(copy, queries)).usable:
                ways.append(way)
    in_bytes = rounded.RoundedParts([rounded.ByteVectors(index, vectors.shape[1])])
    singles = (
        [rounded.ByteProducts(in_bytes, query[None]) for query in queries]
        if in_bytes.usable and BYTES
        else []
    )
    for _ in range(30):
        thresholds = scores[random.integers(len(vectors), size=len(queries)), numbers]
        expected = scores >= thresholds
        for way in ways:
            rows, owners = way.reaching(0, vectors, torch.from_numpy(thresholds))
            is_reached = np.zeros_like(expected)
            is_reached[rows, owners] = True
            assert is_reached[expected].all()
        for number, single in enumerate(singles):
            if single.usable:
                rows, _ = single.reaching(
                    0, vectors, torch.from_numpy(thresholds[number : number + 1])
                )
                is_reached = np.zeros(len(expected), bool)
                is_reached[rows] = True
                assert is_reached[expected[:, number]].all()


@settings(deadline=None)
@given(_hard())
@pytest.mark.filterwarnings(
    'ignore:overflow encountered in cast', 'ignore:invalid value encountered in subtract'
)
def test_rounded_vectors_change_no_hit_and_no_digit(hard):
    """Against the scores of all pairs."""
    vectors, queries, random = hard
    # A query alone is searched in int8.
    assume(BYTES or len(queries) > 1)
    k = int(random.integers(1, len(vectors) // 8 + 1))
    index = ExactIndex(Vectors(vectors))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, 'has_native_bfloat16', lambda device: True)
        patch.setattr(exact, '_available_memory', lambda: 1 << 30)
        patch.setattr(exact, '_ROUNDED_ROWS', 0)
        patch.setattr(exact, '_ROUNDED_AFTER', 1)
        patch.setattr(exact, '_DEVIATIONS', 0)
        patch.setattr(rounded, 'BLOCK_ROWS', 128)
        patch.setattr(rounded, '_IN_THREADS', int(random.integers(1, 2 * len(queries))))
        # However many the machine has: some examples are searched in threads.
        patch.setattr(torch, 'get_num_threads', lambda: 2)
        patch.setattr(rounded, '_ROWS', int(random.integers(1, 150)))
        patch.setattr(Float32Products, 'block_rows', int(random.integers(1, 150)))
        searches = [index.search(queries, k) for _ in range(2)]
        if BYTES:
            searches.append([index.search(query[None], k)[0] for query in queries])
    assert index._copies
    for scores, *tops in zip(_all_scores(vectors, queries).T, *searches, strict=True):
        kth = np.sort(scores[~np.isnan(scores)])[::-1][:k][-1:]
        best = {row: score.tobytes() for row, score in enumerate(scores) if (score >= kth).any()}
        for top in tops:
            assert {row: score.tobytes() for row, score in zip(*top[::-1], strict=True)} == best
            assert (top.scores[:-1] >= top.scores[1:]).all()


class Joined:
    """Blocks of several arrays, none of which has rows of two."""

    def __init__(self, parts):
        self.parts = parts

    def __len__(self):
        return sum(len(part.vectors) for part in self.parts)

    def blocks(self, size):
        start = 0
        for part in self.parts:
            for first, vectors in part.vectors.blocks(size):
                yield start + first, vectors
            start += len(part.vectors)


@pytest.mark.parametrize(
    'n_queries', [pytest.param(1, marks=pytest.mark.skipif(not BYTES, reason='saturates')), 5]
)
@pytest.mark.parametrize('has_filter', [False, True])
def test_indexes_share_what_is_computed_of_their_parts(monkeypatch, n_queries, has_filter):
    monkeypatch.setattr(exact, 'has_native_bfloat16', lambda device: True)
    monkeypatch.setattr(exact, '_ROUNDED_ROWS', 0)
    monkeypatch.setattr(exact, '_ROUNDED_AFTER', 1)
    random = np.random.default_rng(n_queries)
    arrays = [random.standard_normal((n, 24)).astype(np.float32) for n in (300, 1, 470, 90)]
    first, single, second, newer = (IndexPart(ArrayVectors(array)) for array in arrays)
    queries = random.standard_normal((n_queries, 24)).astype(np.float32)
    kind = rounded.ByteVectors if n_queries == 1 else rounded.RoundedVectors

    def search(parts):
        index = Joined(parts)
        vectors = np.concatenate([next(part.vectors.blocks(1000))[1] for part in parts])
        allowed = np.arange(len(index)) % 3 > 0 if has_filter else None
        expected = ExactIndex(Vectors(vectors)).search(queries, 10, allowed)
        exact_index = ExactIndex(index, parts=parts)
        for _ in range(1 + len(parts)):
            tops = exact_index.search(queries, 10, allowed)
            for top, best in zip(tops, expected, strict=True):
                np.testing.assert_array_equal(top.rows, best.rows)
                np.testing.assert_array_equal(top.scores, best.scores)

    search([first, single, second])
    copies = [part.copies[kind] for part in (first, single, second)]
    largest = dict(first.largest)
    search([second, newer, first])
    assert first.copies[kind] is copies[0]
    assert second.copies[kind] is copies[2]
    assert newer.copies[kind] is not None
    assert first.largest == largest


@pytest.mark.skipif(not BYTES, reason='saturates')
def test_no_search_rounds_all_parts(monkeypatch):
    """To round a million vectors takes as long as ten questions."""
    monkeypatch.setattr(exact, 'has_native_bfloat16', lambda device: True)
    monkeypatch.setattr(exact, '_ROUNDED_ROWS', 0)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((320, 24)).astype(np.float32) for _ in range(3)]
    parts = [IndexPart(ArrayVectors(array)) for array in arrays]
    index = ExactIndex(Joined(parts), parts=parts)
    query = random.standard_normal((1, 24)).astype(np.float32)
    counts = []
    for _ in range(8):
        index.search(query, 10)
        counts.append(sum(rounded.ByteVectors in part.copies for part in parts))
    assert counts == [0, 0, 0, 0, 1, 2, 3, 3]


def test_the_first_search_rounds_a_small_part_that_is_missing(monkeypatch):
    """Otherwise the first search after each new document would read all vectors in float32."""
    monkeypatch.setattr(exact, 'has_native_bfloat16', lambda device: True)
    monkeypatch.setattr(exact, '_ROUNDED_ROWS', 0)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((n, 24)).astype(np.float32) for n in (320, 20, 320)]
    large, small, other = (IndexPart(ArrayVectors(array)) for array in arrays)
    queries = random.standard_normal((5, 24)).astype(np.float32)
    first_index = ExactIndex(Joined([large]), parts=[large])
    for _ in range(2):
        first_index.search(queries, 10)
    ExactIndex(Joined([large, small]), parts=[large, small]).search(queries, 10)
    assert rounded.RoundedVectors in small.copies
    ExactIndex(Joined([large, other]), parts=[large, other]).search(queries, 10)
    assert rounded.RoundedVectors not in other.copies


def test_a_query_alone_finds_its_best_rows_with_every_kernel(monkeypatch):
    """`make test-avx2` keeps oneDNN from the kernels that add up products of int8 exactly."""
    monkeypatch.setattr(exact, 'has_native_bfloat16', lambda device: True)
    monkeypatch.setattr(exact, '_ROUNDED_ROWS', 0)
    monkeypatch.setattr(exact, '_ROUNDED_AFTER', 0)
    vectors = np.random.default_rng(0).uniform(0.5, 0.6, (200, 64)).astype(np.float32)
    vectors[70] = 1
    index = ExactIndex(Vectors(vectors))
    (top,) = index.search(np.ones((1, 64), np.float32), 1)
    assert top.rows.tolist() == [70]


@pytest.mark.skipif(not BYTES, reason='saturates')
def test_one_question_rounds_nothing_however_often_it_is_searched(monkeypatch):
    """A fused question is searched twice or three times: rounding a million vectors takes seconds.

    Queries count by part, so that an index with new parts every few questions is rounded, too.
    """
    monkeypatch.setattr(exact, 'has_native_bfloat16', lambda device: True)
    monkeypatch.setattr(exact, '_ROUNDED_ROWS', 0)
    random = np.random.default_rng(0)
    part = IndexPart(ArrayVectors(random.standard_normal((320, 24)).astype(np.float32)))
    query = random.standard_normal((1, 24)).astype(np.float32)
    for _ in range(4):
        ExactIndex(part.vectors, parts=[part]).search(query, 10)
        assert rounded.ByteVectors not in part.copies
    ExactIndex(part.vectors, parts=[part]).search(query, 10)
    assert rounded.ByteVectors in part.copies


def test_threads_that_search_blocks_compute_alone():
    exact._pool.cache_clear()
    assert set(exact._pool(2).map(lambda _: torch.get_num_threads(), range(8))) == {1}
    assert torch.get_num_threads() == 2


def test_scores_are_those_of_float64_within_rounding():
    random = np.random.default_rng(5)
    vectors, queries = (random.standard_normal((n, 77)).astype(np.float32) for n in (50, 4))
    rows = np.repeat(np.arange(50), 4)
    owners = np.tile(np.arange(4), 50)
    for dtype in (np.float32, np.float16):
        stored = vectors.astype(dtype)
        expected = (stored.astype(float) @ queries.T.astype(float)).reshape(-1)
        np.testing.assert_allclose(
            pair_scores(queries, stored, rows, owners), expected, rtol=0, atol=1e-5
        )


@pytest.mark.parametrize(
    ('available', 'limit', 'expected'),
    [
        ('MemAvailable:  200 kB', None, 204_800),
        ('MemAvailable:  200 kB', 'max', 204_800),
        ('MemAvailable:  200 kB', '1000', 1000),
        ('MemAvailable:  200 kB', '900000', 204_800),
        ('Buffers:  7 kB', None, 0),
    ],
)
def test_available_memory_is_what_machine_and_container_leave(
    available, limit, expected, tmp_path, monkeypatch
):
    meminfo = tmp_path / 'meminfo'
    meminfo.write_text(f'MemTotal:  900 kB\n{available}\n')
    container = tmp_path / 'memory.max'
    if limit is not None:
        container.write_text(f'{limit}\n')
    paths = {'/proc/meminfo': meminfo, '/sys/fs/cgroup/memory.max': container}
    monkeypatch.setattr(exact, 'Path', paths.get)
    assert exact._available_memory() == expected


@pytest.mark.parametrize(
    ('length', 'is_usable'), [(1.0, True), (2.0**59, True), (2.0**61, False), (np.nan, False)]
)
def test_vectors_whose_products_may_overflow_are_not_rounded(length, is_usable):
    ones = Vectors(np.eye(3, 4, dtype=np.float32))
    long = Vectors(np.array([[1, 0, 0, 0], [0, length, 0, 0]], np.float32))
    assert rounded.RoundedVectors(long, 4).usable is is_usable
    copies = rounded.RoundedParts([rounded.RoundedVectors(ones, 4)])
    products = rounded.RoundedProducts(copies, long.array)
    assert products.usable is is_usable


def test_estimated_thresholds_by_hand():
    """Of 100 rows, a tenth and five deviations are 25.8: the 27th best score."""
    sample = torch.arange(100.0).flip(0).repeat(2, 1) * torch.tensor([[1.0], [-1.0]])
    assert exact._estimate_thresholds(sample, 0.1).tolist() == [73.0, -26.0]
    assert exact._estimate_thresholds(sample[:, :9], 1.0).tolist() == [91.0, -99.0]
    assert exact._estimate_thresholds(sample[:, :0], 0.1).tolist() == [-math.inf] * 2


def test_zeros_of_both_signs_tie():
    vectors = np.array([[-0.0], [1.0], [0.0], [-0.0], [0.0], [-1.0]], np.float32)
    (top,) = ExactIndex(Vectors(vectors)).search(np.ones((1, 1), np.float32), 3)
    assert top.rows.tolist() == [1, 0, 2, 3, 4]
