"""Nothing that a command prints from files or clients is obeyed by the terminal."""

import json
import logging
import re

import pytest

from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judgments import Judgment
from pyserini_repbert.commands import (
    encode as encode_command,
    evaluate,
    explain,
    fusion,
    index as index_command,
    regression,
    search,
)
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.console import SHADES, json_text, shaded, show_traceback
from pyserini_repbert.index.manifest import COLLECTION_FILE

# Sets the title, clears the screen, colours, rings, goes back and turns the text around.
HOSTILE = 'x\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x08\u202e\u061cy'
OBEYED = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069]')


@pytest.fixture
def printed(capsys):
    """printed(main, *words, status=0): what a command prints on both streams, which is safe."""

    def run_command(main, *words, status=0):
        assert run(main, [str(word) for word in words]) == status
        captured = capsys.readouterr()
        text = captured.out + captured.err
        assert not OBEYED.search(text), ascii(text)
        return text

    return run_command


def test_every_way_to_print_is_safe(printed):
    def main(arguments):
        print(HOSTILE, 'and', HOSTILE, sep='\n', end='\t\n')
        print(json_text({HOSTILE: HOSTILE}, indent=1))
        logging.getLogger('pyserini_repbert').warning('read %s', HOSTILE)
        raise FileNotFoundError(2, 'gone', HOSTILE)

    text = printed(main, status=2)
    assert text.count('owned') >= 4 and '\ufffd[2J' in text


def test_tracebacks_are_safe(capsys):
    error = RuntimeError(HOSTILE)
    show_traceback(RuntimeError, error, None)
    shown = capsys.readouterr().err
    assert 'owned' in shown and not OBEYED.search(shown)


def test_json_keeps_what_is_escaped():
    assert json.loads(json_text([HOSTILE, 'é\n'], indent=1)) == [HOSTILE, 'é\n']


def test_shades_and_progress_bars_are_left(capsys):
    import sys

    bar = '\r 50%|█████     | 1/2'
    colours = ''.join(shaded('word', n / 7) for n in range(len(SHADES)))

    def main(arguments):
        print(colours)
        for text in (bar, '\n\x1b[A', f'\r{HOSTILE}'):
            sys.stderr.write(text)

    assert run(main, []) == 0
    captured = capsys.readouterr()
    assert captured.out == f'{colours}\n'
    assert captured.err.startswith(f'{bar}\n\x1b[A\r') and captured.err.count('\x1b') == 1


@pytest.fixture
def runs(tmp_path):
    """A hostile run file of a hostile docid, and its judgments."""
    path = tmp_path / f'{HOSTILE}.txt'
    docid = HOSTILE.replace(' ', '')
    path.write_text(f'1 Q0 {docid} 1 2.0 {docid}\n', encoding='utf-8')
    qrels = tmp_path / 'qrels.txt'
    qrels.write_text(f'1 0 {docid} 1\n', encoding='utf-8')
    return path, qrels


@pytest.mark.parametrize('form', [(), ('--json',), ('--latex',)])
def test_names_of_runs(printed, runs, form):
    path, qrels = runs
    text = printed(evaluate.main, '--qrels', qrels, path, path.parent / 'gone.txt', status=2)
    assert 'gone.txt' in text
    assert 'owned' in printed(evaluate.main, '--qrels', qrels, path, *form)


def test_fused_runs(printed, runs, tmp_path):
    path, _ = runs
    output = tmp_path / f'{HOSTILE}.fused'
    flags = ['--runs', path, path, '--output', output]
    assert 'owned' in printed(fusion.main, *flags)
    assert 'exists' in printed(fusion.main, *flags, status=2)


def test_names_of_judges(printed, tmp_path):
    folder = tmp_path / 'col'
    folder.mkdir()
    (folder / COLLECTION_FILE).touch()
    store = judgments_of(folder)
    for judge in (HOSTILE, f'{HOSTILE}2'):
        store.add([Judgment('q', 'd', 1, judge)])
    text = printed(index_command.main, 'judgments', '--index', folder)
    assert 'owned' in text and 'both judged' in text


REGRESSION = """\
name: far
title: "TEXT"
resources:
  a: {what: "TEXT", path: '{downloads}/a.txt', size: "TEXT", licence: "TEXT", address: 'https://a.example/a'}
  b: {what: "TEXT", unpublished: "TEXT"}
sources: {here: {text: this project, commit: '0123456'}}
tolerances: {none: {value: 0, reason: "TEXT"}}
conditions:
  - name: "TEXT"
    run: '{a}'
    qrels: '{b}'
    expected: [{measure: "TEXT", value: 1, source: here, tolerance: none}]
"""


@pytest.mark.parametrize('words', [('--list',), ('--dry-run',), ('fetch', '--dry-run'), ()])
def test_texts_of_regressions(printed, tmp_path, words):
    escaped = HOSTILE.encode('unicode_escape').decode()
    path = tmp_path / 'far.yaml'
    path.write_text(REGRESSION.replace('TEXT', escaped), encoding='utf-8')
    folders = ['--data', tmp_path, '--work', tmp_path / 'work']
    assert 'owned' in printed(regression.main, *words, path, *folders)


@pytest.fixture
def dense(printed, tiny_checkpoint, tmp_path):
    """An index of passages with hostile docids and texts, and its encoder."""
    corpus = tmp_path / f'{HOSTILE}.jsonl'
    docid = HOSTILE.replace(' ', '')
    lines = [{'id': docid, 'contents': HOSTILE}, {'id': 'bad', 'contents': ''}]
    corpus.write_text(''.join(json.dumps(line) + '\n' for line in lines), encoding='utf-8')
    encoder = tiny_checkpoint()
    flags = ['--corpus', corpus, '--encoder', encoder, '--output', tmp_path / 'dense']
    assert 'owned' in printed(encode_command.main, *flags, status=2)
    text = printed(encode_command.main, *flags, '--store-text', '--on-error', 'skip', '--overwrite')
    assert 'skipped' in text
    return tmp_path / 'dense', encoder


def test_docids_and_texts_of_answers(printed, dense, tmp_path):
    index, encoder = dense
    flags = ['--index', index, '--encoder', encoder]
    assert 'owned' in printed(search.main, *flags, '--query', HOSTILE)
    assert 'owned' in printed(search.main, *flags, '--like', HOSTILE)
    assert 'intact' in printed(index_command.main, 'check', '--index', index)


def test_facts_of_errors(printed, tmp_path):
    path = tmp_path / f'{HOSTILE}.yaml'
    path.write_text('name: [', encoding='utf-8')
    assert 'owned' in printed(regression.main, path, '--list', status=2)
    flags = ['--model', HOSTILE, '--query', 'q', '--passage', 'p']
    assert 'owned' in printed(explain.main, *flags, status=2)
