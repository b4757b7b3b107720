"""A document of a collection belongs to one source."""

import contextlib
import random
import sqlite3

import pytest
from folders import all_documents

from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.digests import OWNERS
from pyserini_repbert.collection.store import open_for_reading
from pyserini_repbert.errors import InputError, MismatchError, SourceConflictError


@pytest.fixture
def folders(tmp_path):
    """Two folders, each with a README.md and one page more."""
    for name, page in (('s1', 'a.md'), ('s2', 'b.md')):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'README.md').write_text(f'the cat of {name}', encoding='utf-8')
        (tmp_path / name / page).write_text(f'the dog of {name}', encoding='utf-8')
    return tmp_path / 's1', tmp_path / 's2'


def texts(collection):
    return {document.docid: document.text for document in all_documents(collection.generation)}


def rows(folder):
    """All that the tables of documents and sources have."""
    connection = sqlite3.connect(folder / 'collection.sqlite')
    tables = ('fields', 'texts', 'sources', 'source_prefixes', 'source_paths', 'generations')
    found = {table: connection.execute(f'SELECT * FROM {table}').fetchall() for table in tables}
    connection.close()
    return found, sorted(path.name for path in (folder / 'shards').iterdir())


def test_a_docid_of_another_source_is_refused_before_anything_is_written(open_collection, folders):
    first, second = folders
    with open_collection() as collection:
        collection.sync(first)
        before = rows(collection.folder)
        with pytest.raises(SourceConflictError) as error:
            collection.sync(second)
        assert str(error.value).startswith(
            f"document 'README.md' belongs to source '{first}', and source '{second}' has "
            'this docid, too'
        )
        assert error.value.parameters == ('prefix=NAME/', f'source={first}')
        assert rows(collection.folder) == before
        assert texts(collection)['README.md'] == 'the cat of s1'
        assert collection.sync(first).unchanged == 2


def test_nothing_is_encoded_for_a_source_that_is_refused_late(open_collection):
    taken = [{'id': 'taken', 'text': 'cat'}]
    many = [{'id': f'd{number}', 'text': f'dog {number}'} for number in range(600)]
    with open_collection() as collection:
        collection.sync(taken, source='one')
        before = rows(collection.folder)
        with pytest.raises(SourceConflictError, match="'taken' belongs to source 'one'"):
            collection.sync(many + taken, source='two')
        assert rows(collection.folder) == before
        # What can be read only once is checked while it is read; nothing of it is published.
        with pytest.raises(SourceConflictError, match="'taken' belongs to source 'one'"):
            collection.sync(iter(many + taken), source='two')
        assert len(collection) == 1
        assert collection.sync(many, source='two').added == 600


def test_a_prefix_is_stored_with_its_source(open_collection, folders):
    first, second = folders
    with open_collection() as collection:
        collection.sync(first)
        changes = collection.sync(second, prefix='s2/')
        assert (changes.added, changes.prefix) == (2, 's2/')
        assert sorted(texts(collection)) == ['README.md', 'a.md', 's2/README.md', 's2/b.md']
        (second / 'b.md').unlink()
        again = collection.sync(second)
        assert (again.deleted, again.unchanged, again.prefix) == (1, 1, 's2/')
        assert collection.sync(second, prefix='s2/').unchanged == 1
        assert collection.sync(first).unchanged == 2


def test_another_prefix_is_refused_unless_all_docids_are_to_change(open_collection, folders):
    with open_collection() as collection:
        collection.sync(folders[0], prefix='s1/')
        with pytest.raises(MismatchError, match="has the prefix 's1/', 'one/' was given") as error:
            collection.sync(folders[0], prefix='one/')
        assert error.value.parameters == ('rebuild',)
        changes = collection.sync(folders[0], prefix='one/', rebuild=True)
        assert (changes.added, changes.deleted, changes.renamed, changes.encoded) == (0, 0, 2, 0)
        assert sorted(texts(collection)) == ['one/README.md', 'one/a.md']
        for path in folders[0].iterdir():
            path.unlink()
        (folders[0] / 'last.md').write_text('cat', encoding='utf-8')
        with pytest.raises(InputError, match='has lost 2 of 2'):
            collection.sync(folders[0])


@pytest.mark.parametrize('prefix', ['a b/', '\ud800', '\x00/'])
def test_a_prefix_with_which_no_docid_begins(open_collection, prefix):
    with open_collection() as collection, pytest.raises(InputError, match='the prefix'):
        collection.sync([('a', 'cat')], prefix=prefix)


def test_what_was_added_stays_until_it_is_deleted(open_collection, folders):
    first = folders[0]
    with open_collection() as collection:
        collection.add([('a.md', 'added')])
        with pytest.raises(SourceConflictError, match="'a.md' belongs to source 'add'") as error:
            collection.sync(first)
        assert error.value.parameters == ('prefix=NAME/',)
        collection.sync(first, prefix='s1/')
        (first / 'a.md').unlink()
        collection.sync(first)
        assert texts(collection)['a.md'] == 'added'
        with pytest.raises(InputError, match="source 'add' has the documents that"):
            collection.sync([('b', 'cat')], source='add')
        with pytest.raises(SourceConflictError, match="belongs to source '.*s1', and source 'add'"):
            collection.add([('new', 'cat'), ('s1/README.md', 'other')])
        assert collection.add([('a.md', 'added again')]).changed == 1
        collection.delete('a.md')
        assert collection.sync([('a.md', 'of another')], source='other').added == 1


def test_a_folder_by_another_path_is_the_same_source(open_collection, folders, tmp_path, caplog):
    first = folders[0]
    link = tmp_path / 'link'
    link.symlink_to(first)
    with open_collection() as collection:
        collection.sync(first)
        assert collection.sync(link).unchanged == 2
        said = f"{link} is another path of the source '{first}'"
        assert [message.startswith(said) for message in caplog.messages] == [True]
        collection.sync(link)
        assert len(caplog.messages) == 1
        with pytest.raises(SourceConflictError, match="and source 'second' has this docid"):
            collection.sync(link, source='second')


def test_a_disk_that_is_mounted_twice(open_collection, folders, monkeypatch):
    first, second = folders
    monkeypatch.setattr('os.path.samefile', lambda *paths: set(paths) == {str(first), str(second)})
    with open_collection() as collection:
        collection.sync(first)
        assert collection.sync(second, delete_most=True).changed == 1


def test_sources_change_with_a_generation_alone(open_collection, folders, tmp_path):
    first, _ = folders
    with open_collection() as collection:
        collection.sync(first)
        (tmp_path / 'link').symlink_to(first)
        changes = collection.sync(tmp_path / 'link')
        assert (changes.unchanged, changes.generation, changes.is_published) == (2, 2, True)
        again = collection.sync(tmp_path / 'link')
        assert (again.unchanged, again.generation, again.is_published) == (2, 2, False)
        assert collection.sync([], source='empty').generation == 3
        check_collection(collection.folder)


@pytest.mark.parametrize('seed', range(3))
def test_digests_of_owners_are_brought_up_to_date_by_what_changes(open_collection, seed):
    choose = random.Random(seed)
    with open_collection() as collection:
        for _ in range(6):
            source = choose.choice(['one', 'two'])
            words = choose.sample(['cat', 'dog', 'fish'], 2)
            documents = []
            for number in choose.sample(range(9), 5):
                documents.append({'id': f'd{number}', 'text': words[number % 2], 'kind': words[0]})
            collection.sync(documents, source=source, prefix=f'{source}/', delete_most=True)
            collection.compact()
            generation = collection.generation
            with contextlib.closing(open_for_reading(collection.folder)) as connection:
                expected = OWNERS.of_generation(connection, generation.number)
            assert generation.manifest.owners_digest == expected
