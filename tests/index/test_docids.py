"""Rows by docid: exact, whatever the docids are, and though different ones have one hash."""

from hypothesis import given, settings, strategies

from pyserini_repbert.index import docids as module
from pyserini_repbert.index.docids import DocidColumn, Docids

DOCIDS = strategies.lists(strategies.text(alphabet='ab0é𝄞\0 ', max_size=20), max_size=30)


def columns(folder, lists):
    made = []
    for number, own in enumerate(lists):
        path = folder / f'{number}.txt'
        path.write_text(''.join(f'{docid}\n' for docid in own), encoding='utf-8', newline='\n')
        made.append(DocidColumn(path, len(own)))
    return made


def expected(lists, asked):
    everything = [docid for own in lists for docid in own]
    return [everything.index(docid) if docid in everything else -1 for docid in asked]


@settings(max_examples=60, deadline=None)
@given(strategies.lists(DOCIDS, min_size=1, max_size=4), DOCIDS)
def test_rows_are_those_of_a_list(tmp_path_factory, lists, others):
    folder = tmp_path_factory.mktemp('docids')
    asked = [*others, *(docid for own in lists for docid in own[::-1]), 'a\nb', '\ud800']
    assert Docids(columns(folder, lists)).rows(asked).tolist() == expected(lists, asked)


def test_different_docids_of_one_hash(tmp_path, monkeypatch):
    lists = [['a', 'b', 'long docid 1'], ['c', 'long docid 2', 'b']]
    asked = ['c', 'nowhere', 'long docid 2', 'b', 'long docid 1', 'long docid 3', 'a']
    monkeypatch.setattr(module, 'hash', lambda docid: 7, raising=False)
    assert Docids(columns(tmp_path, lists)).rows(asked).tolist() == [3, -1, 4, 1, 2, -1, 0]
    assert Docids(columns(tmp_path, lists)).repeated() == ('b', 0, 1)
    assert Docids(columns(tmp_path, [['a', 'b'], ['c']])).repeated() is None
