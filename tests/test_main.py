"""The dispatcher: quick help, our commands, Pyserini's modules."""

import subprocess
import sys

import pytest
from folders import HANGS

from pyserini_repbert.collection import Collection
from pyserini_repbert.commands import command, dispatcher
from pyserini_repbert.data.passages import Passage
from pyserini_repbert.index.lucene import build_lucene_index

HEAVY = (
    'torch',
    'numpy',
    'pyserini',
    'jnius',
    'faiss',
    'transformers',
    'sentence_transformers',
    'onnxruntime',
    'pandas',
    'scipy',
    'yaml',
    'pyserini_repbert.names.corpora',
)

# What a command that encodes nothing does not need. PyTorch alone takes a second to import.
OF_MODELS = {
    'torch',
    'transformers',
    'sentence_transformers',
    'onnxruntime',
    'faiss',
    'scipy',
    'pandas',
    'pyserini',
}


def loaded_by(*arguments):
    """(standard output, heavy modules loaded) of the command in a process of its own."""
    code = (
        'import atexit, sys\nfrom pyserini_repbert.__main__ import main\n'
        f'sys.argv[1:] = {list(arguments)!r}\n'
        f'atexit.register(lambda: print("LOADED", [name for name in {HEAVY!r} if name in '
        f'sys.modules]))\n'
        'main()'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr
    output, _, loaded = done.stdout.rpartition('LOADED ')
    return output, eval(loaded)


def main(arguments):
    return command.run(dispatcher.main, arguments)


def test_help_is_light_and_lists_what_exists():
    output, loaded = loaded_by('--help')
    assert loaded == []
    assert 'doctor' in output
    assert 'pyserini.MODULE' in output


@pytest.mark.parametrize(
    'words',
    [
        'evaluate rerank-depth',
        'explain',
        'fusion',
        'train',
        'index export',
        'index sync',
        'search',
        'encode',
    ],
)
def test_the_help_of_a_command_imports_nothing_heavy(words):
    output, loaded = loaded_by(*words.split(), '--help')
    usage, description, *_ = output.split('\n\n')
    assert usage.startswith(f'usage: python -m pyserini_repbert.{words}') and description.endswith(
        '.'
    )
    assert loaded == []


def test_the_list_of_actions_makes_no_flags():
    output, loaded = loaded_by('index', '--help')
    assert '    sync ' in output and '    lucene ' in output
    assert loaded == []
    code = (
        'import sys\nfrom pyserini_repbert.commands.index import main\n'
        'try:\n    main(["--help"])\nexcept SystemExit:\n'
        '    print([name for name in ("pydantic", "pyserini_repbert.pipeline.spec") if name in '
        'sys.modules])'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout.endswith('\n[]\n')


def test_fusing_files_imports_no_model(tmp_path):
    (tmp_path / 'a.txt').write_text('1\td1\t1\n')
    run = str(tmp_path / 'a.txt')
    _, loaded = loaded_by(
        'fusion', '--runs', run, run, '--output', str(tmp_path / 'fused.txt'), '--quiet'
    )
    assert not {*OF_MODELS, 'jnius'} & set(loaded)


def test_version():
    output, loaded = loaded_by('--version')
    assert output.startswith('pyserini_repbert 0.')
    assert loaded == []


@pytest.mark.jvm
def test_unknown_names_are_one_line_with_suggestions(capsys):
    assert main(['docter']) == 2
    assert capsys.readouterr().err == (
        "error: 'docter' is not a command (did you mean 'doctor'?): see python -m "
        'pyserini_repbert --help\n'
    )
    assert main(['pyserini.serach.faiss']) == 2
    assert "did you mean 'pyserini.search.faiss'" in capsys.readouterr().err


@pytest.mark.jvm
def test_pyserini_module_runs_with_its_arguments_and_status(monkeypatch, capsys):
    import runpy

    monkeypatch.setenv('PATH', 'before')
    ran = []

    def run_module(module, run_name, alter_sys):
        ran.append((module, run_name, sys.argv[1:]))
        raise SystemExit(3 if '--fail' in sys.argv else None)

    monkeypatch.setattr(runpy, 'run_module', run_module)
    monkeypatch.setattr(sys, 'argv', [])
    assert main(['pyserini.eval.trec_eval', '--fail']) == 3
    assert main(['pyserini.index.lucene', '--input', 'x']) == 0
    assert ran == [
        ('pyserini.eval.trec_eval', '__main__', ['--fail']),
        ('pyserini.index.lucene', '__main__', ['--input', 'x']),
    ]

    def failing(*arguments, **options):
        raise ValueError('no such thing')

    monkeypatch.setattr(runpy, 'run_module', failing)
    assert main(['pyserini.index.lucene']) == 2
    *trace, line = capsys.readouterr().err.splitlines()
    assert line == 'error: pyserini.index.lucene: ValueError: no such thing'
    assert trace[0] == 'Traceback (most recent call last):' and trace[-1].startswith('ValueError')


@pytest.mark.jvm
def test_an_exception_of_pyserini_without_text_keeps_its_traceback(monkeypatch, capsys):
    import runpy

    def failing(*arguments, **options):
        raise AssertionError

    monkeypatch.setattr(runpy, 'run_module', failing)
    monkeypatch.setattr(sys, 'argv', [])
    assert main(['pyserini.index.lucene']) == 2
    errors = capsys.readouterr().err
    assert 'in failing' in errors
    assert errors.splitlines()[-1] == 'error: pyserini.index.lucene: AssertionError'


@pytest.mark.jvm
def test_vectors_of_other_dimensions_than_the_index_are_named(monkeypatch, tmp_path, capsys):
    """FAISS asserts it without a word, which `pyserini.encode` without --dimension meets."""
    (tmp_path / 'adds_vectors.py').write_text(
        'import faiss, numpy\nfaiss.IndexFlatIP(8).add(numpy.zeros((1, 4), numpy.float32))\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert command.run(lambda _: dispatcher._run_module('adds_vectors'), []) == 2
    assert capsys.readouterr().err == (
        'error: adds_vectors: the encoder gives vectors of 4 dimensions, its index was made for 8: '
        'give --dimension 4 after --encoder\n'
    )


def test_deleting_and_checking_import_no_model(tiny_checkpoint, tmp_path):
    folder = str(tmp_path / 'mine')
    with Collection.open(folder, encoder=str(tiny_checkpoint()), sparse='none') as collection:
        collection.sync([('a', 'cat'), ('b', 'dog')])
    output, loaded = loaded_by('index', 'delete', '--index', folder, '--ids', 'a')
    assert '1 deleted' in output
    assert not OF_MODELS & set(loaded)
    output, loaded = loaded_by('index', 'check', '--index', folder)
    assert 'intact, generation 2' in output
    assert not OF_MODELS & set(loaded)


@pytest.mark.jvm
@pytest.mark.parametrize('kind', ['lucene', 'collection'])
def test_searching_words_imports_no_model(kind, tiny_checkpoint, tmp_path):
    folder = tmp_path / 'words'
    rankings = []
    if kind == 'lucene':
        build_lucene_index([Passage('a', 'the cat sat'), Passage('b', 'a dog')], folder)
    else:
        with Collection.open(folder, encoder=str(tiny_checkpoint())) as collection:
            collection.sync([('a', 'the cat sat'), ('b', 'a dog')])
        rankings = ['--rankings', 'bm25']
    (tmp_path / 'topics.tsv').write_text('1\tcat\n')
    run = tmp_path / 'run.txt'
    arguments = ['--topics', str(tmp_path / 'topics.tsv'), '--output', str(run)]
    _, loaded = loaded_by('search', '--index', str(folder), *rankings, *arguments)
    assert run.read_text().startswith('1 Q0 a 1 ')
    assert not OF_MODELS & set(loaded)
    (tmp_path / 'qrels.txt').write_text('1 0 a 1\n')
    output, loaded = loaded_by('evaluate', '--qrels', str(tmp_path / 'qrels.txt'), str(run))
    assert 'MRR@10' in output
    assert not OF_MODELS & set(loaded)
    output, loaded = loaded_by('search', '--index', str(folder), *rankings, '--query', 'cat')
    assert 'the cat sat' in output
    assert not OF_MODELS & set(loaded)
