"""Folders of any files in a collection: what is read, what is said, and what stays."""

import os
import sqlite3

import pytest
from folders import all_documents, write_files

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.checking import check_collection
from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import InputError
from tests.collection.files.mixed_files import MAILBOX


@pytest.fixture
def sync(tmp_path, monkeypatch, tiny_checkpoint, capsys):
    """Runs `index sync --corpus docs` with further flags; gives status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    encoder = str(tiny_checkpoint())

    def run(*flags, action='sync', corpus='docs'):
        line = ['index', action, '--corpus', corpus, '--index', 'mine', '--encoder', encoder]
        status = command.run(main, [*line, '--sparse', 'none', '--quiet', *flags])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def docids():
    with Collection.open('mine') as collection:
        return sorted(document.docid for document in all_documents(collection.generation))


def test_added_rows_of_tables_are_told_apart(sync, tmp_path, capsys):
    """They counted as 983 added documents."""
    table = ['tool,n', *(f'hoe {number},{number}' for number in range(12))]
    write_files(tmp_path / 'docs', {'a.md': 'cat', 't.csv': '\n'.join(table)})
    assert sync()[1] == (
        'mine: 13 added, 0 changed, 0 deleted, 0 unchanged; '
        'encoded 13 passages into generation 1 of the index; '
        '12 of the added documents are rows of tables\n'
    )
    command.run(main, ['index', 'status', '--index', 'mine'])
    assert 'docs: 13 documents (2 files, 12 rows), synced' in capsys.readouterr().out


def test_files_of_several_documents_are_counted_beside_them(sync, tmp_path, capsys):
    """A mailbox is a file of many documents, and no table."""
    write_files(tmp_path / 'docs', {'a.md': 'cat', 'mail.mbox': MAILBOX})
    assert sync()[1].startswith('mine: 3 added')
    command.run(main, ['index', 'status', '--index', 'mine'])
    assert 'docs: 3 documents (2 files), synced' in capsys.readouterr().out


def test_a_text_without_a_word_is_said_and_is_no_document(sync, tmp_path):
    """It was a document that nothing finds; and one that has lost its words keeps none."""
    files = {'a.md': 'x', 'b.txt': 'cat', 'c.txt': ' \n', 'd.md': '---\nyear: 1\n---\n'}
    write_files(tmp_path / 'docs', files)
    assert sync()[2] == 'not read: 1 .txt without text\n'
    assert docids() == ['a.md', 'b.txt', 'd.md']
    (tmp_path / 'docs' / 'b.txt').write_text('')
    for _ in range(2):
        status, _, err = sync()
        assert (status, err) == (0, 'not read: 2 .txt without text\n')
        assert docids() == ['a.md', 'd.md']
    (tmp_path / 'docs' / 'b.txt').write_text('cat')
    sync()
    assert docids() == ['a.md', 'b.txt', 'd.md']


def test_empty_notes_and_pages_are_no_documents(sync, tmp_path):
    """They were counted, though no question can be about them."""
    files = {
        'a.md': 'cat',
        'empty.md': ' \n',
        'header.md': '---\n---\n',
        'tagged.md': '---\ntags: [soil]\n---\n',
        'picture.md': '![](roof.jpg)',
        'blank.html': '<html><body></body></html>',
        'named.html': '<title>Roof</title>',
        'new.ipynb': '{"cells": [], "nbformat": 4, "nbformat_minor": 5}',
    }
    write_files(tmp_path / 'docs', files)
    without = '1 .html without text, 1 .ipynb without text, 2 .md without text'
    assert sync()[2] == f'not read: {without}\n'
    # Their file's name or a filter finds the others.
    assert docids() == ['a.md', 'named', 'picture.md', 'tagged.md']


def test_every_sync_says_what_is_not_read(sync, tmp_path):
    write_files(tmp_path / 'docs', {'a.md': 'x', 'b.csv': 'k,v\n1,2\n', 'c.zip': 'PK', 'd': 'P\0'})
    for _ in range(2):
        status, _, err = sync()
        assert (status, err) == (0, 'not read: 1 .zip, 1 file without suffix\n')
    assert docids() == ['a.md', 'b.csv#1']
    status, _, err = sync('--list-unread')
    assert err.splitlines()[1:] == [
        '  docs/c.zip: no reader reads such files',
        '  docs/d: no reader reads such files',
    ]
    status, _, err = sync(action='add', corpus='docs/a.md')
    assert (status, err.count('belongs to source')) == (2, 1)


@pytest.mark.parametrize('flags', [(), ('--on-error', 'skip')])
def test_a_file_named_by_itself_that_cannot_be_read(sync, tmp_path, flags):
    write_files(tmp_path, {'a.zip': b'PK\0', 'b.py': b'\xff\xfe\xff'})
    for name in ('a.zip', 'b.py'):
        status, out, err = sync(*flags, corpus=name)
        assert (status, out) == (2, '')
        assert f'{name} cannot be read: ' in err
        assert err.count('\n') == 1
    with pytest.raises(InputError, match='still empty'):
        docids()


@pytest.mark.parametrize(
    ('text', 'flags', 'problem'),
    [
        ('', (), 'corpus docs.jsonl has no documents: check'),
        ('no record\n[]\n', ('--on-error', 'skip'), 'no documents; 2 were skipped: check'),
    ],
)
def test_files_without_a_document_are_refused(sync, tmp_path, text, flags, problem):
    """They became an empty collection, and nobody was told."""
    (tmp_path / 'docs.jsonl').write_text(text)
    for action in ('sync', 'add'):
        status, out, err = sync(*flags, action=action, corpus='docs.jsonl')
        assert (status, out) == (2, '')
        assert problem in err
        assert 'nothing was changed' in err
    with pytest.raises(InputError, match='still empty'):
        docids()


def test_a_source_may_become_empty(sync, tmp_path):
    (tmp_path / 'docs.jsonl').write_text('{"id": "a", "text": "cat"}\n')
    assert sync(corpus='docs.jsonl')[0] == 0
    (tmp_path / 'docs.jsonl').write_text('')
    status, _, err = sync(corpus='docs.jsonl')
    assert status == 2
    assert 'has lost 1 of 1 documents' in err
    for flags in (('--delete-most',), ()):
        assert sync(*flags, corpus='docs.jsonl')[0] == 0
    assert docids() == []


def test_other_documents_of_the_same_file_are_no_loss(sync, tmp_path):
    """A table that got a column of docids was refused as if its disk were not mounted."""
    rows = [f'hoe {number}' for number in range(4)]
    write_files(tmp_path / 'docs', {'t.csv': '\n'.join(['tool,n', *(f'{row},1' for row in rows)])})
    sync()
    with_docids = ['id,tool', *(f'r{number},{row}' for number, row in enumerate(rows))]
    write_files(tmp_path / 'docs', {'t.csv': '\n'.join(with_docids)})
    status, out, _ = sync()
    assert (status, out.partition(' deleted')[0]) == (0, 'mine: 4 added, 0 changed, 4')
    assert docids() == [f't.csv#r{number}' for number in range(4)]
    write_files(tmp_path / 'docs', {'t.csv': 'id,tool\ns,fork\n'})
    status, _, err = sync()
    assert status == 2
    assert 'has lost 3 of 4 documents' in err


def test_patterns_of_a_sync(sync, tmp_path):
    write_files(tmp_path / 'docs', {'a.md': 'x', 'b.txt': 'x', 'old/c.md': 'x'})
    status, _, err = sync('--include', '*.md', '--exclude', 'old/')
    assert (status, err) == (0, 'not read: 2 excluded files\n')
    assert docids() == ['a.md']


def test_a_file_that_cannot_be_read_keeps_its_documents(sync, tmp_path):
    folder = write_files(tmp_path / 'docs', {'a.md': 'x', 'b.csv': 'k,v\n1,2\n3,4\n', 'c.sql': 'y'})
    sync()
    write_files(folder, {'b.csv': b'k,v\n1,\0\xff\n', 'c.sql': b'\0\xff', 'd.md': 'z'})
    status, _, err = sync()
    assert status == 3
    assert err == 'not read: 1 .csv that cannot be read, 1 .sql that cannot be read\n'
    assert docids() == ['a.md', 'b.csv#1', 'b.csv#2', 'c.sql', 'd.md']
    (folder / 'c.sql').unlink()
    sync()
    assert docids() == ['a.md', 'b.csv#1', 'b.csv#2', 'd.md']


def test_text_files_stay_what_they_were(sync, tmp_path):
    """A new note made lines of all others, or one document of each list of lines."""
    folder = write_files(tmp_path / 'docs', {'b.txt': 'Words of prose.\n', 'c.md': 'x'})
    sync()
    write_files(folder, {'b.txt': 'apples\t3\n'})
    sync()
    assert docids() == ['b.txt', 'c.md']
    folder = write_files(tmp_path / 'lists', {'b.txt': 'd1\tone\n'})
    sync(corpus='lists')
    write_files(folder, {'c.txt': 'd2\ttwo\n', 'n.md': 'x', 'o.md': 'x'})
    sync(corpus='lists')
    assert docids() == ['b.txt', 'c.md', 'd1', 'd2', 'n.md', 'o.md']
    check_collection(tmp_path / 'mine')


def test_a_forced_format_is_stored(sync, tmp_path):
    folder = write_files(tmp_path / 'docs', {'a.md': 'x', 'b.html': '<p>x'})
    sync('--corpus-format', 'html')
    for flags in ((), ('--corpus-format', 'html')):
        _, _, err = sync(*flags)
        assert (docids(), err) == (['b'], 'not read: 1 .md\n')
    sync('--rebuild')
    assert docids() == ['a.md', 'b']
    connection = sqlite3.connect(tmp_path / 'mine' / 'collection.sqlite')
    with connection:
        connection.execute("UPDATE source_formats SET format = 'os:system'")
    connection.close()
    write_files(folder, {'c.txt': 'x'})
    sync()
    assert docids() == ['a.md', 'b', 'c.txt']


def test_readers_of_ones_own(sync, tmp_path, monkeypatch):
    (tmp_path / 'own_reader.py').write_text(
        'def songs(path):\n'
        '    for number, line in enumerate(path.read_text().splitlines()):\n'
        '        yield {"id": f"{path.stem}-{number}", "text": line}\n'
        'def whole(path):\n'
        '    return path.read_text().upper()\n'
        'def broken(path):\n'
        '    raise KeyError("no")\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    write_files(tmp_path / 'docs', {'a.song': 'one\ntwo\n', 'b.md': 'x', 'c.x.song': 'three'})
    status, _, err = sync('--reader', '.song=own_reader:songs', '--reader', '.md=own_reader:whole')
    assert (status, err) == (0, '')
    with Collection.open('mine') as collection:
        texts = {item.docid: item.text for item in all_documents(collection.generation)}
    assert texts == {'a-0': 'one', 'a-1': 'two', 'b.md': 'X', 'c.x-0': 'three'}
    status, _, err = sync('--delete-most', '--reader', '.song=own_reader:broken')
    assert (status, err) == (3, 'not read: 2 .song that cannot be read\n')
    for wrong in ('.song', 'song=own_reader:songs', '.song=own_reader:none', '.song=no_module:x'):
        status, _, err = sync('--reader', wrong)
        assert (status, err.count('\n')) == (2, 1)


def test_changes_from_python_have_what_is_not_read(tmp_path, tiny_checkpoint):
    folder = write_files(tmp_path / 'docs', {'a.md': 'x', 'b.zip': 'x'})
    options = {'encoder': tiny_checkpoint(), 'sparse': 'none'}
    with Collection.open(tmp_path / 'mine', **options) as collection:
        changes = collection.sync(folder)
    assert [(file.path.name, file.reason) for file in changes.unread] == [
        ('b.zip', 'no reader reads such files')
    ]
    with pytest.raises(InputError, match='holds no corpus files'):
        Collection.open(tmp_path / 'mine', **options).sync(write_files(tmp_path / 'e', {'z': ''}))


PAGE = '<nav>All pages</nav><main><p>Snails avoid copper.</main>'


def text_of(docid):
    with Collection.open('mine') as collection:
        (document,) = collection.generation.documents([docid])
    return document.text


@pytest.mark.parametrize(
    ('corpus', 'docid', 'flags'),
    [
        ('docs', 'a', ()),
        ('docs/a.html', 'a', ()),
        ('docs', 'a', ('--corpus-format', 'html')),
    ],
)
def test_main_content_is_stored(sync, tmp_path, corpus, docid, flags):
    """The next sync without the flag had read pages as a whole again."""
    folder = write_files(tmp_path / 'docs', {'a.html': PAGE})
    sync('--main-content', *flags, corpus=corpus)
    for more in ((), ('--rebuild',), flags):
        _, out, err = sync(*more, corpus=corpus)
        assert (out.split(';')[0], err) == (
            'mine: 0 added, 0 changed, 0 deleted, 1 unchanged',
            '',
        )
    write_files(folder, {'a.html': PAGE.replace('Snails', 'Slugs')})
    sync(corpus=corpus)
    assert text_of(docid) == 'Slugs avoid copper.'
    assert command.run(main, ['index', 'status', '--index', 'mine']) == 0


def test_another_main_content_is_said(sync, tmp_path, capsys):
    write_files(tmp_path / 'docs', {'a.html': PAGE, 'b.md': 'x'})
    _, _, err = sync()
    assert err == ''
    _, out, err = sync('--main-content')
    assert '1 changed' in out
    assert err == (
        'pages of docs are read without their navigation, headers and footers from now on; '
        '--no-main-content undoes that\n'
    )
    command.run(main, ['index', 'status', '--index', 'mine'])
    assert ', main content of pages\n' in capsys.readouterr().out
    _, _, err = sync('--no-main-content')
    assert err == 'pages of docs are read as a whole from now on; --main-content undoes that\n'
    assert text_of('a').startswith('All pages')
    _, _, err = sync()
    assert err == ''
    check_collection(tmp_path / 'mine')


def test_a_name_that_is_not_in_utf_8(sync, tmp_path):
    """Its file is not read, and the others are."""
    folder = write_files(tmp_path / 'docs', {'a.md': 'x'})
    try:
        os.rename(folder / 'a.md', os.fsencode(folder) + b'/a\xff.md')
    except OSError:
        pytest.skip('the file system takes no such names')
    write_files(folder, {'b.md': 'y'})
    for changes in ('1 added, 0 changed, 0 deleted, 0', '0 added, 0 changed, 0 deleted, 1'):
        status, out, err = sync()
        assert status == 3
        assert out.startswith(f'mine: {changes} unchanged')
        assert err.splitlines()[0] == 'not read: 1 .md that cannot be read'
        assert docids() == ['b.md']
