"""What a user's own disk, home and links do to a command: it goes on, or says one line."""

import errno
import os
import pwd
import sqlite3
import sys

import pytest

from pyserini_repbert.checksums import remembered_digest
from pyserini_repbert.collection import copying
from pyserini_repbert.collection.adaptation import JUDGMENTS
from pyserini_repbert.collection.judgments import JudgmentStore
from pyserini_repbert.collection.store import is_on_network
from pyserini_repbert.commands import command
from pyserini_repbert.commands.index import main as index
from pyserini_repbert.data.file_selection import select_files
from pyserini_repbert.errors import ExhaustedError, InputError
from pyserini_repbert.files import cache_folder, files_below
from pyserini_repbert.lucene import class_archive, java_home
from pyserini_repbert.lucene.java_home import Java

DOCUMENTS = [('a', 'cat sat'), ('b', 'the dog ran.')]


@pytest.fixture
def collection(open_collection):
    """A collection of two documents, closed."""
    opened = open_collection()
    opened.sync(DOCUMENTS)
    opened.close()
    return opened


def refused(capsys, *words):
    """The line with which `index` refuses."""
    assert command.run(index, [str(word) for word in words]) == command.EXIT_ERROR
    said = capsys.readouterr().err
    assert said.startswith('error: ') and said.count('\n') == 1
    return said


# The cache


def test_a_full_cache_only_costs_time(tmp_path, monkeypatch):
    path = tmp_path / 'weights'
    path.write_text('x')
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path / 'cache'))
    # A checksum of a new file is not remembered.
    monkeypatch.setattr('time.time_ns', lambda: path.stat().st_ctime_ns + 10**10)

    def fill_up(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, 'fsync', fill_up)
    assert remembered_digest(path).startswith('2d711642')
    assert not list((tmp_path / 'cache/digests').iterdir())


def test_a_user_without_a_home_folder(monkeypatch):
    def forget(uid):
        raise KeyError(uid)

    monkeypatch.setattr(pwd, 'getpwuid', forget)
    for name in ('HOME', 'PYSERINI_REPBERT_CACHE'):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match='set PYSERINI_REPBERT_CACHE to a folder'):
        cache_folder()
    # Java is looked for all the same.
    monkeypatch.setenv('PATH', '')
    assert all(java.source != 'PATH' for java in java_home.found_javas())


def forbid(monkeypatch, path):
    """Let the system refuse to look at what lies below a path, as for another user."""
    stat = os.stat

    def refuse(file, **options):
        if isinstance(file, (str, os.PathLike)) and os.fspath(file).startswith(f'{path}/'):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(file))
        return stat(file, **options)

    monkeypatch.setattr(os, 'stat', refuse)


def test_folders_of_other_users(tmp_path, monkeypatch):
    """A folder of PATH that may not be read has no Java, and a cache no archive."""
    monkeypatch.delenv('JAVA_HOME', raising=False)
    monkeypatch.setenv('PATH', str(tmp_path / 'root/bin'))
    monkeypatch.setenv('PYSERINI_REPBERT_CACHE', str(tmp_path / 'root/cache'))
    jar = tmp_path / 'anserini.jar'
    jar.touch()
    forbid(monkeypatch, tmp_path / 'root')
    assert all(java.source != 'PATH' for java in java_home.found_javas())
    java = Java(tmp_path, '25.0.3', 25, 'PATH')
    assert class_archive.archive_options(java, jar, ends_soon=True) == []
    assert class_archive.make_archives(java, jar, []) is None


# Links


def test_links_that_lead_nowhere_leave_the_folder_readable(tmp_path):
    (tmp_path / 'a.md').write_text('cat')
    (tmp_path / 'long.md').symlink_to('x' * 300)
    (tmp_path / 'loop.md').symlink_to('loop.md')
    found = select_files(tmp_path)
    assert found.files == files_below(tmp_path) == [tmp_path / 'a.md']
    assert [(file.path.name, file.reason) for file in found.left_out] == [
        ('long.md', 'a link to nothing'),
        ('loop.md', 'a link to nothing'),
    ]


def test_a_link_to_where_the_user_may_not_look_is_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    folder = tmp_path / 'docs'
    (folder / 'private').mkdir(parents=True)
    (folder / 'private/a.md').write_text('cat')
    (folder / 'inside.md').symlink_to('private/a.md')
    (folder / 'outside.md').symlink_to(tmp_path / 'secret/a.md')
    # As root, a test may look everywhere.
    stat = type(folder).stat

    def refuse(path, **options):
        if options.get('follow_symlinks', True) and os.path.islink(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **options)

    monkeypatch.setattr('pyserini_repbert.data.file_selection.Path.stat', refuse)
    found = select_files(folder)
    assert folder / 'inside.md' in found.files
    assert [(file.path.name, file.reason) for file in found.left_out] == [
        ('outside.md', 'a link that leaves the folder')
    ]


@pytest.mark.parametrize('action', ['sync', 'copy'])
@pytest.mark.parametrize('name', ['loop', 'loop/new'])
def test_a_link_that_leads_back_to_itself(tmp_path, capsys, action, name):
    (tmp_path / 'loop').symlink_to('loop')
    (tmp_path / 'docs').mkdir()
    if action == 'sync':
        words = ['--corpus', tmp_path / 'docs', '--index', tmp_path / name]
    else:
        words = ['--index', tmp_path / 'mine', '--output', tmp_path / name]
    assert 'is a link that leads back to itself' in refused(capsys, action, *words)


# Corpora


def test_a_collection_is_no_corpus_of_its_own(collection, capsys):
    folder = collection.folder
    for corpus in (folder, folder / 'generations'):
        for action in ('sync', 'add'):
            said = refused(capsys, action, '--corpus', corpus, '--index', folder)
            assert 'or is inside it: give the folder of the documents' in said
    assert (len(collection), collection.generation.number) == (2, 1)


def test_a_collection_in_its_corpus_is_named_by_its_flag(tmp_path, capsys):
    said = refused(capsys, 'sync', '--corpus', tmp_path, '--index', tmp_path / 'mine')
    assert said.startswith('error: --index ')


def test_an_empty_corpus_is_not_the_working_directory(tmp_path, monkeypatch, capsys):
    """`--corpus "$DOCS"` where the variable is not set."""
    (tmp_path / 'here').mkdir()
    (tmp_path / 'here/private.md').write_text('mine')
    monkeypatch.chdir(tmp_path / 'here')
    said = refused(capsys, 'sync', '--corpus', '', '--index', tmp_path / 'mine')
    assert 'the name of the corpus is empty' in said
    assert not (tmp_path / 'mine').exists()


# SQLite


@pytest.mark.parametrize('name', ['notes#1', 'what?', '100%25', 'caf\udce9'])
def test_a_collection_may_have_any_name(open_collection, tmp_path, name):
    with open_collection(name) as collection:
        collection.sync(DOCUMENTS)
        folder = collection.folder
    JudgmentStore(folder / JUDGMENTS).add_questions(['cat?'])
    copying.copy_collection(folder, tmp_path / f'{name} copied')
    copied = JudgmentStore(tmp_path / f'{name} copied' / JUDGMENTS)
    assert [question.text for question in copied.questions()] == ['cat?']


@pytest.mark.parametrize('step', ['clean', 'discard_staged'])
def test_a_disk_that_fills_up_while_a_collection_is_copied(collection, tmp_path, monkeypatch, step):
    def fill_up(*_):
        error = sqlite3.OperationalError('database or disk is full')
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(copying, step, fill_up)
    with pytest.raises(ExhaustedError, match='the disk is full'):
        copying.copy_collection(collection.folder, tmp_path / 'copy')
    assert not list(tmp_path.glob('*copy*'))


def test_a_disk_too_full_for_shared_memory_is_said_to_be_full(collection, monkeypatch):
    def fill_up(*_):
        error = sqlite3.OperationalError('disk I/O error')
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
        raise error

    monkeypatch.setattr('pyserini_repbert.collection.writing.discard_staged', fill_up)
    with pytest.raises(ExhaustedError, match='the disk is full'):
        collection.add([('c', 'red')])


@pytest.mark.parametrize(
    ('written', 'name'),
    [('/mnt/ä', '/mnt/ä'), (r'/mnt/a\040b', '/mnt/a b'), ('/\udce9', '/\udce9')],
)
def test_names_of_mounts(monkeypatch, tmp_path, written, name):
    lines = f'1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {written} rw - nfs4 server:/x rw\n'
    monkeypatch.setattr('pathlib.Path.read_text', lambda path, **_: lines)
    assert is_on_network(type(tmp_path)(name, 'mine'))
    assert not is_on_network(tmp_path)


# Streams


@pytest.mark.parametrize('encoding', ['ascii', 'utf-8'])
def test_text_that_a_terminal_cannot_show(encoding, monkeypatch):
    """A path that is not UTF-8, or a hit beyond ASCII, is not an error once the work is done."""
    reading, writing = os.pipe()
    with open(writing, 'w', encoding=encoding) as stream:
        monkeypatch.setattr(sys, 'stdout', stream)
        assert command.run(lambda words: print('\udce9'), []) == 0
    with open(reading, encoding=encoding) as shown:
        assert shown.read() == '\\udce9\n'
