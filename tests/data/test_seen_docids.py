"""Docids are seen again, in memory and in a file."""

from functools import partial

import pytest

from pyserini_repbert.data import passages, seen_docids
from pyserini_repbert.data.passages import corpus_of
from pyserini_repbert.data.seen_docids import SeenDocids
from pyserini_repbert.errors import ExhaustedError, InputError

DOCIDS = [f'D{number}' for number in range(3000)]


@pytest.mark.parametrize('largest_table', [1, 2, 1024, 4096, 1 << 18])
def test_a_docid_is_seen_when_it_comes_again(largest_table):
    seen = SeenDocids(largest_table)
    assert not any(seen.add(docid) for docid in DOCIDS)
    assert all(seen.add(docid) for docid in reversed(DOCIDS))
    assert not seen.add('D3000')
    assert seen.add('D3000')


def test_the_file_does_not_stay_in_memory():
    seen = SeenDocids(1024)
    for docid in DOCIDS:
        seen.add(docid)
    assert not len(seen._slots)
    assert seen._file.execute('PRAGMA cache_size').fetchone() == (-2000,)
    assert seen._file.execute('SELECT count(*) FROM seen').fetchone() == (3000,)


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(seen_docids.tempfile, 'tempdir', str(tmp_path))
    seen = SeenDocids(1)
    seen.add('first')
    seen.add('second')
    seen._file.execute('PRAGMA max_page_count = 3')
    with pytest.raises(ExhaustedError, match=f'the disk is full: {tmp_path}'):
        for docid in DOCIDS:
            seen.add(docid)


@pytest.mark.parametrize('largest_table', [1, 64])
def test_a_duplicate_is_refused_where_it_comes(monkeypatch, largest_table):
    monkeypatch.setattr(passages, 'SeenDocids', partial(SeenDocids, largest_table))
    given = [('a', 'x'), ('b', 'x'), ('c', 'x'), ('a', 'y'), ('d', 'x')]
    reading = iter(corpus_of(given))
    assert [next(reading).docid for _ in range(3)] == ['a', 'b', 'c']
    with pytest.raises(InputError, match="passage 4: docid 'a' was used before, at passage 1"):
        next(reading)
