"""A Ray cluster of two nodes on this machine, of which one is removed without grace (`make
test-ray`).
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from folders import tree

os.environ['RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER'] = (
    '0'  # else Ray puts this machine's own address for 127.0.0.1
)
os.environ['RAY_USAGE_STATS_ENABLED'] = '0'
# By default, Ray's workers have niceness 15, and wait for all that runs beside these tests.
os.environ['RAY_worker_niceness'] = '0'  # noqa: SIM112  Ray reads this spelling alone
pytest.importorskip('ray')

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands import command, encode, index
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.indexes.dense.on_ray import ShardSearch
from pyserini_repbert.pipeline import Machine
from pyserini_repbert.pipeline.ray_workers import ray_worker_pool
from pyserini_repbert.search import exact
from pyserini_repbert.worker_pool import Job, WorkerPool
from tests.pipeline.conftest import run_stages

pytestmark = pytest.mark.slow
NODE = {'num_cpus': 1, 'node_ip_address': '127.0.0.1', 'object_store_memory': 100 * 2**20}


@pytest.fixture(scope='module')
def cluster():
    """A head and a function that adds a node; their processes end with this one, however it
    ends.
    """
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={**NODE, 'include_dashboard': False})
    yield made
    made.shutdown()


@pytest.fixture
def node(cluster):
    """A second node; it is gone after the test."""
    added = cluster.add_node(**NODE)
    cluster.wait_for_nodes(timeout=60)  # one that was removed before is missed after a while
    yield added
    if added in cluster.list_all_nodes():
        cluster.remove_node(added)


def when(happened, then):
    """Do something in a thread as soon as something has happened."""

    def watch():
        until = time.monotonic() + 120
        while not happened() and time.monotonic() < until:
            time.sleep(0.02)
        then()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@dataclass(frozen=True)
class Slow:
    def open(self, threads):
        def doubled(number):
            time.sleep(8)  # a worker outlives its node by a second or so
            return number * 2

        return doubled


@pytest.fixture
def lose(cluster, node, monkeypatch):
    """lose(when) removes the second node, without grace, once both workers have a job and
    `when()`.
    """

    def begin(when):
        give = WorkerPool._give_jobs
        removed = []

        def given(self):
            if (
                removed or self.busy or len(self.idle) == 2
            ):  # nobody gets a job before there are two workers
                give(self)
            if not removed and len(self.busy) == 2 and when():
                removed.append(node)
                cluster.remove_node(node, allow_graceful=False)

        monkeypatch.setattr(WorkerPool, '_give_jobs', given)
        return removed

    return begin


def test_a_job_of_a_lost_node_is_done_again(cluster, lose, caplog):
    import ray

    ray.cloudpickle.register_pickle_by_value(
        sys.modules[__name__]
    )  # workers cannot import this file
    removed = lose(lambda: True)
    with ray_worker_pool(cluster.address, 1) as pool:
        assert pool.run([Job(f'job {number}', Slow(), number) for number in (3, 4)]) == [6, 8]
    assert removed and 'starts again: machine 127.0.0.1' in caplog.text


def test_encoding_goes_on_without_a_node(
    cluster, lose, tiny_checkpoint, corpus_file, tmp_path, capsys
):
    made = [
        '--corpus',
        corpus_file(600),
        '--encoder',
        tiny_checkpoint(),
        '--shard-size',
        10,
        '--quiet',
    ]
    made = [*map(str, made), '--threads', '1', '--output']
    assert command.run(encode.main, [*made, str(tmp_path / 'whole')]) == 0
    folder = tmp_path / 'many'
    removed = lose(lambda: len(list(folder.glob('part-*/shard-*/shard.json'))) >= 10)
    assert command.run(encode.main, [*made, str(folder), '--ray', cluster.address]) == 0, (
        capsys.readouterr().err
    )
    assert removed and tree(folder) == tree(tmp_path / 'whole')


def test_a_collection_is_encoded_without_a_node(
    cluster, lose, tiny_checkpoint, corpus_file, tmp_path, capsys
):
    asked = ['sync', '--corpus', corpus_file(600), '--encoder', tiny_checkpoint()]
    asked = [*map(str, asked), '--sparse', 'none', '--threads', '1', '--quiet', '--index']
    assert command.run(index.main, [*asked, str(tmp_path / 'whole')]) == 0
    removed = lose(lambda: True)
    many = tmp_path / 'many'
    assert command.run(index.main, [*asked, str(many), '--ray', cluster.address]) == 0, (
        capsys.readouterr().err
    )
    assert removed
    with Collection.open(tmp_path / 'whole') as whole, Collection.open(many) as collection:
        for query in ('a', 'an old word'):
            hits = collection.search(query, k=600)
            expected = {hit.docid: hit.score for hit in whole.search(query, k=600)}
            assert len(hits) == 600
            assert {hit.docid: hit.score for hit in hits} == pytest.approx(expected, abs=1e-4)


def test_a_search_goes_on_without_a_node(cluster, node, tiny_checkpoint, corpus_file, tmp_path):
    made = [
        '--corpus',
        corpus_file(600),
        '--encoder',
        tiny_checkpoint(),
        '--shard-size',
        50,
        '--quiet',
        '--output',
    ]
    assert command.run(encode.main, [*map(str, made), str(tmp_path / 'bundle')]) == 0
    bundle = DenseBundle(tmp_path / 'bundle')
    queries = np.random.default_rng(2).standard_normal((1000, 16)).astype(np.float32)
    with threads(1), ray_worker_pool(cluster.address, 1) as pool:
        whole = exact.ExactIndex(bundle).search(queries, 100)
        spread = ShardSearch(pool, bundle)
        assert pool.capacity() == 2
        calls = 0
        removed = when(lambda: calls >= 2, lambda: cluster.remove_node(node, allow_graceful=False))
        while (
            removed.is_alive() or pool.capacity() == 2
        ):  # some calls with two nodes, one in between, some with one
            same(spread(queries, 100), whole)
            calls += 1
        same(spread(queries, 100), whole)
    assert calls >= 2 and node not in cluster.list_all_nodes()


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.scores.tobytes() == other.scores.tobytes()
        assert sorted(one.rows.tolist()) == sorted(other.rows.tolist())


@contextlib.contextmanager
def threads(number):
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    yield
    torch.set_num_threads(before)


def test_reranking_goes_on_without_a_node(cluster, node, world):
    stages = [f'{world.mono}@10', f'{world.duo}@4']
    with threads(1):  # as a worker has: with more, the last digits differ on some CPUs
        one = run_stages(world, stages, batch_inputs=1)
    removed = []

    def lose_node(done):
        if not removed:
            cluster.remove_node(node, allow_graceful=False)
            removed.append(done)

    with ray_worker_pool(cluster.address, 1) as pool:
        many = run_stages(
            world, stages, machine=Machine(ray=pool), on_progress=lose_node, batch_inputs=1
        )
    assert removed and many.run == one.run


DRIVER = """
import os, sys, time
from dataclasses import dataclass
import ray
from pyserini_repbert.worker_pool import Job
from pyserini_repbert.pipeline.ray_workers import ray_worker_pool

@dataclass(frozen=True)
class Endless:
    def open(self, threads):
        def tell(path):
            with open(path, 'w') as stream:
                stream.write(str(os.getpid()))
            time.sleep(600)
        return tell

with ray_worker_pool(sys.argv[1], 1) as pool:
    pool.run([Job('endless', Endless(), sys.argv[2])])
"""


def test_workers_end_with_a_command_that_is_killed(cluster, tmp_path):
    note = tmp_path / 'pid'
    driver = subprocess.Popen([sys.executable, '-c', DRIVER, cluster.address, str(note)])
    when(lambda: note.exists() and note.read_text(), driver.kill).join()
    assert driver.wait() == -signal.SIGKILL
    worker = Path('/proc', note.read_text())
    when(lambda: not worker.exists(), lambda: None).join()
    assert not worker.exists()
