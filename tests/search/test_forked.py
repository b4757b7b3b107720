"""Processes that are started after a search, and search themselves."""

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import torch

from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.search import DenseSearcher
from pyserini_repbert.search.exact import ExactIndex

SECONDS = 60
SIZE = 30_000


class Vectors:
    """Blocks of random vectors."""

    def __init__(self):
        draw = np.random.default_rng(0)
        self.array = draw.standard_normal((SIZE, 16), np.float32)

    def __len__(self):
        return SIZE

    def blocks(self, size):
        for first in range(0, SIZE, size):
            yield first, self.array[first : first + size]


def best_rows(n_queries):
    queries = np.random.default_rng(1).standard_normal((n_queries, 16), np.float32)
    return [top.rows.tolist() for top in ExactIndex(Vectors()).search(queries, 10)]


@pytest.fixture
def searched():
    """Results of this process, whose threads have computed."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield best_rows(300)
    torch.set_num_threads(before)


@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_a_process_that_is_started_after_a_search_can_search(searched, method):
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        answer = pool.submit(best_rows, 300)
        try:
            rows = answer.result(SECONDS)
        except TimeoutError:
            for process in pool._processes.values():
                process.kill()
            raise
    assert rows == searched


@pytest.mark.parametrize('backend', ['loky', 'multiprocessing'])
def test_the_workers_of_joblib_can_search(searched, backend):
    joblib = pytest.importorskip('joblib')
    parallel = joblib.Parallel(n_jobs=2, backend=backend, timeout=SECONDS)
    assert parallel(joblib.delayed(best_rows)(300) for _ in range(2)) == [searched] * 2


def search_in_threads(searcher):
    queries = ['cat', 'sat', 'mat'] * 10
    qids = [str(number) for number in range(30)]
    hits = searcher.batch_search(queries, qids, k=5, threads=2)
    return {qid: [hit.docid for hit in ranking] for qid, ranking in hits.items()}


def test_a_forked_process_searches_in_one_thread_though_asked_for_two(tiny_checkpoint, tmp_path):
    folder = tiny_checkpoint()
    passages = [(f'd{number}', 'cat sat mat ' * number) for number in range(1, 40)]
    encode_corpus(passages, RepBertDocumentEncoder(folder), tmp_path / 'index')
    searcher = DenseSearcher(tmp_path / 'index', folder)
    here = search_in_threads(searcher)
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        os._exit(search_in_threads(searcher) != here)
    assert os.waitpid(child, 0)[1] == 0


class Searched(torch.utils.data.Dataset):
    """Each item is what a search gives."""

    def __len__(self):
        return 2

    def __getitem__(self, number):
        return best_rows(300)[number]


def test_the_workers_of_a_data_loader_can_search(searched):
    loader = torch.utils.data.DataLoader(
        Searched(), batch_size=None, num_workers=1, timeout=SECONDS, multiprocessing_context='fork'
    )
    assert [[int(row) for row in rows] for rows in loader] == searched[:2]
