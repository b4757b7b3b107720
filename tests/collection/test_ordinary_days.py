"""A folder as people use it: each day something happens to it, and it is synced again."""

import contextlib
import gzip
import shutil

import pytest
from folders import all_documents, write_files

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.collection.files import folder_corpus
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.collection.writing import Writer
from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import InputError
from pyserini_repbert.indexes.kind import SearchOptions, kind_of

PAGES = {
    'beds/beans.md': '# Beans\n\nBeans climb up poles.',
    'beds/kale.md': '---\nyear: 2020\n---\n\nKale is hardy.',
    'beds/leeks.html': '<title>Leeks</title><p>Leeks like frost.',
    'beds/list.jsonl': '{"id": "r1", "text": "Rakes."}\n{"id": "r2", "text": "Hoes."}\n',
    'beds/tools.csv': 'id,text\n1,Forks lift.\n2,Hoes cut.\n',
    'mail/order.eml': 'From: a@b\nSubject: Seeds\n\nThey arrive in March.',
}
ALL = [
    'beds/beans.md',
    'beds/kale.md',
    'beds/leeks',
    'beds/tools.csv#1',
    'beds/tools.csv#2',
    'mail/order.eml',
    'r1',
    'r2',
]


@pytest.fixture
def folder(tmp_path):
    """docs/, with what a person has."""
    return write_files(tmp_path / 'docs', PAGES)


@pytest.fixture
def sync(folder, tmp_path, monkeypatch, checkpoint, capsys):
    """Runs `index sync --corpus docs`, once for a start; gives status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    line = ['index', 'sync', '--corpus', 'docs', '--index', 'mine', '--encoder', checkpoint]

    def run(*flags):
        status = command.run(main, [*line, '--sparse', 'none', '--quiet', *flags])
        said = capsys.readouterr()
        return status, said.out, said.err

    assert run()[::2] == (0, '')
    return run


def texts():
    """The texts of the collection by docid; it has to be whole."""
    with Collection.open('mine') as collection:
        check_collection(collection.folder)
        return {item.docid: item.text for item in all_documents(collection.generation)}


def test_a_day_of_moving_files_into_another_folder(sync, folder):
    """More than half were lost, judgments too, and everything was refused."""
    store = judgments_of(folder.parent / 'mine')
    store.add([Judgment('what is hardy', 'beds/kale.md', 3)])
    store.add_pool('p1', 'what is hardy', ['beds/kale.md', 'r1'])
    (folder / 'beds').rename(folder / 'rows')
    status, out, err = sync()
    assert (status, err) == (0, '')
    assert out == (
        'mine: 0 added, 0 changed, 0 deleted, 5 renamed, 3 unchanged; '
        'encoded 0 passages into generation 2 of the index\n'
    )
    assert sorted(texts()) == sorted(docid.replace('beds', 'rows') for docid in ALL)
    assert [given.docid for given in store.judgments()] == ['rows/kale.md']
    assert store.pool_sizes() == {'what is hardy': 2}


def test_judgments_follow_after_a_kill(sync, folder, monkeypatch):
    store = judgments_of(folder.parent / 'mine')
    store.add([Judgment('what is hardy', 'beds/kale.md', 3)])
    (folder / 'beds/kale.md').rename(folder / 'kale.md')
    with monkeypatch.context() as patched:
        patched.setattr(Writer, '_rename_judged', lambda writer: None)
        sync()
    assert [given.docid for given in store.judgments()] == ['beds/kale.md']
    sync()
    assert [given.docid for given in store.judgments()] == ['kale.md']


BREAKS = {
    'beds/kale.md': b'---\nyear: [\n---\n\nNew.',
    'beds/beans.md': 'Café, naïve'.encode() + b'\xff',
    'beds/list.jsonl': PAGES['beds/list.jsonl'].encode() + b'{"id": "r3", "te',
    'beds/tools.csv': b'id,text\n1,\0\xff\n',
    'mail/order.eml': b'\n',
}


@pytest.mark.parametrize('name', BREAKS)
def test_a_day_with_a_broken_file(sync, folder, name):
    """It refused the sync, or its documents were lost."""
    before = texts()
    (folder / name).write_bytes(BREAKS[name])
    write_files(folder, {'new.md': 'New.'})
    status, out, err = sync('--list-unread')
    first, second = err.splitlines()
    assert (status, first) == (3, f'not read: 1 {(folder / name).suffix} that cannot be read')
    assert second.startswith(f'  docs/{name}: ')
    assert texts() == {**before, 'new.md': 'New.'}
    write_files(folder, {'newer.md': 'Newer.'})
    status, out, err = sync('--strict')
    assert (status, out, err.count('\n')) == (2, '', 1)
    assert f'docs/{name} cannot be read: ' in err
    assert '(--strict)' not in err
    assert 'newer.md' not in texts()
    write_files(folder, {name: PAGES[name]})
    assert sync()[::2] == (0, '')
    assert texts() == {**before, 'new.md': 'New.', 'newer.md': 'Newer.'}


def test_a_day_with_a_stray_copy_of_records(sync, folder):
    """A docid that is used twice refused the sync."""
    shutil.copy(folder / 'beds/list.jsonl', folder / 'beds/list2.jsonl')
    write_files(folder, {'settings.json': '{"a": 1}', 'x.zip': 'PK', 'z.gz': b'x'})
    status, _, err = sync('--list-unread')
    assert status == 3
    assert "list2.jsonl: line 1: docid 'r1' was used before, at docs/beds/list.jsonl" in err
    assert sorted(texts()) == ALL
    (folder / 'beds/list2.jsonl').unlink()
    assert sync()[0] == 0


def test_a_day_without_the_disk(sync, folder, tmp_path):
    folder.rename(tmp_path / 'away')
    folder.mkdir()
    status, _, err = sync()
    assert (status, err.count('\n')) == (2, 1)
    assert 'holds no corpus files' in err
    write_files(folder, {'README.md': 'Mount it here.'})
    status, _, err = sync()
    assert (status, err.count('\n')) == (2, 1)
    assert (
        "docs has lost 8 of 8 documents (most of them below 'beds/'; 1 new): check the source, "
        'whose disk may not be mounted, or allow the deletion of more than half; nothing was '
        'changed (--delete-most)' in err
    )
    shutil.rmtree(folder)
    (tmp_path / 'away').rename(folder)
    assert sync()[1].startswith(
        'mine: 0 added, 0 changed, 0 deleted, 8 unchanged; encoded 0 passages'
    )
    assert sorted(texts()) == ALL


def test_a_day_of_going_back_to_the_backup(sync, folder, tmp_path):
    shutil.copytree(folder, tmp_path / 'backup')
    before = texts()
    write_files(folder, {'beds/kale.md': 'Kale died.', 'mail/new.md': 'New.'})
    (folder / 'beds/beans.md').unlink()
    sync()
    shutil.rmtree(folder)
    (tmp_path / 'backup').rename(folder)
    status, out, err = sync()
    assert (status, err) == (0, '')
    assert out.startswith('mine: 1 added, 1 changed, 1 deleted, 6 unchanged')
    assert texts() == before


def test_a_day_with_an_editor_that_works_during_the_sync(sync, folder, monkeypatch):
    """A file that was gone meanwhile ended the sync."""
    write_files(folder, {'beds/beans.md': 'Beans, edited', 'beds/kale.md': 'Kale, edited'})
    files = folder_corpus.FolderCorpus._kinds_and_files

    def edit(corpus, planned):
        for kind, file in files(corpus, planned):
            if file.path.name == 'beans.md':
                file.path.unlink()
            elif file.path.name == 'kale.md':
                file.path.write_text('Kale, half-writ')
            yield kind, file

    with monkeypatch.context() as patched:
        patched.setattr(folder_corpus.FolderCorpus, '_kinds_and_files', edit)
        status, _, err = sync()
    assert (status, err) == (3, 'not read: 1 .md that cannot be read\n')
    assert texts()['beds/beans.md'] == 'Beans climb up poles.'
    write_files(folder, {'beds/kale.md': 'Kale, written.'})
    assert sync()[::2] == (0, '')
    assert 'beds/beans.md' not in texts()
    assert texts()['beds/kale.md'] == 'Kale, written.'


def test_a_day_with_another_program_that_writes_its_own_encoding(sync, folder):
    write_files(folder, {'mail/note.md': '# Café\n\nDie Äpfel'.encode('cp1252')})
    status, _, err = sync()
    assert (status, err) == (0, 'not in UTF-8, so read as: docs/mail/note.md (cp1252)\n')
    assert texts()['mail/note.md'] == 'Die Äpfel'


def test_a_day_of_renaming_and_editing_at_once(sync, folder):
    """What was edited is another document; of two with one text, the name of the file tells."""
    write_files(folder, {'a/x.md': 'Same.', 'a/y.md': 'Same.'})
    sync()
    (folder / 'a').rename(folder / 'b')
    write_files(folder, {'b/y.md': 'Other.'})
    judgments_of(folder.parent / 'mine').add([Judgment('q', 'a/x.md', 1)])
    _, out, _ = sync()
    assert out.startswith('mine: 1 added, 0 changed, 1 deleted, 1 renamed, 8 unchanged')
    (given,) = judgments_of(folder.parent / 'mine').judgments()
    assert given.docid == 'b/x.md'


def test_a_day_with_a_damaged_archive_and_large_records(sync, folder, monkeypatch):
    """Files with much text are read twice, so that nothing of them is used before all is read."""
    monkeypatch.setattr(folder_corpus, '_MOST_HELD', 3)
    before = texts()
    packed = gzip.compress(b'{"id": "g1", "text": "Gloves and a hat."}\n' * 1)
    write_files(folder, {'g.jsonl.gz': packed})
    assert sync()[0] == 0
    write_files(folder, {'g.jsonl.gz': packed[:-9]})
    assert sync()[0] == 3
    assert texts() == {**before, 'g1': 'Gloves and a hat.'}


def test_a_page_of_a_heading_alone_is_renamed(sync, folder):
    """It has a title and no text."""
    (folder / 'peas.md').write_text('# Peas\n')
    sync()
    (folder / 'peas.md').rename(folder / 'beds/peas.md')
    status, out, _ = sync()
    assert status == 0
    assert out.startswith('mine: 0 added, 0 changed, 0 deleted, 1 renamed, 8 unchanged')


def test_status_says_what_could_not_be_read(sync, folder, capsys):
    write_files(folder, {'beds/kale.md': BREAKS['beds/kale.md'], 'x.zip': 'PK'})
    sync()
    assert main(['index', 'status', '--index', 'mine']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('mine: 8 documents, 8 passages, generation 1, ')
    assert lines[1].startswith(f'  {folder}: 8 documents (6 files, 2 rows), synced 20')
    assert lines[2] == '    not read: 1 .md that cannot be read, 1 .zip'
    assert lines[3].startswith('      docs/beds/kale.md: the header')
    assert len(lines) == 4
    # Nobody who searches over HTTP sees where the folder lies.
    index = kind_of('mine').open('mine', SearchOptions())
    with contextlib.closing(index):
        (source,) = index.about()['sources']
    assert (source['name'], source['documents']) == ('docs', 8)
    assert source['unread'] == 'not read: 1 .md that cannot be read, 1 .zip'


def test_python_keeps_and_refuses_too(folder, tmp_path, checkpoint):
    with Collection.open(tmp_path / 'mine', checkpoint, sparse='none') as collection:
        collection.sync(folder)
        write_files(folder, {'beds/kale.md': BREAKS['beds/kale.md']})
        changes = collection.sync(folder)
        assert [file.path.name for file in changes.unread if file.is_broken] == ['kale.md']
        with pytest.raises(InputError, match='kale.md cannot be read'):
            collection.sync(folder, strict=True)
        assert len(collection) == 8
