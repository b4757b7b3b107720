"""Every document of a file has the fields `type`, `folder` and `modified`, which nothing stores."""

import os
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from pyserini_repbert.collection import file_fields
from pyserini_repbert.collection.field_counts import FieldCounter
from pyserini_repbert.collection.file_values import shown_sources
from pyserini_repbert.collection.filters import DocumentFilter
from pyserini_repbert.collection.index.store import CollectionStore
from pyserini_repbert.collection.status import source_states
from pyserini_repbert.collection.store import STORE
from pyserini_repbert.data.file_types import file_type
from pyserini_repbert.errors import InputError

FILES = {
    'a.md': ('# Slugs\n\nThey eat lettuce.', '2023-05-31'),
    'Garden/b.txt': ('Peas like the cool.', '2024-01-02'),
    'Garden/beds/c.py': ('print("beds")', '2024-06-01'),
    'Garden/d.csv': ('name,text\nhoe,Cuts weeds.\nfork,Lifts roots.\n', '2024-06-02'),
    'mail/e.eml': ('Subject: Beans\n\nThey arrive in March.', '2022-12-31'),
    'mail/f.md': ('---\ntype: letter\nmodified: 2001-02-03\n---\nDear Ada.', '2024-06-03'),
}
MEANINGS = {
    'type:markdown': ['a.md'],
    'type:md': ['a.md'],
    'type:MD': ['a.md'],
    'type:letter': ['mail/f.md'],
    'type:(mail OR letter)': ['mail/e.eml', 'mail/f.md'],
    'type:csv': ['Garden/d.csv#1', 'Garden/d.csv#2'],
    'type:co*': ['Garden/beds/c.py'],
    'type:py': ['Garden/beds/c.py'],
    'folder:garden AND NOT type:csv': ['Garden/b.txt', 'Garden/beds/c.py'],
    'folder:"garden/beds"': ['Garden/beds/c.py'],
    'folder:garden/beds': ['Garden/beds/c.py'],
    'folder:gard*': ['Garden/b.txt', 'Garden/beds/c.py', 'Garden/d.csv#1', 'Garden/d.csv#2'],
    'NOT folder:*': ['a.md'],
    'modified:2024-06-01': ['Garden/beds/c.py'],
    'modified:[2024-06 TO *] AND NOT type:csv': ['Garden/beds/c.py'],
    'modified:2024-06*': ['Garden/beds/c.py', 'Garden/d.csv#1', 'Garden/d.csv#2'],
    'modified:[* TO 2022]': ['mail/e.eml', 'mail/f.md'],
    'modified:{2022 TO 2023]': ['a.md'],
}


def write_files(folder):
    """The files of `FILES`, each last changed at noon of its day."""
    for name, (text, day) in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')
        noon = np.datetime64(f'{day}T12:00', 's').astype(int)
        os.utime(path, (noon, noon))
    return folder


@pytest.fixture
def synced(open_collection, tmp_path):
    with open_collection() as opened:
        opened.sync(write_files(tmp_path / 'desk'))
        yield opened


def matching(generation, text):
    mask = DocumentFilter(text=text).mask(generation)
    return sorted(generation.docids(np.flatnonzero(mask)))


@pytest.mark.parametrize(('text', 'expected'), MEANINGS.items(), ids=list(MEANINGS))
def test_filters_by_files(synced, text, expected):
    assert matching(synced.generation, text) == expected


def test_hits_show_the_fields_of_their_files(synced):
    """A document's own field comes first, and nothing is stored twice."""
    store = CollectionStore(synced.generation)
    assert store.fields(['Garden/beds/c.py', 'a.md', 'mail/f.md'], ['*']) == [
        {'type': 'code', 'folder': 'Garden/beds', 'modified': '2024-06-01'},
        {'type': 'markdown', 'modified': '2023-05-31'},
        {'type': 'letter', 'modified': '2001-02-03', 'folder': 'mail'},
    ]
    assert store.fields(['a.md'], ['modified']) == [{'modified': '2023-05-31'}]
    assert synced.generation.fields(['a.md']) == [{}]


def test_documents_with_each_value_are_counted(synced):
    with closing(FieldCounter(synced.generation)) as counter:
        counts = counter.counts()
    values = {count.value: count.documents for count in counts['type'].values}
    assert values == {'csv': 2, 'markdown': 1, 'text': 1, 'code': 1, 'mail': 1, 'letter': 1}
    values = {count.value: count.documents for count in counts['folder'].values}
    assert values == {'Garden': 4, 'Garden/beds': 1, 'mail': 2}
    assert counts['folder'].documents == 6
    assert counts['modified'].documents == 7


def test_values_of_several_types_are_counted_once(open_collection, tmp_path):
    """A day that a document names, and that of two files: it was counted for the files twice."""
    folder = tmp_path / 'desk'
    folder.mkdir()
    rows = ['{"id": "r", "text": "cat", "modified": "2024-01-15"}']
    rows.append('{"id": "s", "text": "dog", "modified": 5}')
    (folder / 'rows.jsonl').write_text('\n'.join(rows))
    for name in ('a.md', 'b.md'):
        (folder / name).write_text('# Sea')
        noon = np.datetime64('2024-01-15T12:00', 's').astype(int)
        os.utime(folder / name, (noon, noon))
    with open_collection() as opened:
        opened.sync(folder)
        assert len(matching(opened.generation, 'modified:2024-01-15')) == 3
        with closing(FieldCounter(opened.generation)) as counter:
            count = counter.counts()['modified']
    assert count.documents == 4
    assert {value.value: value.documents for value in count.values} == {'2024-01-15': 3, '5': 1}


def test_two_sources_with_a_file_of_the_same_name(open_collection, tmp_path):
    """Each has the time of its own file."""
    with open_collection() as opened:
        for name, day in (('one', '2020-01-01'), ('two', '2021-01-01')):
            path = tmp_path / name / 'a.md'
            path.parent.mkdir()
            path.write_text(f'# {name}', encoding='utf-8')
            noon = np.datetime64(f'{day}T12:00', 's').astype(int)
            os.utime(path, (noon, noon))
            opened.sync(path.parent, prefix=f'{name}/')
        assert matching(opened.generation, 'modified:2020*') == ['one/a.md']
        assert matching(opened.generation, 'modified:2021*') == ['two/a.md']


def test_rows_count_as_rows_of_files(synced, monkeypatch):
    """They are counted once in a generation: the start page of a service shows them."""
    for _ in range(2):
        (state,) = source_states(synced.generation)
        assert (state.documents, state.files, state.rows) == (7, 6, 2)
        monkeypatch.setattr(file_fields, 'is_table', None)


def test_a_moved_file_has_its_new_folder(synced, tmp_path):
    folder = tmp_path / 'desk'
    (folder / 'a.md').rename(folder / 'mail' / 'a.md')
    before = synced.generation
    assert matching(before, 'type:markdown AND folder:mail') == []
    synced.sync(folder)
    assert matching(synced.generation, 'type:markdown AND folder:mail') == ['mail/a.md']


def test_documents_of_programs_have_no_such_fields(open_collection):
    with open_collection() as opened:
        opened.sync([{'id': 'a', 'text': 'cat', 'year': 2020}])
        assert opened.generation.field_types == {'year': {'number'}}
        with pytest.raises(InputError, match=r"no field 'type': .* after their next `index sync`"):
            matching(opened.generation, 'type:pdf')


def test_a_collection_of_an_earlier_release(synced, tmp_path):
    """It opens. A sync adds what it lacks."""
    folder = synced.folder
    synced.close()
    with closing(sqlite3.connect(folder / STORE)) as connection:
        for table in ('origins', 'source_files', 'source_readers'):
            connection.execute(f'DELETE FROM {table}')
        connection.commit()
    with type(synced).open(folder) as opened:
        assert 'folder' not in opened.generation.field_types
        with pytest.raises(InputError, match='after their next `index sync`'):
            matching(opened.generation, 'folder:mail')
        opened.sync(tmp_path / 'desk')
        assert matching(opened.generation, 'folder:mail') == ['mail/e.eml', 'mail/f.md']


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('a/B.MD', 'markdown'),
        ('a.md.gz', 'markdown'),
        ('box.mbox', 'mail'),
        ('LICENSE', 'text'),
        ('ls.1', 'manual'),
        ('a.b/c', 'text'),
        ('report.PDF', 'pdf'),
        ('x.jsonl', 'json'),
        ('x.own', 'own'),
    ],
)
def test_the_type_of_a_file(name, expected):
    assert file_type(name) == expected


def test_folders_that_filters_do_not_tell_apart_are_counted_once(open_collection, tmp_path):
    """`folder:letters` finds both, and each was counted on its own."""
    for name in ('Letters/a.md', 'letters/b.md', 'letters/c.md'):
        path = tmp_path / 'desk' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'# {name}')
    with open_collection() as opened:
        opened.sync(tmp_path / 'desk')
        with closing(FieldCounter(opened.generation)) as counter:
            (value,) = counter.counts()['folder'].values
        assert matching(opened.generation, 'folder:LETTERS') == [
            'Letters/a.md',
            'letters/b.md',
            'letters/c.md',
        ]
    assert (value.value, value.documents) == ('letters', 3)


@pytest.fixture
def two_sources(open_collection, tmp_path):
    """A collection of two folders, and of a document from Python."""
    with open_collection() as opened:
        for name in ('work/notes', 'home'):
            folder = tmp_path / name
            folder.mkdir(parents=True)
            (folder / 'a.md').write_text(f'# {name}')
            opened.sync(folder, prefix=f'{folder.name}/')
        opened.sync([{'id': 'p', 'text': 'cat', 'source': 'a letter'}, {'id': 'q', 'text': 'dog'}])
        yield opened


def test_several_sources_are_a_field(two_sources, tmp_path):
    generation = two_sources.generation
    assert matching(generation, 'source:notes') == ['notes/a.md']
    assert matching(generation, f'source:"{tmp_path}/home"') == ['home/a.md']
    assert matching(generation, 'source:HOME') == ['home/a.md']
    # A document's own value comes first.
    assert matching(generation, 'source:python') == ['q']
    assert matching(generation, 'source:"a letter"') == ['p']
    fields = CollectionStore(generation).fields(['notes/a.md', 'p', 'q'], ['source'])
    assert fields == [{'source': 'notes'}, {'source': 'a letter'}, {'source': 'python'}]
    with closing(FieldCounter(generation)) as counter:
        count = counter.counts()['source']
    values = {value.value: value.documents for value in count.values}
    assert values == {'notes': 1, 'home': 1, 'python': 1, 'a letter': 1}
    assert count.documents == 4


def test_one_source_is_no_field(synced):
    assert 'source' not in synced.generation.field_types
    assert CollectionStore(synced.generation).fields(['a.md'], ['source']) == [{}]
    with pytest.raises(InputError, match='documents have a source where the collection has'):
        matching(synced.generation, 'source:desk')


def test_sources_whose_last_parts_are_alike_have_their_whole_names():
    names = {1: '/home/ada/notes', 2: '/home/eve/notes', 3: '/home/eve/mail', 4: 'add'}
    assert shown_sources(names) == {
        1: '/home/ada/notes',
        2: '/home/eve/notes',
        3: 'mail',
        4: 'add',
    }
