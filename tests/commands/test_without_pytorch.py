"""A question from a shell does not wait for PyTorch."""

import json
import subprocess
import sys

import pytest

FORBIDDEN = (
    'torch',
    'transformers',
    'sentence_transformers',
    'scipy',
    'sklearn',
    'pandas',
    'pyarrow',
    'pathspec',
    'tqdm',
    'yaml',
)
# A search without a filter, of a few vectors.
NOT_NEEDED = ('faiss', 'luqum', 'selectolax')
# What reads files of other kinds than the folder has.
_FILES = 'pyserini_repbert.collection.files'
OTHER_READERS = tuple(
    f'{_FILES}.{name}'
    for name in ('html_text', 'mail_documents', 'office_text', 'plain_documents', 'table_documents')
)
# Runs a command, then prints which of the forbidden modules it imported.
PROGRAM = """
import runpy, sys
forbidden, *sys.argv = sys.argv[1:]
try:
    runpy.run_module(f'pyserini_repbert.{sys.argv[0]}', run_name='__main__')
except SystemExit as ended:
    code = ended.code
else:
    code = 0
print(code, sorted(set(forbidden.split()) & set(sys.modules)), file=sys.stderr)
"""


def run_command(*arguments):
    """What a command prints on stdout, and the last line on stderr."""
    command = [
        sys.executable,
        '-c',
        PROGRAM,
        ' '.join(FORBIDDEN + NOT_NEEDED + OTHER_READERS),
        *map(str, arguments),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=900)
    return ran.stdout, ran.stderr.splitlines()[-1]


LIST_TOOLS = (
    {
        'id': 1,
        'method': 'initialize',
        'params': {
            'protocolVersion': '2025-06-18',
            'capabilities': {},
            'clientInfo': {'name': 't', 'version': '1'},
        },
    },
    {'method': 'notifications/initialized'},
    {'id': 2, 'method': 'tools/list'},
)


def test_an_assistant_lists_the_tools(mine):
    pytest.importorskip('fastmcp', reason='the serve extra is not installed')
    command = [sys.executable, '-c', PROGRAM, ' '.join(FORBIDDEN + NOT_NEEDED + OTHER_READERS)]
    command += ['serve', '--index', str(mine), '--mcp']
    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as server:
        for message in LIST_TOOLS:
            server.stdin.write(json.dumps({'jsonrpc': '2.0', **message}) + '\n')
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        _, log = server.communicate(timeout=900)
    assert 'search' in {tool['name'] for tool in answers[1]['result']['tools']}
    assert log.splitlines()[-1] == '0 []'


def test_a_question_to_a_collection(mine):
    out, end = run_command('search', '--index', mine, '--query', 'w1 mat', '--hits', '2')
    assert end == '0 []'
    assert 'wanted1' in out


def test_a_question_to_a_dense_index(tiny_checkpoint, tmp_path):
    checkpoint = tiny_checkpoint()
    corpus = tmp_path / 'corpus.jsonl'
    passages = [
        {'id': f'd{n}', 'contents': f'the {word} sat'} for n, word in enumerate(['cat', 'dog'])
    ]
    corpus.write_text('\n'.join(map(json.dumps, passages)))
    index = tmp_path / 'index'
    run_command('encode', '--corpus', corpus, '--encoder', checkpoint, '--output', index)
    out, end = run_command('search', '--index', index, '--query', 'cat', '--hits', '1')
    assert end == '0 []'
    assert out.count('\n   1. d') == 1


@pytest.mark.jvm
@pytest.mark.parametrize('rankings', [('dense', 'bm25'), ('bm25',)])
def test_a_question_to_vectors_and_words(rankings, tiny_checkpoint, tmp_path):
    from pyserini_repbert.collection import Collection

    folder = tmp_path / 'hybrid'
    with Collection.open(folder, encoder=str(tiny_checkpoint())) as collection:
        collection.sync([('d1', 'the cat sat'), ('d2', 'a dog ran')])
    flags = ('--index', folder, '--query', 'cat', '--rankings', *rankings)
    out, end = run_command('search', *flags)
    assert end == '0 []'
    assert '\n   1. d' in out


def test_a_changed_file_in_a_collection(tiny_checkpoint, tmp_path):
    corpus = tmp_path / 'corpus'
    corpus.mkdir()
    (corpus / 'a.txt').write_text('the cat sat')
    sync = ('index', 'sync', '--corpus', corpus, '--index', tmp_path / 'mine')
    run_command(*sync, '--encoder', tiny_checkpoint(), '--sparse', 'none')
    (corpus / 'a.txt').write_text('the dog sat')
    out, end = run_command(*sync)
    # Files are read with selectolax.
    assert end == "0 ['selectolax']"
    assert '1 changed' in out
