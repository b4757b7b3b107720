"""Limits of the system (`ulimit`), a closed standard output and an early Ctrl-C: the error names
the true cause.
"""

import os
import resource
import subprocess
import sys

import pytest
from folders import HANGS

from pyserini_repbert.commands.encode import main as encode
from pyserini_repbert.extension import extensions

INTERRUPTING = """
import importlib.abc, os, signal, sys
class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
sys.meta_path.insert(0, Interrupting())
"""


def refused(words, folder, limit=None, size=0):
    """What a command says that is refused under a limit of the system."""

    def confine():
        if limit is not None:
            resource.setrlimit(limit, (size, resource.getrlimit(limit)[1]))

    call = [sys.executable, '-m', *f'pyserini_repbert.{words}'.split()]
    ended = subprocess.run(
        call, cwd=folder, capture_output=True, text=True, preexec_fn=confine, timeout=HANGS
    )
    assert (ended.returncode, ended.stdout) == (2, '')
    assert ended.stderr.startswith('error: ') and ended.stderr.count('\n') == 1
    return ended.stderr


@pytest.mark.parametrize(
    ('words', 'size'),
    [
        ('fusion --runs run.txt run.txt --output out.txt --quiet', 4096),
        ('encode --corpus corpus.jsonl --encoder tiny --output out --quiet', 8192),
        pytest.param(
            'index ann --index dense --kind hnsw --quiet',
            8192,
            marks=pytest.mark.skipif('approximate' not in extensions(), reason='taken away'),
        ),
        pytest.param(
            'index lucene --corpus corpus.jsonl --output out --quiet', 8192, marks=pytest.mark.jvm
        ),
    ],
)
def test_a_file_that_may_not_grow(words, size, tmp_path, tiny_checkpoint, corpus_file):
    (tmp_path / 'run.txt').write_text(''.join(f'q{n} Q0 d{n} 1 1.0 t\n' for n in range(1000)))
    tiny_checkpoint()
    corpus_file(1000)
    if '--index dense' in words:
        folder = str(tmp_path)
        encode(
            f'--corpus {folder}/corpus.jsonl --encoder {folder}/tiny --output {folder}/dense '
            f'--quiet'.split()
        )
    said = refused(words, tmp_path, resource.RLIMIT_FSIZE, size)
    assert "the limit of a file's size is reached" in said
    assert not list(tmp_path.glob('*out*'))


@pytest.fixture
def dense(tmp_path, tiny_checkpoint, corpus_file, capsys):
    """A folder that holds the index `dense`, of ten shards."""
    tiny_checkpoint()
    corpus_file(100)
    words = (
        f'--corpus {tmp_path}/corpus.jsonl --encoder {tmp_path}/tiny --output '
        f'{tmp_path}/dense --shard-size 10 --quiet'
    )
    encode(words.split())
    (tmp_path / 'topics.tsv').write_text('q1\tthe cat\n')
    return tmp_path


SEARCH = 'search --index dense --encoder tiny --topics topics.tsv --output out --quiet'


def test_too_many_open_files(dense):
    assert 'more files: raise the limit (ulimit -n)' in refused(
        SEARCH, dense, resource.RLIMIT_NOFILE, 8
    )


@pytest.mark.skipif(
    sys.platform != 'linux', reason='other systems do not limit the memory of a process'
)
@pytest.mark.parametrize('megabytes', [400, 440])  # from some 480 on, C++ may abort by itself
def test_too_little_memory_for_pytorch(dense, megabytes):
    assert 'the memory is used up' in refused(SEARCH, dense, resource.RLIMIT_AS, megabytes << 20)


@pytest.mark.jvm
@pytest.mark.skipif(
    sys.platform != 'linux', reason='other systems do not limit the memory of a process'
)
def test_too_little_memory_for_java(dense):
    words = 'index lucene --corpus corpus.jsonl --output out --quiet'
    assert 'too small for Java' in refused(words, dense, resource.RLIMIT_AS, 1200 << 20)


@pytest.mark.parametrize('closed', ['>&-', '2>&-', '<&- >&-'])
def test_a_closed_output(closed):
    call = f'{sys.executable} -m pyserini_repbert.search --nothing {closed}'
    ended = subprocess.run(call, shell=True, capture_output=True, text=True, timeout=HANGS)
    assert ended.returncode == 2 and ended.stdout == ''
    assert ended.stderr.count('\n') == (0 if '2>&-' in closed else 1)


@pytest.mark.parametrize('command', ['search', 'train', 'doctor', ''])
@pytest.mark.parametrize(
    'module', ['argparse', 'pyserini_repbert.commands.command', 'pyserini_repbert.errors']
)
def test_an_early_interrupt(module, command, tmp_path):
    """Ctrl-C while a module is imported."""
    (tmp_path / 'sitecustomize.py').write_text(INTERRUPTING.format(name=module))
    call = [sys.executable, '-m', f'pyserini_repbert.{command}'.rstrip('.'), '--help']
    environment = {
        **os.environ,
        'PYTHONPATH': os.pathsep.join([str(tmp_path), os.environ.get('PYTHONPATH', '')]),
    }
    ended = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=HANGS)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, '', 'error: interrupted\n')
