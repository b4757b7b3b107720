"""A source is deleted with all its documents, in one generation, and leaves nothing behind."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from folders import all_documents, write_files

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.copying import copy_collection
from pyserini_repbert.collection.generation import open_generation
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.collection.status import source_states
from pyserini_repbert.errors import InputError

ADDRESS = 'https://example.org/'


@pytest.fixture
def folders(tmp_path):
    """Two folders of two pages each."""
    made = []
    for name, page in (('first', 'a.md'), ('second', 'b.md')):
        folder = write_files(tmp_path / name, {'README.md': f'the cat of {name}'})
        (folder / page).write_text(f'the dog of {name}', encoding='utf-8')
        made.append(folder)
    return made


@pytest.fixture
def collection(open_collection, folders, tmp_path):
    """A collection of both folders; the first has a prefix, addresses, and another path."""
    link = tmp_path / 'link'
    link.symlink_to(folders[0])
    with open_collection() as collection:
        collection.sync(folders[0], prefix='1/', url_prefix=ADDRESS)
        collection.sync(link)
        collection.sync(folders[1])
        yield collection


def select(folder, statement, *values):
    with closing(sqlite3.connect(folder / 'collection.sqlite')) as connection:
        return connection.execute(statement, values).fetchall()


def tables_of_sources(folder):
    """The tables that say something of a source, by its number."""
    rows = select(folder, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    return [
        name
        for (name,) in rows
        # Whose rows stay as long as a reader may see them.
        if name != 'fields'
        and select(folder, f"SELECT 1 FROM pragma_table_info('{name}') WHERE name = 'source'")
    ]


def names(collection):
    return [state.name for state in source_states(collection.generation)]


def docids(generation):
    return sorted(document.docid for document in all_documents(generation))


def test_nothing_of_a_deleted_source_stays(collection, folders):
    tables = tables_of_sources(collection.folder)
    assert len(tables) == 8
    for table in tables:
        found = select(collection.folder, f'SELECT COUNT(*) FROM {table} WHERE source = 1')
        assert found[0][0] > 0, table
    others = [
        select(collection.folder, f'SELECT * FROM {table} WHERE source <> 1') for table in tables
    ]
    before = collection.generation.number
    changes = collection.delete_source(folders[0])
    assert (changes.deleted, changes.unchanged, changes.encoded) == (2, 2, 0)
    assert changes.generation == before + 1
    for table, rows in zip(tables, others, strict=True):
        assert select(collection.folder, f'SELECT * FROM {table}') == rows, table
    assert names(collection) == [str(folders[1])]
    assert docids(collection.generation) == ['README.md', 'b.md']
    check_collection(collection.folder)
    assert collection.sync(folders[1]).unchanged == 2


def test_a_later_sync_starts_anew(collection, folders):
    collection.delete_source(folders[0])
    changes = collection.sync(folders[0], prefix='again/')
    assert (changes.added, changes.prefix) == (2, 'again/')
    found = docids(collection.generation)
    assert found == ['README.md', 'again/README.md', 'again/a.md', 'b.md']
    assert collection.generation.addresses(['again/a.md']) == [(folders[0] / 'a.md').as_uri()]
    assert collection.sync(folders[0]).unchanged == 2
    check_collection(collection.folder)


@pytest.mark.parametrize('name', ['third', '', 'first/a.md'])
def test_an_unknown_source_is_refused_with_those_that_are_known(
    collection, folders, name, monkeypatch
):
    # An empty name is not the source that lies in this folder.
    monkeypatch.chdir(folders[0])
    with pytest.raises(InputError) as error:
        collection.delete_source(name)
    assert str(error.value) == (
        f"the collection has no source '{name}': name one of its sources ('{folders[0]}', "
        f"'{folders[1]}'); nothing was deleted"
    )
    assert names(collection) == [str(folder) for folder in folders]
    assert len(collection) == 4


def test_a_name_that_is_not_in_utf_8_is_refused(collection, folders):
    for run in (collection.delete_source, lambda name: collection.sync(folders[0], name)):
        with pytest.raises(InputError, match='is not in UTF-8') as error:
            run('\udcff')
        assert error.value.parameters == ('source=NAME',)


def test_a_source_may_be_named_by_a_path_to_what_is_gone(collection, folders, monkeypatch):
    monkeypatch.chdir(folders[0].parent)
    shutil.rmtree(folders[0])
    assert collection.delete_source('first').deleted == 2
    assert collection.delete_source(folders[1] / '..' / 'second').deleted == 2


def test_the_last_source_may_be_deleted(collection, folders):
    for folder in folders:
        collection.delete_source(folder)
    assert (len(collection), names(collection)) == (0, [])
    check_collection(collection.folder)
    assert collection.search('cat') == []
    with pytest.raises(InputError, match=r'name one of its sources \(it has none\)'):
        collection.delete_source('first')
    assert collection.sync(folders[0]).added == 2


def test_added_documents_are_a_source(collection, folders):
    collection.add([('x', 'the moon'), ('y', 'the sun')])
    assert collection.delete_source('add').deleted == 2
    assert names(collection) == [str(folder) for folder in folders]
    assert collection.add([('x', 'the moon')]).added == 1


def test_a_source_without_documents_is_deleted(collection, folders):
    collection.delete(['README.md', 'b.md'])
    before = collection.generation.number
    changes = collection.delete_source(folders[1])
    assert (changes.deleted, changes.generation) == (0, before + 1)
    assert names(collection) == [str(folders[0])]
    check_collection(collection.folder)


def test_a_running_search_keeps_the_documents_and_gets_no_other_addresses(
    collection, folders, tmp_path
):
    """What is said of sources is not versioned: the addresses go, and no other ones come."""
    third = write_files(tmp_path / 'third', {'c.md': 'the moon'})
    kept = docids(collection.generation)
    of_second = ['README.md', 'b.md']
    texts = [document.text for document in collection.generation.documents(of_second)]
    with closing(open_generation(collection.folder)) as before:
        # The source with the highest number: the next one would take it.
        collection.delete_source(folders[1])
        collection.sync(third)
        assert docids(before) == kept
        assert [document.text for document in before.documents(of_second)] == texts
        docnos = before.docnos(of_second).tolist()
        origins = before.origins(docnos)
        assert [origins[docno].file for docno in docnos] == of_second
        assert before.addresses([*of_second, '1/a.md']) == ['', '', f'{ADDRESS}a.md']
        fields = before.file_fields.of_documents(docnos)
        assert [fields[docno] for docno in docnos] == [{'type': 'markdown'}] * 2
    assert [row.source for row in collection.generation.source_rows()] == [1, 3]


def test_judgments_are_as_after_the_deletion_of_each_document(collection, folders, tmp_path):
    store = judgments_of(collection.folder)
    store.add([Judgment('a cat', '1/README.md', 1), Judgment('a cat', 'b.md', 0)])
    other = tmp_path / 'other'
    copy_collection(collection.folder, other)
    collection.delete_source(folders[0])
    with Collection.open(other) as copied:
        copied.delete(['1/README.md', '1/a.md'])
    paths = [folder / 'judgments.sqlite' for folder in (collection.folder, other)]
    dumps = []
    for path in paths:
        with closing(sqlite3.connect(path)) as connection:
            dumps.append(list(connection.iterdump()))
    assert dumps[0] == dumps[1]
