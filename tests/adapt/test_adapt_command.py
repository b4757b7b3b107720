"""`adapt` at the command line, and `search` with what it wrote."""

import json

import pytest

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main

ADAPT = 'adapt --index index --topics topics.tsv --qrels qrels --quiet --output mine'.split()


@pytest.fixture
def folder(searcher, tmp_path, monkeypatch):
    """The working directory: an index, and 30 topics that teach nothing."""
    monkeypatch.chdir(tmp_path)
    numbers = range(30)
    (tmp_path / 'topics.tsv').write_text(''.join(f'{n}\tcat dog {n}\n' for n in numbers))
    (tmp_path / 'qrels').write_text(''.join(f'{n} 0 d{n} 1\n' for n in numbers))
    return tmp_path


def test_nothing_is_written_without_a_gain(folder, capsys):
    assert run(main, ADAPT) == 0
    assert 'the gain may be noise, so mine is not written' in capsys.readouterr().out
    assert not (folder / 'mine').exists()


def test_keep_writes_the_folder_and_its_record(folder, capsys):
    assert run(main, [*ADAPT, '--keep']) == 0
    estimate = json.loads((folder / 'mine/adapted.json').read_text())['estimate']
    assert estimate['topics'] == 30
    assert f'over now: {estimate["gain"]:+.4f}, 95% interval' in capsys.readouterr().out
    inputs = json.loads((folder / 'mine.record.json').read_text())['inputs']
    assert [entry['role'] for entry in inputs] == ['index', 'topics', 'qrels']


def test_a_search_with_the_folder_records_it(folder):
    assert run(main, [*ADAPT, '--keep']) == 0
    assert run(main, 'search --adapted mine --topics topics.tsv --output run'.split()) == 0
    inputs = json.loads((folder / 'run.record.json').read_text())['inputs']
    assert [entry['name'] for entry in inputs if entry['role'] == 'adapted'] == ['mine']


def test_a_folder_that_is_there_is_refused_without_overwrite(folder, capsys):
    assert run(main, [*ADAPT, '--keep']) == 0
    assert run(main, [*ADAPT, '--keep']) == 2
    assert 'mine exists already: overwrite it' in capsys.readouterr().err
    assert run(main, [*ADAPT, '--keep', '--overwrite', '--seed', '1']) == 0
    assert json.loads((folder / 'mine.record.json').read_text())['settings']['seed'] == 1


def test_another_folder_is_never_overwritten(folder, capsys):
    (folder / 'mine').mkdir()
    assert run(main, [*ADAPT, '--keep', '--overwrite']) == 2
    assert 'mine is not an adapted search that was made here' in capsys.readouterr().err
