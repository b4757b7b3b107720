"""What opening an index costs: nothing that grows with its passages."""

import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from pyserini_repbert import checksums
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode import encode_corpus
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.index.check import check_index


class Numbers:
    """An encoder to which a text is a number."""

    name = 'numbers'
    weights_sha256 = '0' * 64
    dimension = 2
    limit = 16
    precision = 'float32'
    pooling = 'mean'
    config_sha256 = tokenizer_sha256 = None

    def embed(self, texts, **_):
        return np.array([[float(text), 1] for text in texts], np.float32)


def write(folder, count):
    passages = (Passage(f'd{row:09}', str(row)) for row in range(count))
    encode_corpus(passages, Numbers(), folder, store_text=True)
    return folder


def bytes_read():
    return int(Path('/proc/self/io').read_text().split()[1])


@pytest.mark.skipif(sys.platform != 'linux', reason='/proc counts the bytes that a process reads')
def test_opening_reads_and_allocates_no_more_for_more_passages(tmp_path, monkeypatch):
    monkeypatch.setattr(
        checksums, '_TICK', 0
    )  # remembers the checksum of a file that was written just now
    costs = []
    for count in (500, 20_000):
        folder = write(tmp_path / str(count), count)
        time.sleep(0.01)
        for _ in range(3):  # the first computes and remembers checksums, and loads modules
            DenseBundle(folder)
        tracemalloc.start()
        before = bytes_read()
        bundle = DenseBundle(folder)
        costs.append((bytes_read() - before, tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
        assert len(bundle) == count and bundle.docids(np.array([count - 1])) == [f'd{count - 1:09}']
        assert bundle.texts(['d000000007']) == ['7']
    (read, allocated), (read_of_more, allocated_of_more) = costs
    assert abs(read_of_more - read) < 1000  # the digits of counts
    assert abs(allocated_of_more - allocated) < 20_000  # 19,500 line ends would be 156,000


@pytest.fixture
def joined_lines(tmp_path):
    """A bundle of five passages, two of whose docids have become one line."""
    folder = write(tmp_path / 'index', 5)
    path = folder / 'shard-00000' / 'docids.txt'
    path.write_text(path.read_text().replace('d000000003\n', 'd000000003-'))
    return folder


def test_docids_of_another_number_of_lines_are_found_by_the_first_docid(joined_lines):
    bundle = DenseBundle(joined_lines, verify=False)
    assert len(bundle) == 5
    expected = 'docids.txt has 4 lines, its manifest says 5: build the index again'
    with pytest.raises(DamagedFileError, match=expected):
        bundle.docids(np.arange(1))


@pytest.mark.parametrize('opened', [DenseBundle, check_index])
def test_docids_of_another_number_of_lines_are_found_by_a_check(joined_lines, opened):
    with pytest.raises(DamagedFileError, match='docids.txt is damaged: its sha256 is'):
        opened(joined_lines)


def test_a_missing_file_of_a_shard_is_named(tmp_path):
    folder = write(tmp_path / 'index', 2)
    for name in ('docids.txt', 'texts.jsonl', 'texts.offsets.npy', 'vectors.npy'):
        path = folder / 'shard-00000' / name
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(DamagedFileError, match=f'{name} is missing: restore the file'):
            DenseBundle(folder, verify=False)
        path.write_bytes(content)
    assert len(DenseBundle(folder, verify=False)) == 2
