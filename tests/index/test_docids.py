"""Rows by docid: exact, whatever the docids are, and though different ones have one hash."""

import itertools

from hypothesis import given, settings, strategies

from pyserini_repbert.index import docids as module
from pyserini_repbert.index.docids import DocidColumn, Docids, Repetition

DOCIDS = strategies.lists(strategies.text(alphabet='ab0é𝄞\0 ', max_size=20), max_size=30)


def docids_of(folder, lists):
    """The docids of one column for each list."""
    columns = []
    for number, docids in enumerate(lists):
        path = folder / f'{number}.txt'
        path.write_text(''.join(f'{docid}\n' for docid in docids), encoding='utf-8', newline='\n')
        columns.append(DocidColumn(path, len(docids)))
    return Docids(columns)


def row_of(docid, docids):
    return docids.index(docid) if docid in docids else -1


@settings(max_examples=60, deadline=None)
@given(strategies.lists(DOCIDS, min_size=1, max_size=4), DOCIDS)
def test_rows_are_those_of_a_list(tmp_path_factory, lists, others):
    folder = tmp_path_factory.mktemp('docids')
    stored = list(itertools.chain.from_iterable(lists))
    asked = [*others, *stored[::-1], 'a\nb', '\ud800']
    expected = [row_of(docid, stored) for docid in asked]
    assert docids_of(folder, lists).rows(asked).tolist() == expected


def test_different_docids_of_one_hash(tmp_path, monkeypatch):
    lists = [['a', 'b', 'long docid 1'], ['c', 'long docid 2', 'b']]
    asked = ['c', 'nowhere', 'long docid 2', 'b', 'long docid 1', 'long docid 3', 'a']
    monkeypatch.setattr(module, 'hash', lambda docid: 7, raising=False)
    assert docids_of(tmp_path, lists).rows(asked).tolist() == [3, -1, 4, 1, 2, -1, 0]


def test_a_docid_in_two_columns_is_found(tmp_path):
    docids = docids_of(tmp_path, [['a', 'b'], ['c', 'b']])
    assert docids.repeated() == Repetition('b', first=0, second=1)


def test_docids_that_all_differ(tmp_path):
    assert docids_of(tmp_path, [['a', 'b'], ['c']]).repeated() is None
