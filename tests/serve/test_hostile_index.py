"""Random requests to a service of its own process, over hostile passages and judgments: it answers each, in time.

With FUZZED_REQUESTS=5000 in the environment, it makes that many requests.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.serve.running import listening

pytestmark = pytest.mark.slow

REQUESTS = int(os.environ.get('FUZZED_REQUESTS', '60'))
SLOWEST = 20.0  # seconds; searches are given up after 10
LONG = 50_000
PIECES = [*" \t\n().,'é😀\u2028[", "''", '``', '-RRB-', '-LRB-', " n't", ' - ', 's ', 'cat', '<b>', '{"a":']
QUERIES = ['cat sat on the mat', 'red fish', *'(é😀\u2028%"\\', "''", '``', '<b>', 'a' * 1999, ' '.join(['cat'] * 400)]
GRADES = [-127, -1, 0, 1, 2, 127]
BODIES = [
    '{"queries": [{"text": "cat", "qid": "a"}, {"text": "dog", "qid": "a"}]}',
    '{"queries": [], "queries": []}',
    '{"query": "cat", "a": {"rerank": ["duobert@99999999999"]}}',
    '{"query": "cat", "hits": 1e308}',
    '{"query": NaN}',
    '"\\ud800"',
    '[' * 500,
]


def _passages(rng: random.Random) -> Iterator[str]:
    yield from (
        'NaN',
        '[' * LONG,
        '{"contents": [' * 1000,
        'a' + ' ' * 3 * LONG + 'tomato',
        '1e999',
        'cat ' * LONG,
    )
    for piece in PIECES:
        yield 'a' + piece * (LONG // len(piece)) + 'b'
    for _ in range(20):
        yield 'cat ' + ''.join(rng.choices(PIECES, k=rng.choice([10, 1000, 20_000])))


@pytest.fixture
def hostile(tiny_checkpoint, rerankers, tmp_path) -> Iterator[tuple[subprocess.Popen[bytes], int, list[str]]]:
    """A service over hostile passages, with judgments for each query; its port and its docids."""
    texts = dict(zip((f'd{number}' for number in range(1000)), _passages(random.Random(0)), strict=False))
    lines = [json.dumps({'id': docid, 'contents': text}) for docid, text in texts.items()]
    (tmp_path / 'corpus.jsonl').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    encoder = RepBertDocumentEncoder(tiny_checkpoint('encoder'))
    encode_corpus(open_corpus(tmp_path / 'corpus.jsonl'), encoder, tmp_path / 'tiny', store_text=True)
    topics = [query for query in QUERIES if query.split() == [query] or query.isascii()]
    (tmp_path / 'topics.tsv').write_text(
        ''.join(f'{qid}\t{text}\n' for qid, text in enumerate(topics)), encoding='utf-8'
    )
    rng = random.Random(1)
    judged = [
        f'{qid} 0 {docid} {rng.choice(GRADES)}\n' for qid in range(len(topics)) for docid in rng.sample([*texts], 9)
    ]
    (tmp_path / 'qrels.txt').write_text(''.join(judged), encoding='utf-8')
    own = {'path': 'tiny', 'topics': 'topics.tsv', 'qrels': 'qrels.txt'}
    (tmp_path / 'serve.json').write_text(
        json.dumps({'indexes': {'tiny': own}, 'rerankers': [*rerankers]}), encoding='utf-8'
    )
    with listening('127.0.0.1', 0)[0] as free:
        port = free.getsockname()[1]
    command = [sys.executable, '-m', 'pyserini_repbert.serve', '--config', 'serve.json', '--port', str(port)]
    environment = {**os.environ, 'PYTHONPATH': str(Path(__file__).parents[2])}
    with (tmp_path / 'stderr.txt').open('wb') as stderr:
        process = subprocess.Popen([*command, '--log-file', 'log.jsonl'], stderr=stderr, env=environment, cwd=tmp_path)
        try:
            for _ in range(1200):
                with contextlib.suppress(OSError):
                    if _asked(port, 'GET', '/readyz')[0] == 200:
                        break
                assert process.poll() is None, (tmp_path / 'stderr.txt').read_text()
                time.sleep(0.1)
            yield process, port, list(texts)
            assert 'Traceback' not in (tmp_path / 'stderr.txt').read_text()
        finally:
            process.kill()
            process.wait()


def _asked(port: int, method: str, target: str, body: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=SLOWEST)
    with contextlib.closing(connection):
        connection.request(method, target, body and body.encode(), {'Content-Type': 'application/json'} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read()


def _request(rng: random.Random, docids: list[str]) -> tuple[str, str, str | None]:
    query, docid = rng.choice(QUERIES), urllib.parse.quote(rng.choice(docids))
    systems = {'monobert': rng.randint(1, 20), 'duobert': rng.randint(1, 5), 'epic': rng.randint(1, 20), 'cedr': 3}
    reranker = rng.choice(list(systems))
    stages = rng.choice([[], [f'{reranker}@{systems[reranker]}']])
    shown = {
        'display': rng.choice([True, False]),
        'provenance': rng.choice([True, False]),
        'hits': rng.choice([1, 5, 40]),
    }
    if (kind := rng.randrange(8)) < 3:
        given = {'query': query, 'rerank': stages, **{name: str(value).lower() for name, value in shown.items()}}
        return 'GET', f'/v1/tiny/search?{urllib.parse.urlencode(given, doseq=True)}', None
    if kind == 3:
        given = {'query': query, 'model': reranker, 'docid': rng.sample(docids, rng.randint(1, 4))}
        return 'GET', f'/v1/tiny/explain?{urllib.parse.urlencode(given, doseq=True)}', None
    if kind == 4:
        return 'GET', f'/v1/tiny/doc/{docid}?{urllib.parse.urlencode({"display": "true", "query": query})}', None
    if kind == 5:
        return (
            'POST',
            '/v1/tiny/compare',
            json.dumps({'query': query, 'hits': shown['hits'], 'display': True, 'b': {'rerank': stages}}),
        )
    if kind == 6:
        return 'POST', rng.choice(['/v1/tiny/batch', '/v1/tiny/compare']), rng.choice(BODIES)
    return 'POST', '/v1/tiny/batch', json.dumps({'queries': [{'text': query}, {'text': 'cat'}], **shown})


def test_random_requests(hostile):
    process, port, docids = hostile
    rng, statuses, slowest = random.Random(2), {}, 0.0
    for _ in range(REQUESTS):
        method, target, body = _request(rng, docids)
        start = time.monotonic()
        status, answer = _asked(port, method, target, body)
        slowest = max(slowest, time.monotonic() - start)
        statuses[status] = statuses.get(status, 0) + 1
        value = json.loads(answer)
        assert process.poll() is None and status in (200, 400, 422, 504), (method, target[:200], body, answer[:300])
        assert status == 200 or list(value) == ['error']
    assert slowest < SLOWEST and statuses[200] > REQUESTS / 3
    print(f'{REQUESTS} requests: {statuses}, the slowest {slowest:.1f} s')
