"""A file's docid is shown as a person reads it, and found as it is stored or as it is read."""

import pytest
from folders import all_documents
from hypothesis import given, strategies as st

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.data.origins import docid_of_path, readable_docid

STORED = 'Backup%20docs/100%25%20wool.txt'
READ = 'Backup docs/100% wool.txt'


@pytest.mark.parametrize(
    ('stored', 'read'),
    [
        (STORED, READ),
        ('a%2520b', 'a%20b'),
        ('caf%C3%A9', 'caf%C3%A9'),
        ('a%0Ab', 'a%0Ab'),
        ('5%', '5%'),
    ],
)
def test_only_what_is_found_again_is_shown_otherwise(stored, read):
    assert readable_docid(stored) == read


@given(st.text(st.sampled_from('ab %2050\u00a0é/'), max_size=20))
def test_a_readable_docid_leads_to_the_stored_one(text):
    for stored in (text, docid_of_path(text)):
        read = readable_docid(stored)
        assert stored in (read, docid_of_path(read))


@pytest.fixture
def mine(tmp_path, monkeypatch, checkpoint):
    """The folder of a collection of two files of the same text and another one."""
    monkeypatch.chdir(tmp_path)
    for name, text in {READ: 'red cat', 'Other docs/a.txt': 'red cat', 'b.txt': 'big dog'}.items():
        path = tmp_path / 'notes' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    flags = ['--encoder', checkpoint, '--sparse', 'none', '--quiet']
    assert run(main, ['index', 'sync', '--corpus', 'notes', '--index', 'mine', *flags]) == 0
    return tmp_path / 'mine'


def test_people_read_names_and_runs_have_docids(mine, capsys, tmp_path):
    assert run(main, ['search', '--index', 'mine', '--query', 'red cat', '--quiet']) == 0
    shown = capsys.readouterr().out
    assert '%20' not in shown
    assert f'. {READ}  (' in shown or f'the same in {READ}' in shown
    (tmp_path / 'topics.tsv').write_text('1\tred cat\n')
    flags = ['--topics', 'topics.tsv', '--output', 'run.txt', '--quiet']
    assert run(main, ['search', '--index', 'mine', *flags]) == 0
    assert STORED in (tmp_path / 'run.txt').read_text()


@pytest.mark.parametrize('typed', [STORED, READ])
def test_what_is_typed_finds_the_document(mine, capsys, typed):
    assert run(main, ['search', '--index', 'mine', '--like', typed, '--quiet']) == 0
    assert f'? like {READ}\n' in capsys.readouterr().out
    flags = ['--query', 'red cat', '--filter', f'docid:"{typed}"', '--quiet']
    assert run(main, ['search', '--index', 'mine', *flags]) == 0
    assert f'   1. {READ}  (' in capsys.readouterr().out
    assert run(main, ['index', 'delete', '--index', 'mine', '--ids', typed, '--quiet']) == 0
    with Collection.open(mine) as collection:
        docids = [document.docid for document in all_documents(collection.generation)]
    assert sorted(docids) == ['Other%20docs/a.txt', 'b.txt']


@pytest.mark.parametrize(('wanted', 'shown'), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_others_take_the_places_of_copies(mine, capsys, tmp_path, wanted, shown):
    """Of three hits, two were shown where one was a copy, or where most of the first six were."""
    for name in ('c', 'd', 'e', 'f', 'g', 'h'):
        (tmp_path / 'notes' / f'{name}.txt').write_text('old cat')
    assert run(main, ['index', 'sync', '--corpus', 'notes', '--index', 'mine', '--quiet']) == 0
    capsys.readouterr()
    flags = ['--query', 'red cat', '--hits', str(wanted), '--quiet']
    assert run(main, ['search', '--index', 'mine', *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    numbers = [line.split('.')[0].strip() for line in lines if line[:4].strip().isdecimal()]
    assert numbers == [str(number) for number in range(1, shown + 1)]


def test_a_page_is_named_by_its_file(mine, capsys, tmp_path):
    """The docid of a page leaves out its suffix: its file's name was no document."""
    (tmp_path / 'notes' / 'My page.html').write_text('<title>Cats</title><p>old cat')
    assert run(main, ['index', 'sync', '--corpus', 'notes', '--index', 'mine', '--quiet']) == 0
    capsys.readouterr()
    typed = 'My page.html'
    assert run(main, ['search', '--index', 'mine', '--like', typed, '--quiet']) == 0
    assert '? like My page\n' in capsys.readouterr().out
    flags = ['--query', 'cat', '--filter', f'docid:"{typed}"', '--quiet']
    assert run(main, ['search', '--index', 'mine', *flags]) == 0
    assert '   1. My page  (' in capsys.readouterr().out
    assert run(main, ['index', 'delete', '--index', 'mine', '--ids', typed, '--quiet']) == 0
    with Collection.open(mine) as collection:
        docids = [document.docid for document in all_documents(collection.generation)]
    assert 'My%20page' not in docids
