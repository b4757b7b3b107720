"""`OUTPUT.record.json`: what commands say that they did, and what is read there again."""

import hashlib
import json
import shutil
import subprocess
import sys

import pytest

from pyserini_repbert import __version__
from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.commands.fusion import main as fusion
from pyserini_repbert.commands.rerank import main as rerank
from pyserini_repbert.commands.search import main as search
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.indexes.recorded_passages import Passages, recorded_passages
from pyserini_repbert.record import read_record, record_path


@pytest.fixture
def made(tmp_path, monkeypatch, tiny_checkpoint, cross_encoder_folder, corpus_file):
    """A folder with a corpus, topics and checkpoints, and in it the index `dense` and the run
    `first.txt`.
    """
    monkeypatch.chdir(tmp_path)
    tiny_checkpoint()
    cross_encoder_folder(name='mono')
    corpus_file(20).rename('passages.jsonl')
    (tmp_path / 'topics.tsv').write_text('q1\tthe cat\nq2\ta dog ran\n')
    call(encode, '--corpus passages.jsonl --encoder tiny --output dense --quiet')
    call(search, '--index dense --topics topics.tsv --hits 9 --output first.txt')
    return tmp_path


def call(main, line):
    assert command.run(main, line.split()) == 0


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_search_says_what_it_did(made):
    found = json.loads((made / 'first.txt.record.json').read_text())
    words = (
        'python -m pyserini_repbert.search --index dense --topics topics.tsv --hits 9 '
        '--output first.txt'
    )
    assert found['command'] == words.split()
    assert found['output'] == sha256(made / 'first.txt')
    (model,) = found['models']
    assert model['weights'] == sha256(made / 'tiny' / 'model.safetensors')
    assert model['tokenizer'] == sha256(made / 'tiny' / 'vocab.txt')
    assert (model['name'], model['precision']) == ('tiny', 'float32')
    assert found['inputs'] == [
        {'role': 'index', 'name': 'dense', 'sha256': sha256(made / 'dense' / 'manifest.json')},
        {'role': 'topics', 'name': 'topics.tsv', 'sha256': sha256(made / 'topics.tsv')},
    ]
    assert found['settings']['batch_size'] == 512 and found['settings']['hits'] == 9
    assert found['versions']['pyserini_repbert'] == __version__


def test_precision_is_what_was_used(made, native_bfloat16):
    native_bfloat16(True)
    rerank_line = (
        '--run first.txt --topics topics.tsv --corpus passages.jsonl --reranker mono@3 '
        '--output out.txt'
    )
    call(rerank, f'{rerank_line} --precision auto')
    found = read_record('out.txt')
    assert [(model.name, model.precision) for model in found.models] == [('mono', 'bfloat16')]
    assert found.settings['stages'] == ['mono@3'] and 'precision' not in found.settings


@pytest.mark.parametrize('more', ['--resume', '--overwrite', '--quiet --overwrite'])
def test_how_it_went_changes_no_byte(made, more):
    before = record_path('dense').read_bytes()
    call(encode, f'--corpus passages.jsonl --encoder tiny --output dense {more}')
    assert record_path('dense').read_bytes() == before


def test_passages_are_found_through_the_records(made):
    call(fusion, '--runs first.txt first.txt --output both.txt --quiet')
    expected = Passages('passages.jsonl', None, 'auto', ())
    assert recorded_passages('first.txt') == recorded_passages('both.txt') == expected
    asked = '--run both.txt --topics topics.tsv --reranker mono@5 --tag t --output'
    call(rerank, f'{asked} ours.txt')
    call(rerank, f'{asked} theirs.txt --corpus passages.jsonl')
    assert (made / 'ours.txt').read_text() == (made / 'theirs.txt').read_text()
    assert read_record('ours.txt').input('corpus').name == 'passages.jsonl'


def test_an_index_of_parts_has_the_record_of_an_encoding(made):
    asked = '--corpus passages.jsonl --encoder tiny --store-text --shard-size 10 --output'
    call(encode, f'{asked} dense2 --quiet')
    for number in (0, 1):
        call(encode, f'{asked} parts --shard {number}/2 --quiet')
    call(encode, '--output parts --finish --quiet')
    parts = read_record('parts')
    whole = read_record('dense2')
    assert parts.models == whole.models and parts.settings == whole.settings
    assert [(own.role, own.sha256) for own in parts.inputs] == [
        (own.role, own.sha256) for own in whole.inputs
    ]
    assert recorded_passages('parts') == Passages('passages.jsonl', None, 'auto', ())


def test_runs_that_were_made_of_each_other_say_nothing_of_passages(made, capsys):
    for name in ('a.txt', 'b.txt'):
        (made / name).write_text((made / 'first.txt').read_text())
    call(fusion, '--runs a.txt b.txt --output c.txt --quiet')
    call(fusion, '--runs c.txt b.txt --output a.txt --overwrite --quiet')
    assert recorded_passages('c.txt') is None
    asked = '--run c.txt --topics topics.tsv --reranker mono@5 --output o.txt'
    assert command.run(rerank, asked.split()) == 2
    assert 'has no record that says where its passages are' in capsys.readouterr().err


def test_an_index_with_texts_and_the_catalogs_are_passages(made):
    call(encode, '--corpus passages.jsonl --encoder tiny --output whole --store-text --quiet')
    call(search, '--index whole --topics topics.tsv --output run.txt')
    assert recorded_passages('run.txt') == Passages(None, 'whole')
    path = record_path('run.txt')
    path.write_text(path.read_text().replace('"name": "whole"', '"name": "demo"'))
    assert recorded_passages('run.txt') == Passages('demo', None)


def test_a_run_written_anew_has_no_record(made, capsys):
    run = made / 'first.txt'
    run.write_text(run.read_text().replace('first', 'other'))
    assert read_record(run) is None
    assert (
        command.run(
            rerank, '--run first.txt --topics topics.tsv --reranker mono@5 --output out.txt'.split()
        )
        == 2
    )
    assert (
        'first.txt has no record that says where its passages are: give --corpus'
        in capsys.readouterr().err
    )
    assert not list(made.glob('out.txt*'))


@pytest.mark.parametrize('content', ['', '[]', '{"command": 1}', '\xff', '{' * 100_000])
def test_a_damaged_record_is_named(made, content, capsys):
    record_path('first.txt').write_text(content, encoding='latin-1')
    with pytest.raises(DamagedFileError, match=r'record.json is not a record of a command'):
        read_record('first.txt')


@pytest.mark.parametrize('output', ['/dev/stdout', '/dev/fd/1'])
def test_standard_output_has_no_record(output, made):
    """Neither a pipe nor, with `>> FILE`, a file; what was in that file before stays in it."""
    words = [
        sys.executable,
        '-m',
        *'pyserini_repbert.fusion --runs first.txt --quiet --output'.split(),
        output,
    ]
    try:
        piped = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        (made / 'out.txt').write_text('before\n')
        with open(made / 'out.txt', 'a') as stream:
            subprocess.run(words, stdout=stream, check=True)
        assert not record_path(output).exists()
    finally:
        record_path('/dev/stdout').unlink(missing_ok=True)
    assert len(piped.splitlines()) == 18
    assert (made / 'out.txt').read_text() == f'before\n{piped}'
    assert not list(made.glob('out.txt.*'))


def test_bytes_that_are_no_utf8_are_escaped(made):
    shutil.copyfile('topics.tsv', b't\xff.tsv')
    call(search, '--index dense --topics t\udcff.tsv --hits 9 --output odd.txt')
    assert read_record('odd.txt').input('topics').name == 't\\xff.tsv'
