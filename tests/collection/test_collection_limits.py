"""What the system refuses: locks, room on the disk, folders that cannot be written."""

import errno
import fcntl
import os
import shutil
import sqlite3

import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.store import is_on_network
from pyserini_repbert.errors import (
    DamagedFileError,
    ExhaustedError,
    InputError,
    PyseriniRepbertError,
)

DOCUMENTS = [('a', 'cat sat'), ('b', 'the dog ran.')]


def test_a_file_system_without_locks_is_not_written(open_collection, monkeypatch):
    def refuse(handle, operation):
        raise OSError(errno.ENOLCK, 'No locks available')

    collection = open_collection()
    collection.sync(DOCUMENTS)
    collection.close()
    monkeypatch.setattr(fcntl, 'flock', refuse)
    with pytest.raises(InputError, match='file system without locks'):
        collection.add([('c', 'red')])
    # it can be read
    assert len(collection) == 2


@pytest.mark.parametrize('what', ['vectors', 'half of the vectors', 'documents'])
def test_a_full_disk_leaves_the_generation_as_it_was(open_collection, monkeypatch, what):
    collection = open_collection()
    collection.sync(DOCUMENTS)
    with monkeypatch.context() as patch:
        if 'vectors' in what:

            def save(path, array):
                if what == 'vectors':
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                # what NumPy raises
                raise OSError('8280 requested and 2016 written')

            patch.setattr('numpy.save', save)
        else:

            def insert(*_):
                error = sqlite3.OperationalError('database or disk is full')
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error

            patch.setattr('pyserini_repbert.collection.rows.StagedRows._insert', insert)
        with pytest.raises(ExhaustedError, match='the disk is full'):
            collection.add([('c', 'red moon')])
    assert (len(collection), collection.generation.number) == (2, 1)
    assert str(collection.add([('c', 'red moon')])).startswith('1 added')


def test_a_damaged_store_is_one_line(open_collection):
    collection = open_collection()
    collection.sync(DOCUMENTS)
    collection.close()
    path = collection.folder / 'collection.sqlite'
    path.write_bytes(b'no database' * 1000)
    with pytest.raises(DamagedFileError, match='is damaged'):
        len(collection)
    with pytest.raises(DamagedFileError, match='is damaged'):
        collection.add(DOCUMENTS)


def test_another_database_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / 'collection.sqlite')
    connection.execute('CREATE TABLE t (a)')
    connection.close()
    with pytest.raises(DamagedFileError, match='is not a collection of this package'):
        len(Collection.open(tmp_path))


def test_a_folder_that_cannot_be_written_is_read(open_collection, monkeypatch):
    collection = open_collection()
    collection.sync(DOCUMENTS)
    collection.close()
    monkeypatch.setattr(os, 'access', lambda path, mode: False)
    assert len(collection) == 2


def test_a_first_sync_that_failed_is_said(open_collection):
    collection = open_collection()
    with pytest.raises(InputError, match='has no .text. that is a text'):
        collection.sync([*({'id': f'd{n}', 'text': 'cat'} for n in range(300)), {'id': 'bad'}])
    with pytest.raises(InputError, match='is still empty'):
        len(collection)
    assert collection.sync(DOCUMENTS).generation == 1


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'encoder': 'none'}, "'none' is neither one of the catalog's encoders"),
        ({'overlap': 9}, 'expected an overlap of at most half of a passage'),
        ({'overlap': -1}, 'an overlap of -1 wordpieces: expected at least 0'),
        ({'passage_tokens': 0}, 'passages of 0 wordpieces: expected at least 1'),
        ({'sparse': 'nobody'}, "sparse ranking 'nobody' is unknown"),
        ({'language': 'xx'}, 'language'),
        ({'truncate_dim': 99}, '99 values of each vector were asked for'),
        ({'precision': 'f8'}, "precision 'f8' is unknown"),
    ],
)
def test_refused_settings_leave_no_folder(tmp_path, checkpoint, given, message):
    settings = {'encoder': checkpoint, 'passage_tokens': 10, 'overlap': 3, 'sparse': 'none'}
    folder = tmp_path / 'mine'
    with pytest.raises(PyseriniRepbertError, match=message):
        Collection.open(folder, **settings | given).sync(DOCUMENTS)
    assert not folder.exists()
    # A folder that was there before stays.
    folder.mkdir()
    with pytest.raises(PyseriniRepbertError, match=message):
        Collection.open(folder, **settings | given).sync(DOCUMENTS)
    with Collection.open(folder, **settings) as collection:
        assert collection.sync(DOCUMENTS).added == len(DOCUMENTS)


def test_mounts_over_a_network(tmp_path, monkeypatch):
    assert not is_on_network(tmp_path)
    lines = f'1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path} rw - nfs4 server:/x rw\n'
    monkeypatch.setattr('pathlib.Path.read_text', lambda path, **_: lines)
    assert is_on_network(tmp_path / 'mine')
    assert not is_on_network(tmp_path.parent)


@pytest.fixture
def synced_folder(open_collection, tmp_path):
    """A folder of three documents, and a collection that was synced with it."""
    folder = tmp_path / 'docs'
    (folder / 'sub').mkdir(parents=True)
    for name in ('one.md', 'two.md', 'sub/three.md'):
        (folder / name).write_text(f'cat {name}', encoding='utf-8')
    collection = open_collection()
    collection.sync(folder)
    return folder, collection


def test_a_folder_that_has_become_empty_deletes_nothing(synced_folder):
    folder, collection = synced_folder
    shutil.rmtree(folder)
    with pytest.raises(InputError, match='docs'):
        collection.sync(folder)
    folder.mkdir()
    with pytest.raises(InputError, match='holds no corpus files'):
        collection.sync(folder)
    assert (len(collection), collection.generation.number) == (3, 1)


def test_a_folder_that_cannot_be_read_deletes_nothing(synced_folder, monkeypatch):
    folder, collection = synced_folder
    scan = os.scandir

    def refuse(path):
        if str(path).endswith('sub'):
            raise PermissionError(errno.EACCES, 'Permission denied', str(path))
        return scan(path)

    monkeypatch.setattr(os, 'scandir', refuse)
    with pytest.raises(InputError, match=r'sub cannot be read \(Permission denied\)'):
        collection.sync(folder)
    assert (len(collection), collection.generation.number) == (3, 1)


def test_a_file_that_cannot_be_read_deletes_nothing(synced_folder, monkeypatch):
    folder, collection = synced_folder

    def refuse(*_):
        raise PermissionError(errno.EACCES, 'Permission denied')

    monkeypatch.setattr('pyserini_repbert.collection.files.text_corpus.open_binary', refuse)
    (folder / 'two.md').write_text('another cat', encoding='utf-8')
    collection.sync(folder)
    assert len(collection) == 3
    with pytest.raises(InputError, match='Permission denied'):
        collection.sync(folder, strict=True)
    assert len(collection) == 3
