"""Files that are as they were are not opened again, and nothing else looks unchanged."""

import os
import sqlite3
import time

import pytest
from folders import all_documents, write_files

from pyserini_repbert.collection import Collection, source_files
from pyserini_repbert.collection.files import folder_corpus
from pyserini_repbert.data import file_records
from pyserini_repbert.names.corpora import open_corpus
from tests.collection.files.mixed_files import MAILBOX

LONG_AGO = time.time() - 1_000_000


@pytest.fixture
def folder(tmp_path):
    """A folder of files that were written long ago."""
    folder = write_files(
        tmp_path / 'docs', {'a.md': 'cat', 'b.csv': 'id,text\n1,dog\n2,cow\n', 'sub/c.md': 'hen'}
    )
    for path in folder.rglob('*'):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return folder


@pytest.fixture
def opened(monkeypatch):
    """The names of the files that were read, and of those that were only looked at."""
    names = {'read': [], 'looked': []}
    read = folder_corpus.FolderCorpus._documents_of_file
    look = file_records.look_at

    def noted_read(self, kind, file, seen):
        names['read'].append(file.path.name)
        return read(self, kind, file, seen)

    def noted_look(path):
        names['looked'].append(path.name)
        return look(path)

    monkeypatch.setattr(folder_corpus.FolderCorpus, '_documents_of_file', noted_read)
    monkeypatch.setattr(file_records, 'look_at', noted_look)
    return names


@pytest.fixture
def no_clock_step(monkeypatch):
    """The inode of a file that a test has just written changes now: let that be long ago."""
    monkeypatch.setattr(file_records, '_CLOCK_STEP', 0)
    return lambda: time.sleep(0.02)


@pytest.fixture
def sync(open_collection, folder, opened, no_clock_step):
    """sync(**settings) -> the changes; `opened` has what this sync opened."""

    def run(**settings):
        no_clock_step()
        for names in opened.values():
            names.clear()
        with open_collection() as collection:
            return collection.sync(folder, **settings)

    return run


def texts(tmp_path):
    with Collection.open(tmp_path / 'mine') as collection:
        documents = all_documents(collection.generation)
        return {document.docid: document.text for document in documents}


def test_unchanged_files_are_not_opened(sync, opened):
    assert sync().added == 4
    assert set(opened['read']) == {'a.md', 'b.csv', 'c.md'}
    changes = sync()
    assert changes.documents == {'added': 0, 'changed': 0, 'deleted': 0, 'unchanged': 4}
    assert opened == {'read': [], 'looked': []}
    assert not changes.is_published


def test_a_changed_file_alone_is_read(sync, opened, folder, tmp_path):
    sync()
    (folder / 'a.md').write_text('fox')
    os.utime(folder / 'a.md', (LONG_AGO, LONG_AGO))
    changes = sync()
    assert (changes.changed, changes.unchanged) == (1, 3)
    assert opened['read'] == ['a.md']
    assert texts(tmp_path)['a.md'] == 'fox'


def test_a_digest_decides_where_times_differ(sync, opened, folder):
    sync()
    os.utime(folder / 'a.md')
    sync()
    assert opened == {'read': [], 'looked': ['a.md']}
    sync()
    assert opened == {'read': [], 'looked': []}


def test_checksum_looks_at_all_files(sync, opened):
    sync()
    sync(checksum=True)
    assert opened['read'] == []
    assert sorted(opened['looked']) == ['a.md', 'b.csv', 'c.md']


def test_a_file_that_has_just_been_written_may_change_once_more(
    open_collection, folder, opened, monkeypatch
):
    """Within one step of the clock, size and times stay the same."""
    monkeypatch.setattr(file_records, '_CLOCK_STEP', 3_600_000_000_000)
    state = file_records.FileState(3, 1, 1, 1)
    monkeypatch.setattr(file_records.FileState, 'of', lambda path: state)
    monkeypatch.setattr(file_records.time, 'time_ns', lambda: 2)
    with open_collection() as collection:
        collection.sync(folder)
        (folder / 'a.md').write_text('fox')
        changes = collection.sync(folder)
    assert (changes.changed, changes.unchanged) == (1, 3)


def test_another_size_is_read_whatever_the_times_say(sync, folder, tmp_path):
    sync()
    (folder / 'b.csv').write_text('id,text\n1,dog\n')
    os.utime(folder / 'b.csv', (LONG_AGO, LONG_AGO))
    changes = sync()
    assert changes.documents == {'added': 0, 'changed': 0, 'deleted': 1, 'unchanged': 3}


def test_other_readers_read_all_files(sync, opened, monkeypatch):
    sync()
    monkeypatch.setattr(source_files, 'installed_versions', lambda: 'readers 99')
    sync()
    assert sorted(opened['read']) == ['a.md', 'b.csv', 'c.md']


def test_other_settings_read_all_files(sync, opened):
    sync()
    sync(prefix='notes/', rebuild=True)
    assert len(opened['read']) == 3
    sync()
    assert opened['read'] == []
    sync(rebuild=True)
    assert len(opened['read']) == 3


def test_documents_that_were_deleted_by_hand_come_back(sync, opened, open_collection, tmp_path):
    sync()
    with open_collection() as collection:
        collection.delete(['b.csv#2'])
    changes = sync()
    assert changes.added == 1
    assert opened['read'] == ['b.csv']


def test_a_sync_of_an_earlier_release_is_noticed(sync, opened, tmp_path):
    """It knows nothing of records, and may have read other content meanwhile."""
    sync()
    with sqlite3.connect(tmp_path / 'mine' / 'collection.sqlite') as connection:
        connection.execute("UPDATE source_syncs SET synced = '2020-01-01T00:00:00+00:00'")
    sync()
    assert len(opened['read']) == 3


def test_an_interrupted_sync_leaves_no_record(sync, opened, folder, monkeypatch):
    from pyserini_repbert.collection.writing import Writer

    sync()
    (folder / 'a.md').write_text('fox')

    def stop(self, merge=False, compact=False):
        raise KeyboardInterrupt

    with monkeypatch.context() as stopping:
        stopping.setattr(Writer, 'finish', stop)
        with pytest.raises(KeyboardInterrupt):
            sync()
    assert sync().changed == 1
    assert opened['read'] == ['a.md']


def test_a_repeated_docid_is_found_beside_unchanged_files(sync, folder):
    write_files(folder, {'one.jsonl': '{"id": "x", "text": "cat"}\n'})
    sync()
    write_files(folder, {'two.jsonl': '{"id": "x", "text": "dog"}\n'})
    changes = sync()
    ((broken, reason),) = [(file.path.name, file.reason) for file in changes.unread.broken]
    assert broken == 'two.jsonl'
    assert "docid 'x' was used before" in reason


def test_files_without_text_are_named_again_and_broken_ones_tried_again(sync, opened, folder):
    write_files(folder, {'empty.org': '', 'broken.csv': b'a,b\n1,\0\xff\n'})
    first = sync()
    assert len(first.unread) == 2
    second = sync()
    assert list(second.unread) == list(first.unread)
    assert opened['read'] == ['broken.csv']


def test_a_mailbox_is_a_file_of_many_documents(sync, opened, folder):
    mails = [f'From me\nSubject: s{number}\n\nhello {number}\n' for number in range(3)]
    write_files(folder, {'box.mbox': '\n'.join(mails)})
    assert sync().added == 7
    changes = sync()
    assert (changes.unchanged, opened['read']) == (7, [])
    (folder / 'box.mbox').unlink()
    assert sync().deleted == 3


def test_a_readers_own_files_are_always_read(sync, opened, folder, tmp_path):
    from pyserini_repbert.data.file_selection import FileSelection
    from pyserini_repbert.names.corpora import open_corpus

    selection = FileSelection(readers={'.md': lambda path: path.read_text()})
    for _ in range(2):
        sync(corpus_name=folder)
    with Collection.open(tmp_path / 'mine') as collection:
        opened['read'].clear()
        collection.sync(open_corpus(folder, keep_empty=True, selection=selection))
        opened['read'].clear()
        collection.sync(open_corpus(folder, keep_empty=True, selection=selection))
    assert sorted(opened['read']) == ['a.md', 'c.md']


@pytest.mark.parametrize('name', ['b.csv', 'a.mbox'])
def test_a_file_alone_that_is_as_it_was_is_not_read(
    open_collection, folder, no_clock_step, monkeypatch, name
):
    path = folder / name
    if name == 'a.mbox':
        path.write_text(MAILBOX)
    read = []
    read_documents = folder_corpus.FolderCorpus._documents_in

    def noted_read(self, kind, file):
        read.append(file.path.name)
        return read_documents(self, kind, file)

    monkeypatch.setattr(folder_corpus.FolderCorpus, '_documents_in', noted_read)

    def sync(**settings):
        no_clock_step()
        read.clear()
        with open_collection() as collection:
            return collection.sync(path, **settings)

    assert sync().added == 2
    changes = sync()
    assert (changes.unchanged, read, changes.is_published) == (2, [], False)
    assert sync(checksum=True).unchanged == 2
    assert read == []
    os.utime(path)
    assert sync().unchanged == 2
    assert read == []
    path.write_text(path.read_text().replace('dog', 'fox').replace('Garlic', 'Chives'))
    changes = sync()
    assert (changes.changed, changes.unchanged, read) == (1, 1, [name])


def test_a_file_alone_with_skipped_lines_is_read_again(open_collection, folder, no_clock_step):
    path = folder / 'b.csv'
    path.write_text('id,text\n1,dog\n1,dog\n')
    for _ in range(2):
        no_clock_step()
        with open_collection() as collection:
            changes = collection.sync(open_corpus(path, on_error='skip', keep_empty=True))
        assert (changes.skipped, changes.added + changes.unchanged) == (0, 2)
