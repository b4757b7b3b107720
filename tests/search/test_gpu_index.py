"""Search on GPUs, without one: a device that counts what is copied to it, and copies as late as
it may.
"""

import contextlib

import numpy as np
import pytest
import torch
from vector_bundles import RowEncoder, clustered, write_bundle

from pyserini_repbert.errors import InputError
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.indexes.dense.searcher import DenseSearcher
from pyserini_repbert.search import gpu, gpu_index
from pyserini_repbert.search.gpu_index import GpuIndex


class Event:
    """Work that is done when somebody waits for it."""

    def __init__(self, work=lambda: None):
        self.work = work

    def synchronize(self):
        work = self.work
        self.work = lambda: None
        work()


class FakeGpu(gpu.Gpu):
    """Copies when their end is waited for, and not before; until then the target holds NaN."""

    def __init__(self, free=1 << 30):
        self.device = torch.device('cpu')
        self.free = free
        self.rows_copied = self.passes = self.under_way = self.most_under_way = 0

    def free_memory(self):
        return self.free

    def products(self, queries, block):
        return queries.float() @ block.float().T

    def streamed(self, *given):
        self.passes += 1
        return super().streamed(*given)

    def pinned(self, shape, dtype):
        return torch.full(shape, torch.nan, dtype=dtype)

    def copy(self, source, target, after):
        def work():
            target.copy_(source)
            self.under_way -= 1

        after.synchronize()
        target.fill_(torch.nan)
        self.rows_copied += len(source)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        return Event(work)

    def mark(self):
        return Event()

    def wait(self, event):
        event.synchronize()

    def on_device(self):
        return contextlib.nullcontext()


@pytest.fixture(scope='module')
def vectors():
    return clustered(1000).astype(np.float16).astype(np.float32)


@pytest.fixture(scope='module')
def bundle(vectors, tmp_path_factory):
    return DenseBundle(write_bundle(tmp_path_factory.mktemp('gpu') / 'index', vectors))


def opened(bundle, *gpus, dtype='float16'):
    return GpuIndex(bundle, 16, torch.device('cuda'), dtype, gpus)


def check(found, vectors, queries, k):
    """Against NumPy: float16 factors, float32 sums."""
    queries = queries.astype(np.float16).astype(np.float32)
    assert len(found) == len(queries)
    for top, query in zip(found, queries, strict=True):
        scores = vectors @ query
        order = np.lexsort((np.arange(len(scores)), -scores))
        np.testing.assert_allclose(
            top.scores, scores[order][: len(top.scores)], rtol=1e-5, atol=1e-5
        )
        assert len(top.rows) >= k and set(top.rows[: k - 1]) <= set(order[: k + 2])
        np.testing.assert_allclose(vectors[top.rows] @ query, top.scores, rtol=1e-5, atol=1e-5)


def test_resident_vectors_are_copied_once(bundle, vectors):
    device = FakeGpu()
    index = opened(bundle, device)
    queries = clustered(1500, seed=1)
    check(index.search(queries, 7), vectors, queries, 7)
    check(index.search(queries[:1], 30), vectors, queries[:1], 30)
    assert (device.rows_copied, device.passes) == (1000, 1)


@pytest.mark.parametrize('n_queries', [1, 400])
def test_what_does_not_fit_is_streamed_once_a_call(bundle, vectors, monkeypatch, n_queries):
    monkeypatch.setattr(gpu, 'STAGE_BYTES', 16 * 2 * 130)
    monkeypatch.setattr(gpu_index, '_HIT_BYTES', 1)
    monkeypatch.setattr(gpu_index, '_SCORE_BYTES', 1)
    device = FakeGpu(free=40_000)  # 1,000 x 16 x 2 bytes are more than three quarters of it
    index = opened(bundle, device)
    queries = clustered(n_queries, seed=2)
    for calls in (1, 2):
        check(index.search(queries, 9), vectors, queries, 9)
        assert (device.rows_copied, device.passes) == (1000 * calls, calls)
    assert device.most_under_way == 2  # the next block was on its way while one was multiplied


def test_hits_without_room_take_several_passes(bundle, vectors):
    device = FakeGpu(free=30_000)
    queries = clustered(12, seed=3)
    check(opened(bundle, device).search(queries, 10), vectors, queries, 10)
    assert device.passes == 6  # 30,000 / 2 / ((10 + 32) x 128 bytes): 2 queries a pass


def test_several_gpus_share_the_rows(bundle, vectors):
    devices = [FakeGpu(), FakeGpu(free=10_000), FakeGpu()]
    queries = clustered(3, seed=4)
    index = opened(bundle, *devices)
    for _ in range(2):
        check(index.search(queries, 500), vectors, queries, 500)
    assert [device.rows_copied for device in devices][::2] == [333, 334]
    assert devices[1].rows_copied == 333 * devices[1].passes


def test_ties_all_come_lower_rows_first(tmp_path):
    ones = np.ones((1000, 16), np.float32)
    bundle = DenseBundle(write_bundle(tmp_path / 'ones', ones))
    for devices in ([FakeGpu()], [FakeGpu(), FakeGpu()]):
        (top,) = opened(bundle, *devices).search(ones[:1], 3)
        assert top.rows.tolist() == list(range(1000)) and set(top.scores) == {16}


@pytest.mark.parametrize('few', [1 << 25, 0])
@pytest.mark.parametrize('free', [1 << 30, 40_000])
@pytest.mark.parametrize('k', [1, 7, 300])
def test_every_tie_with_the_last_hit_comes(tmp_path, monkeypatch, few, free, k):
    """Small whole numbers: nearly every score is that of many rows."""
    monkeypatch.setattr(
        gpu_index, '_FEW_SCORES', few
    )  # 0: the greatest scores are looked for in tiles
    random = np.random.default_rng(0)
    vectors, queries = (random.integers(-2, 3, (n, 16)).astype(np.float32) for n in (1000, 5))
    index = opened(DenseBundle(write_bundle(tmp_path / 'ties', vectors)), FakeGpu(free))
    for top, query in zip(index.search(queries, k), queries, strict=True):
        scores = vectors @ query
        order = np.lexsort((np.arange(1000), -scores))
        expected = order[: int((scores >= scores[order[k - 1]]).sum())]
        assert (
            top.rows.tolist() == expected.tolist()
            and top.scores.tolist() == scores[expected].tolist()
        )


def test_one_query_is_one_product(bundle, vectors, monkeypatch):
    device = FakeGpu()
    products = []
    index = opened(bundle, device)
    index.search(vectors[:1], 5)
    monkeypatch.setattr(
        device, 'products', lambda *pair: products.append(pair) or FakeGpu.products(device, *pair)
    )
    monkeypatch.setattr(device, 'free_memory', None)  # is not asked for: that takes time
    check(index.search(vectors[:1], 5), vectors, vectors[:1], 5)
    assert len(products) == 1


@pytest.mark.parametrize(
    ('width', 'count'), [(1000, 5), (1003, 40), (999, 62), (100, 90), (10, 20)]
)
def test_the_greatest_scores(monkeypatch, width, count):
    monkeypatch.setattr(gpu_index, '_FEW_SCORES', 0)
    scores = torch.from_numpy(
        np.random.default_rng(1).permuted(
            np.arange(3 * width, dtype=np.float32).reshape(3, -1), axis=1
        )
    )
    values, places = gpu_index.greatest(scores, count)
    assert torch.equal(scores.gather(1, places), values)
    assert torch.equal(
        values.sort(dim=1, descending=True).values,
        scores.sort(dim=1, descending=True).values[:, :count],
    )


def test_float32_gives_the_scores_of_the_cpu(bundle, vectors):
    queries = clustered(5, seed=7)
    found = opened(bundle, FakeGpu(), dtype='float32').search(queries, 11)
    for top, query in zip(found, queries, strict=True):
        np.testing.assert_allclose(top.scores, np.sort(vectors @ query)[::-1][:11], rtol=1e-6)


def test_vectors_in_int8_are_multiplied_as_floats(tmp_path, vectors):
    bundle = DenseBundle(write_bundle(tmp_path / 'int8', vectors, dtype='int8'))
    stored = bundle.vectors(np.arange(len(bundle)))
    queries = clustered(5, seed=7)
    for dtype, tolerance in (('float32', 1e-5), ('float16', 1e-2)):
        found = opened(bundle, FakeGpu(), dtype=dtype).search(queries, 11)
        for top, query in zip(found, queries, strict=True):
            best = np.sort(stored @ query)[::-1][:11]
            np.testing.assert_allclose(top.scores[:11], best, rtol=tolerance)


def test_queries_that_float16_cannot_hold_are_refused(bundle):
    query = np.full((1, bundle.settings.dimension), 1e5, np.float32)
    with pytest.raises(InputError, match='float16: search in float32'):
        opened(bundle, FakeGpu()).search(query, 3)
    assert len(opened(bundle, FakeGpu(), dtype='float32').search(query, 3)[0].rows) >= 3


def test_vectors_that_float16_cannot_hold_are_refused(tmp_path, vectors):
    large = vectors.copy()
    large[700, 3] = 70_000
    bundle = DenseBundle(write_bundle(tmp_path / 'large', large))
    for free in (1 << 30, 20_000):
        with pytest.raises(InputError, match='not finite in float16: search it in float32'):
            opened(bundle, FakeGpu(free)).search(vectors[:1], 5)
    assert opened(bundle, FakeGpu(), dtype='float32').search(large[700:701], 1)[
        0
    ].rows.tolist() == [700]


def test_no_vectors_and_more_hits_than_vectors(bundle, vectors):
    check(
        opened(bundle, FakeGpu(), FakeGpu()).search(vectors[:1], 5000), vectors, vectors[:1], 1000
    )
    assert opened(bundle, FakeGpu()).search(np.empty((0, 16), np.float32), 5) == []


def test_a_searcher_keeps_them_between_calls(bundle, vectors, monkeypatch):
    device = FakeGpu()
    monkeypatch.setattr('pyserini_repbert.models.precision.usable_device', torch.device)
    monkeypatch.setattr(gpu_index, 'Gpu', lambda _: device)
    searcher = DenseSearcher(bundle.folder, RowEncoder(vectors), 'cuda:0', device_dtype='float32')
    expected = DenseSearcher(bundle.folder, RowEncoder(vectors))
    for text in ('5', '800'):
        assert [hit.docid for hit in searcher.search(text, 5)] == [
            hit.docid for hit in expected.search(text, 5)
        ]
    assert device.rows_copied == 1000
