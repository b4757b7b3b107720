"""`search --ray`: the same hits and bits as on one machine, or an error; without Ray itself."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from ready_services import ready_client

from pyserini_repbert.commands import command, encode, search
from pyserini_repbert.errors import ClusterError, DamagedFileError
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.indexes.dense.on_ray import ShardSearch
from pyserini_repbert.search import exact
from pyserini_repbert.search.scores import TopRows, merged
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings


@pytest.fixture
def bundle(tiny_checkpoint, corpus_file, tmp_path):
    """600 passages, some with equal vectors, in shards of 70."""
    made = [
        '--corpus',
        corpus_file(600),
        '--encoder',
        tiny_checkpoint(),
        '--shard-size',
        70,
        '--quiet',
        '--output',
    ]
    assert command.run(encode.main, [*map(str, made), str(tmp_path / 'bundle')]) == 0
    return DenseBundle(tmp_path / 'bundle')


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=4), st.integers(1, 8))
def test_merging_is_sorting_all(parts, k):
    """Each part holds everything here; the oracle sorts (score, row) pairs."""
    tops = []
    starts = []
    pairs = []
    start = 0
    for scores in parts:
        order = sorted(range(len(scores)), key=lambda row: -scores[row])
        tops.append(
            TopRows(np.array([scores[row] for row in order], np.float32), np.array(order, np.int64))
        )
        pairs += [(-score, start + row) for row, score in enumerate(scores)]
        starts.append(start)
        start += len(scores)
    pairs.sort()
    if len(pairs) > k:
        pairs = [pair for pair in pairs if pair[0] <= pairs[k - 1][0]]
    found = merged(tops, starts, k)
    assert list(zip((-found.scores).tolist(), found.rows.tolist(), strict=True)) == pairs


@pytest.mark.parametrize('k', [1, 10, 599, 1000])
@pytest.mark.parametrize('loses', [(), (0, 3), (2, 3, 4)])
def test_the_same_rows_and_bits(bundle, local_pool, k, loses):
    queries = np.random.default_rng(1).standard_normal((9, 16)).astype(np.float32)
    workers = local_pool(4, loses)
    spread = ShardSearch(workers, bundle)
    for _ in range(2):  # a second time with what is open
        for one, many in zip(
            exact.ExactIndex(bundle).search(queries, k), spread(queries, k), strict=True
        ):
            assert one.scores.tobytes() == many.scores.tobytes()
            assert sorted(one.rows.tolist()) == sorted(many.rows.tolist())
    assert len(workers.asked) == 8 + len(loses)


def test_a_part_without_an_answer_is_an_error(bundle, local_pool):
    queries = np.ones((1, 16), np.float32)
    with pytest.raises(ClusterError, match=r'shard-0000\d.* of .*bundle was tried 5 times'):
        ShardSearch(local_pool(3, range(2, 99)), bundle)(queries, 5)


def test_a_worker_that_sees_another_file(bundle, local_pool):
    spread = ShardSearch(local_pool(3), bundle)
    path = bundle.folder / 'shard-00004' / 'vectors.npy'
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(DamagedFileError, match=r'shard-00004/vectors\.npy.* \(on machine of w\d\)'):
        spread(np.ones((1, 16), np.float32), 5)


def test_the_command_writes_the_same_run(bundle, local_pool, connect, tmp_path, capsys):
    topics = tmp_path / 'topics.tsv'
    topics.write_text('q1\tthe cat\nq2\ta dog\nq3\tfish\n')
    asked = [
        '--index',
        str(bundle.folder),
        '--topics',
        str(topics),
        '--hits',
        '50',
        '--quiet',
        '--output',
    ]
    assert command.run(search.main, [*asked, str(tmp_path / 'one.txt')]) == 0
    called = connect(local_pool(3, (1,)))
    assert (
        command.run(
            search.main, [*asked, str(tmp_path / 'many.txt'), '--ray', 'auto', '--tag', 'one']
        )
        == 0
    )
    assert (tmp_path / 'one.txt').read_bytes() == (tmp_path / 'many.txt').read_bytes()
    assert called == [('auto', None, False)]


def test_a_service_searches_an_index_on_a_cluster(bundle, local_pool, connect):
    # which loses a worker in the middle
    texts = bundle.folder.parent / 'texts'
    workers = local_pool(3, (1,))
    made = [
        '--corpus',
        bundle.folder.parent / 'corpus.jsonl',
        '--encoder',
        bundle.folder.parent / 'tiny',
        '--quiet',
    ]
    assert (
        command.run(
            encode.main,
            [*map(str, made), '--store-text', '--shard-size', '70', '--output', str(texts)],
        )
        == 0
    )
    asked = connect(workers)
    found = {}
    for ray in (None, 'auto'):
        with ready_client(
            ServeSettings(indexes={'i': IndexSettings(path=str(texts), ray=ray)})
        ) as client:
            found[ray] = client.get(
                '/v1/i/search', params={'query': 'the red cat', 'hits': 7}
            ).json()['candidates']
    assert asked == [('auto', None, False)] and len(workers.asked) > 3
    assert len(found[None]) == 7 and found['auto'] == found[None]
