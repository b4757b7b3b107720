"""What a job loads of the package: what it does not need, it does not import.

Statements without docstrings are counted. A bound lies little above what is loaded today: whoever
passes it imports the work of others at the top of a module.
"""

import json
import subprocess
import sys

import pytest

COUNT = """
import ast, io, runpy, sys
from contextlib import redirect_stdout

def statements(path):
    count = 0
    for node in ast.walk(ast.parse(open(path, encoding='utf-8').read())):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        count += isinstance(node, ast.stmt) and not (is_text and isinstance(node.value.value, str))
    return count

command, *arguments = sys.argv[1:]
sys.argv = [command, *arguments]
try:
    with redirect_stdout(io.StringIO()):
        runpy.run_module(f'pyserini_repbert.{command}', run_name='__main__')
except SystemExit as ended:
    assert not ended.code, ended.code
loaded = [module for name, module in sys.modules.items() if name.startswith('pyserini_repbert')]
print(sum(statements(module.__file__) for module in loaded if getattr(module, '__file__', None)))
"""


def count_loaded(folder, *words):
    """The statements of this package that a command loads."""
    command = [sys.executable, '-c', COUNT, *words]
    shown = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return int(shown.stdout.split()[-1])


@pytest.fixture
def folder(tmp_path):
    """A folder with a corpus."""
    lines = [json.dumps({'id': str(n), 'contents': f'passage {n}'}) for n in range(3)]
    (tmp_path / 'corpus.jsonl').write_text('\n'.join(lines) + '\n')
    return tmp_path


@pytest.mark.parametrize('words', [['search'], ['index'], ['index', 'sync'], ['adapt'], ['serve']])
def test_help_loads_no_work(folder, words):
    assert count_loaded(folder, *words, '--help') <= 4_500


def test_a_dense_index(folder):
    encoder = ('--encoder', 'repbert-demo')
    stored = ('--output', 'dense', '--store-text', '--quiet')
    encode = ('encode', '--corpus', 'corpus.jsonl', *encoder, *stored)
    assert count_loaded(folder, *encode) <= DENSE['encode']
    search = ('search', '--index', 'dense', '--query', 'passage')
    assert count_loaded(folder, *search) <= DENSE['search']
    assert count_loaded(folder, *search, '--rerank', 'monobert-demo@2') <= DENSE['reranked']


def test_a_lucene_index(folder):
    lucene = ('index', 'lucene', '--corpus', 'corpus.jsonl', '--output', 'words', '--quiet')
    assert count_loaded(folder, *lucene) <= LUCENE


def test_a_collection(folder):
    encoder = ('--encoder', 'repbert-demo', '--sparse', 'none')
    sync = ('index', 'sync', '--corpus', 'corpus.jsonl', '--index', 'mine', *encoder, '--quiet')
    assert count_loaded(folder, *sync) <= COLLECTION['sync']
    search = ('search', '--index', 'mine', '--query', 'passage')
    assert count_loaded(folder, *search) <= COLLECTION['search']


DENSE = {'encode': 8_600, 'search': 10_050, 'reranked': 11_400}
COLLECTION = {'sync': 13_250, 'search': 13_600}
LUCENE = 6_700
