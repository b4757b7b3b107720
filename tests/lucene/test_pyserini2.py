"""Pyserini 2.x as it is installed: `make test-pyserini2` runs these, an environment with 1.6
skips them.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.index import DenseBundle, export_faiss
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.lucene import tables
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Query
from pyserini_repbert.record import versions

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.skipif(
        not versions().get('pyserini', '').startswith('2.'), reason='these are about Pyserini 2.x'
    ),
]
# prebuilt_index_info.PREBUILT_INDEXES_COMMIT of 2.4.0
COMMIT = '367560b4de7d9c3486f666dcc2df7783ca7758f2'
UP_SECONDS = 150


def pyserini(*arguments, **environment):
    """Our entry point with a module of Pyserini, in a process of its own, without the tests'
    copy of the tables.
    """
    inherited = {name: value for name, value in os.environ.items() if name != 'PYSERINI_SEED'}
    command = [sys.executable, '-m', 'pyserini_repbert', *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=inherited | environment, timeout=UP_SECONDS
    )


@pytest.fixture
def lucene(tmp_path):
    """A Lucene index of two passages."""
    corpus = tmp_path / 'corpus.jsonl'
    corpus.write_text(
        '{"id": "1", "contents": "cats sleep all day"}\n{"id": "2", "contents": "a dog barks in '
        'Paris"}\n',
        encoding='utf-8',
    )
    build_lucene_index(open_corpus(corpus), tmp_path / 'lucene')
    return tmp_path / 'lucene'


def test_offline_without_a_copy_the_missing_table_is_named(lucene, tmp_path):
    done = pyserini(
        'pyserini.search.lucene',
        '--index',
        str(lucene),
        '--topics',
        'x',
        '--output',
        str(tmp_path / 'run'),
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        'error: Pyserini 2.x needs one of its tables, lucene/msmarco-v1-passage-impact.json, '
    )
    assert 'downloads are off' in line and str(tables.tables_folder()) in line


def test_offline_with_kept_tables_pyserini_works_and_java_is_silent(
    lucene, tmp_path, pyserini_tables
):
    """The copy that an earlier fetch left below the cache folder; and no line of Java's own on
    the terminal.
    """
    shutil.copytree(pyserini_tables, tables.tables_folder() / 'prebuilt-indexes' / COMMIT)
    topics = tmp_path / 'topics.tsv'
    run = tmp_path / 'run.txt'
    topics.write_text('7\tbarking dogs\n', encoding='utf-8')
    arguments = ['--index', str(lucene), '--topics', str(topics), '--output', str(run), '--bm25']
    done = pyserini('pyserini.search.lucene', *arguments)
    assert done.returncode == 0, done.stderr
    assert run.read_text().split()[:3] == ['7', 'Q0', '2']
    assert 'INFO' not in done.stderr and 'SLF4J' not in done.stderr and 'WARNING' not in done.stderr


def test_topics_and_judgments_by_pyserinis_names(tmp_path, monkeypatch):
    monkeypatch.setenv('PYSERINI_CACHE', str(tmp_path))
    (tmp_path / 'topics').mkdir()
    (tmp_path / 'topics/topics.dl19-passage.txt').write_text(
        '19\tsome  question\n2\tfirst one\n', encoding='utf-8'
    )
    (tmp_path / 'qrels').mkdir()
    (tmp_path / 'qrels/qrels.dl19-passage.txt').write_text('19 Q0 77 2\n', encoding='utf-8')
    assert load_topics('dl19-passage') == [Query('2', 'first one'), Query('19', 'some question')]
    assert load_qrels('dl19-passage') == {'19': {'77': 2}}


@contextmanager
def server(settings, *arguments):
    """get(index, query) of Pyserini's REST server, started by our entry point on a free port of
    this machine.
    """
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        '-m',
        'pyserini_repbert',
        'pyserini.server.rest',
        '--host',
        '127.0.0.1',
    ]
    log = settings.with_suffix('.log')
    with open(log, 'w', encoding='utf-8') as stream:
        process = subprocess.Popen(
            [*command, '--port', str(port), '--config', str(settings), *arguments],
            stdout=stream,
            stderr=stream,
        )

    def get(path, **parameters):
        address = f'http://127.0.0.1:{port}/{path}?{urllib.parse.urlencode(parameters)}'
        with urllib.request.urlopen(address, timeout=30) as response:
            return response.read()

    try:
        until = time.monotonic() + UP_SECONDS
        while True:
            assert process.poll() is None and time.monotonic() < until, log.read_text(
                encoding='utf-8'
            )
            try:
                get('openapi.yaml')
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.5)
        yield get
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.slow
@pytest.mark.parametrize('arguments', [['--no-prebuilt-indexes'], []])
def test_the_server_searches_exports_with_repbert(lucene, tmp_path, arguments):
    corpus = open_corpus(tmp_path / 'corpus.jsonl')
    encode_corpus(corpus, RepBertDocumentEncoder('repbert-demo'), tmp_path / 'dense')
    export_faiss(DenseBundle(tmp_path / 'dense'), tmp_path / 'faiss')
    settings = tmp_path / 'server.yaml'
    settings.write_text(
        'indexes:\n'
        '  mine: {path: faiss, index_type: faiss, encoder: repbert-demo, base_index: texts}\n'
        '  texts: {path: lucene}\n',
        encoding='utf-8',
    )
    with server(settings, *arguments) as get:
        for query, docids in (('which animal is barking', ['2', '1']), ('sleepy cats', ['1', '2'])):
            answer = json.loads(get('v1/mine/search', query=query, hits='2'))
            assert [hit['docid'] for hit in answer['candidates']] == docids
            assert {hit['docid']: hit['doc'] for hit in answer['candidates']} == {
                '1': 'cats sleep all day',
                '2': 'a dog barks in Paris',
            }
