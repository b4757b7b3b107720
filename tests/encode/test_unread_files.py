"""A file that cannot be read is named; the others are indexed, and the status says so."""

import numpy as np
import pytest
from folders import write_files

from pyserini_repbert.commands import command
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.index import DenseBundle

FOLDERS = {
    'texts': {'a.md': 'A cat.', 'b.md': b'a\0b'},
    'mixed': {'a.md': 'A cat.', 'b.ipynb': '{"cells": '},
}


@pytest.fixture
def run(tmp_path, monkeypatch, tiny_checkpoint, capsys):
    """Runs a command with a corpus; gives status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    encoder = str(tiny_checkpoint())

    def status_of(*line):
        given = [*line, '--encoder', encoder, '--quiet']
        status = command.run(main, given)
        said = capsys.readouterr()
        return status, said.out, said.err

    return status_of


@pytest.mark.parametrize('name', FOLDERS)
def test_encode_goes_on_without_a_broken_file(run, tmp_path, name):
    """A text in a folder of texts stopped it; of a mixed folder, the status was 0."""
    broken = list(FOLDERS[name])[1]
    write_files(tmp_path / name, FOLDERS[name])
    status, _, said = run('encode', '--corpus', name, '--output', 'dense')
    assert status == command.EXIT_UNREAD
    assert 'not read: 1 .' in said and f'{name}/{broken}: ' in said
    assert len(DenseBundle('dense')) == 1
    assert DenseBundle('dense').docids(np.arange(1)) == ['a.md']
    status, _, said = run('encode', '--corpus', f'{name}/{broken}', '--output', 'alone')
    assert status == command.EXIT_ERROR
    assert broken in said and 'Traceback' not in said
    assert not (tmp_path / 'alone' / 'manifest.json').exists()


@pytest.mark.parametrize('name', FOLDERS)
def test_add_goes_on_without_a_broken_file(run, tmp_path, name):
    broken = list(FOLDERS[name])[1]
    write_files(tmp_path / name, FOLDERS[name])
    line = ('index', 'add', '--index', 'mine', '--sparse', 'none', '--list-unread', '--corpus')
    status, said, named = run(*line, name, '--strict')
    assert status == command.EXIT_ERROR and f'{name}/{broken} cannot be read' in named
    status, said, named = run(*line, name)
    assert status == command.EXIT_UNREAD
    assert '1 added' in said and f'{name}/{broken}: ' in named
    assert run(*line, f'{name}/{broken}')[0] == command.EXIT_ERROR
    assert run(*line, f'{name}/a.md')[0] == 0
