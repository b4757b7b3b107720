"""What a shell is offered; argcomplete's protocol, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pyserini_repbert.commands import command, dispatcher


def main(arguments):
    return command.run(dispatcher.main, arguments)


def offered(line: str, tmp_path) -> set[str]:
    pytest.importorskip('argcomplete')
    output = tmp_path / 'completions'
    asked = {'_ARGCOMPLETE': '1', 'COMP_LINE': line, 'COMP_POINT': str(len(line)), 'COMP_TYPE': '9'}
    files = {'_ARGCOMPLETE_STDOUT_FILENAME': str(output), '_ARGCOMPLETE_IFS': '\n', '_ARGCOMPLETE_SHELL': 'fish'}
    done = subprocess.run(
        [sys.executable, '-m', 'pyserini_repbert'], env=os.environ | asked | files, capture_output=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    return {word.partition('\t')[0].strip() for word in output.read_text().split('\n') if word}


@pytest.mark.parametrize(
    ('line', 'expected'),
    [
        ('pyserini-repbert sea', {'search'}),
        ('pyserini-repbert search --sparse-f', {'--sparse-first'}),
        ('pyserini-repbert search --topics demo-x', {'demo-xquad'}),
        ('pyserini-repbert search --rerank monobert-d', {'monobert-demo@'}),
        ('pyserini-repbert search --fusion inter', {'interleave', 'interpolation'}),
        ('pyserini-repbert index epic-', {'epic-prune'}),
        ('pyserini-repbert index export --to', {'--to-faiss'}),
        ('pyserini-repbert fusion tune --meth', {'--methods'}),
        ('pyserini-repbert evaluate tune-cutoff --cuto', {'--cutoffs'}),
    ],
)
def test_what_is_offered(line, expected, tmp_path):
    assert offered(line, tmp_path) == expected


def test_the_script(capsys):
    pytest.importorskip('argcomplete')
    assert main(['--completion', 'bash']) == 0
    assert 'pyserini-repbert' in capsys.readouterr().out
    assert main(['--completion', 'cmd']) == 2
    assert capsys.readouterr().err == 'error: --completion takes one shell, one of bash, zsh, fish\n'


def test_without_argcomplete_the_extra_is_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, 'argcomplete', None)
    assert main(['--completion', 'bash']) == 2
    assert "pip install '.[terminal]'" in capsys.readouterr().err
