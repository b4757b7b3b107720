"""The service under load, over HTTP on 127.0.0.1: throughput, latency, wrong or lost answers,
memory; against Pyserini.

    python benchmarks/serve.py [--requests 2000] [--clients 16] [--many 50] [--memory 20000]
    [--python PYTHON]

Dense search of the demo: one client that asks one question after the other, then 16 at once, then
50; each answer is compared with the one that the first client got (the same docids, but that
neighbours may change places whose scores are within 1e-4). Memory is the server's resident set
after each quarter of `--memory` requests. BM25: requests a second of this service and of Pyserini's
REST server (2.x; `--python` names one that has it) on the same Lucene index, 8 at once; the servers
run in turn, and are asked every question once, since Pyserini's remembers its last answers. Answers
with an error, and connections that the server closes or resets, count as lost; the client then
connects again. A request that is refused (429) is sent again after one to two times the seconds
that the service asks for.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import figures
from figures import Figure

from pyserini_repbert.names.rankers import find_sparse
from pyserini_repbert.names.topics import load_topics

_WAITING = 2  # requests that may wait in a queue, where the service refuses more
_NEAR = 1e-4
_LONGEST = 600.0  # seconds that any part may take
GOAL_TOGETHER = 4  # times the throughput of one client
GOAL_P99 = 10  # times the median of one client
GOAL_GROWTH = 5  # % of memory, from the first quarter of the requests to the last
GOAL_PYSERINI = 1


@dataclass
class Load:
    """What clients saw."""

    seconds: float = 0.0  # from the first request to the last answer
    latencies: list[float] = field(
        default_factory=list
    )  # of answers, in seconds, since the client asked last
    answers: dict[str, list[dict[str, Any]]] = field(
        default_factory=dict
    )  # target -> hits, if none were known
    wrong: int = 0  # answers that differ from the known ones
    lost: int = 0  # requests without an answer
    refused: int = 0  # answers with status 429
    resets: int = 0  # lost requests whose connection the server closed or reset

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds

    def at(self, share: float) -> float:
        """The quantile `share`, 0 to 1, of the latencies, in milliseconds."""
        ordered = sorted(self.latencies) or [float('nan')]
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def _get(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str
) -> tuple[int, bytes]:
    """The status and the body of an answer; of status 429, the seconds to wait."""
    writer.write(f'GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.encode())
    head = await reader.readuntil(b'\r\n\r\n')
    headers = dict(line.partition(b':')[::2] for line in head.lower().split(b'\r\n'))
    status = int(head[9:12])
    body = await reader.readexactly(int(headers[b'content-length']))
    return status, headers[b'retry-after'] if status == 429 else body


async def _connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection('127.0.0.1', port, limit=1 << 22)


async def _client(
    port: int, targets: Iterator[str], load: Load, known: dict[str, list[dict[str, Any]]] | None
) -> None:
    connection = None
    for target in targets:
        try:
            connection = connection or await _connected(port)
            start = time.perf_counter()
            while (answer := await _get(*connection, target))[0] == 429:
                load.refused += 1
                await asyncio.sleep(float(answer[1]) * (1 + random.random()))
                start = time.perf_counter()
            status, body = answer
        except (OSError, asyncio.IncompleteReadError):
            load.resets += 1
            if connection is not None:
                connection[1].close()
            connection = None
            continue
        if status != 200:
            continue
        load.latencies.append(time.perf_counter() - start)
        hits = json.loads(body).get('candidates', [])
        if known is None:
            load.answers[target] = [{'docid': hit['docid'], 'score': hit['score']} for hit in hits]
        elif not _same(hits, known.get(target, [])):
            load.wrong += 1
    if connection is not None:
        connection[1].close()


def _same(found: list[dict[str, Any]], known: list[dict[str, Any]]) -> bool:
    """Whether hits are the same, apart from neighbours that rounding may exchange."""
    if len(found) != len(known):
        return False
    for one, other in zip(found, known, strict=True):
        if abs(one['score'] - other['score']) > _NEAR:
            return False
        if one['docid'] != other['docid']:
            near = {hit['docid'] for hit in known if abs(hit['score'] - one['score']) <= _NEAR}
            if one['docid'] not in near and abs(known[-1]['score'] - one['score']) > _NEAR:
                return False
    return True


def run(
    port: int,
    targets: list[str],
    n: int,
    clients: int,
    known: dict[str, list[dict[str, Any]]] | None = None,
) -> Load:
    """The load of `n` requests, for the targets again and again; a client sends the next when it
    has its answer.

    `known` are the hits that answers should have, by target; None to collect them.
    """
    load = Load()
    waiting = itertools.islice(itertools.cycle(targets), n)

    async def everybody() -> None:
        everyone = asyncio.gather(*(_client(port, waiting, load, known) for _ in range(clients)))
        with contextlib.suppress(TimeoutError):  # what is not answered by then is lost
            await asyncio.wait_for(everyone, _LONGEST)

    start = time.perf_counter()
    asyncio.run(everybody())
    load.seconds = time.perf_counter() - start
    load.lost = n - len(load.latencies)
    return load


@contextlib.contextmanager
def server(command: list[str], ready: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Yields a server's process and its port on 127.0.0.1, a free one, once `ready` is answered."""
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([*command, '--port', str(port)], stderr=said)
        try:
            for _ in range(1200):
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, StopIteration):
                    if asyncio.run(_once(port, ready)) == 200:
                        break
                if process.poll() is not None:
                    said.seek(0)
                    raise SystemExit(f'{command} ended: {said.read()[-2000:].decode()}')
                time.sleep(0.25)
            yield process, port
        finally:
            process.terminate()
            process.wait(60)


async def _once(port: int, target: str) -> int:
    reader, writer = await _connected(port)
    with contextlib.closing(writer):
        return (await _get(reader, writer, target))[0]


def resident(pid: int) -> float:
    """MiB of memory that a process holds."""
    pages = int(Path(f'/proc/{pid}/statm').read_text(encoding='ascii').split()[1])
    return pages * os.sysconf('SC_PAGE_SIZE') / 2**20


def dense(options: argparse.Namespace, queries: list[str]) -> list[Figure]:
    """Figures of dense search by one client, by many, and over many requests."""
    targets = [f'/v1/demo/search?{urlencode({"query": query})}' for query in queries]
    with server(_ours(options), '/readyz') as (process, port):
        known = run(port, targets, len(targets), 1).answers
        alone = run(port, targets, options.requests // 4, 1, known)
        together = run(port, targets, options.requests, options.clients, known)
        many = run(port, targets, options.requests, options.many, known)
        sizes = [resident(process.pid)]
        later = []
        for _ in range(4):
            later.append(run(port, targets, options.memory // 4, options.clients, known))
            sizes.append(resident(process.pid))
    with server(_ours(options, '--precision', 'auto'), '/readyz') as (_, port):
        run(
            port, targets, 100, 1
        )  # its answers are not compared: bfloat16 rounds a batch otherwise than a query alone
        quick = run(port, targets, options.requests, options.many)
    with tempfile.TemporaryDirectory() as place:
        settings = Path(place) / 'serve.yaml'
        settings.write_text(f'limits: {{waiting: {_WAITING}}}\n', encoding='utf-8')
        with server(_ours(options, '--config', str(settings)), '/readyz') as (_, port):
            run(port, targets, 100, 1)
            limited = run(port, targets, options.requests, options.many, known)
    clients = (
        '1',
        str(options.clients),
        str(options.many),
        f'{options.many}, auto',
        f'{options.many}, {_WAITING} wait',
    )
    loads = [alone, together, many, quick, limited]
    for name, load in zip(clients, loads, strict=True):
        quantiles = ', '.join(f'p{share} {load.at(share / 100):6.1f} ms' for share in (50, 95, 99))
        print(f'dense, clients: {name:11s} {load.rate:8.1f} requests/s, {quantiles}')
    print('resident MiB after each quarter: ' + ', '.join(f'{size:.0f}' for size in sizes))
    loads += later
    wrong = sum(load.wrong for load in loads)
    lost = sum(load.lost for load in loads)
    n = lost + sum(len(load.latencies) for load in loads)
    print(f'wrong answers {wrong}, lost {lost} of {n:,}')
    at_once = f'{options.clients} clients at once'
    growth = 100 * (sizes[-1] / sizes[1] - 1)
    refused = 100 * limited.refused / (limited.refused + options.requests)
    median = alone.at(0.5)
    p99 = f'its p99 at {options.many} clients, of the median alone'
    return [
        Figure(
            f'dense search over HTTP, {at_once}: one client',
            together.rate / alone.rate,
            goal=GOAL_TOGETHER,
        ),
        Figure(p99, many.at(0.99) / median, 'times', GOAL_P99, True),
        Figure('the same with --precision auto', quick.at(0.99) / median, 'times', GOAL_P99, True),
        Figure(
            f'the same where {_WAITING} may wait',
            limited.at(0.99) / median,
            'times',
            GOAL_P99,
            True,
        ),
        Figure(f'requests refused where {_WAITING} may wait', refused, '%'),
        Figure(f'wrong or lost answers of {n:,}', wrong + lost, '', 0, True),
        Figure(
            f'memory, last quarter of {options.memory:,} requests over the first',
            growth,
            '%',
            GOAL_GROWTH,
            True,
        ),
    ]


def _ours(options: argparse.Namespace, *more: str) -> list[str]:
    own = [
        options.python,
        '-m',
        'pyserini_repbert.serve',
        '--index',
        'demo',
        '--rerankers',
        '--quiet',
    ]
    return [*own, '--log-file', os.devnull, *more]


def _pyserini(python: str) -> str:
    """The version of Pyserini that a Python has, '' if none."""
    asked = 'import importlib.metadata as found; print(found.version("pyserini"))'
    return subprocess.run([python, '-c', asked], capture_output=True, text=True).stdout.strip()


def sparse(options: argparse.Namespace, queries: list[str]) -> list[Figure]:
    """The figure of BM25 against Pyserini's server, each asked every question once."""
    version = _pyserini(options.python)
    if not version or version.startswith(('0.', '1.')):
        print(
            f'BM25 is left out: {options.python} has Pyserini {version or "not at all"}, only '
            f"2.x's REST server takes "
            'an index of its own: --python names one that has it'
        )
        return []
    folder = options.lucene or str(find_sparse('bm25', 'demo')[0])
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        settings = Path(place) / 'serve.yaml'
        settings.write_text(
            f'indexes:\n  lucene: {json.dumps(str(Path(folder).resolve()))}\n', encoding='utf-8'
        )
        ours = [
            options.python,
            '-m',
            'pyserini_repbert.serve',
            '--rerankers',
            '--log-file',
            os.devnull,
            '--quiet',
        ]
        theirs = [
            options.python,
            '-m',
            'pyserini_repbert',
            'pyserini.server.rest',
            '--no-prebuilt-indexes',
        ]
        theirs += ['--host', '127.0.0.1', '--log-file', os.devnull]
        commands = {'ours': (ours, '/readyz'), "Pyserini's": (theirs, '/openapi.yaml')}
        for name, (command, ready) in commands.items():
            with server([*command, '--config', str(settings)], ready) as (_, port):
                targets = [f'/v1/lucene/search?query={quote(query)}' for query in queries]
                run(port, targets[-50:], 50, 1)  # opens the index, and lets Java warm up
                load = run(port, targets[:-50], len(targets) - 50, 8)
                if load.lost:
                    print(
                        f'{name}: {load.lost} of {len(targets) - 50} not answered ({load.resets} '
                        f'by a reset)'
                    )
                rates[name] = load.rate
    for name, rate in rates.items():
        print(f'BM25, 8 clients, {name:10s} {rate:8.1f} requests/s')
    ours, other = rates.values()
    if not other:
        raise SystemExit(f"Pyserini {version}'s server answered nothing: there is no ratio")
    return [
        Figure(
            "BM25 over HTTP, 8 clients: Pyserini's REST server", ours / other, goal=GOAL_PYSERINI
        )
    ]


def main() -> None:
    """Run the parts, print ratios last."""
    parser = figures.parser(__doc__, ('fastapi', 'uvicorn', 'prometheus_client'))
    parser.add_argument(
        '--questions', type=int, default=1355, help='how many different ones are asked'
    )
    parser.add_argument('--requests', type=int, default=2000)
    parser.add_argument('--clients', type=int, default=16)
    parser.add_argument('--many', type=int, default=50)
    parser.add_argument('--memory', type=int, default=20_000)
    parser.add_argument('--python', default=sys.executable, help='of both servers')
    parser.add_argument('--lucene', help="a Lucene index instead of the demo's")
    parser.add_argument(
        '--parts', nargs='+', default=['dense', 'sparse'], choices=('dense', 'sparse')
    )
    options = parser.parse_args()
    queries = [topic.text for name in ('demo', 'demo-train') for topic in load_topics(name)][
        : options.questions
    ]
    print(f'{len(queries)} questions, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}')
    told = [
        figure
        for part in options.parts
        for figure in {'dense': dense, 'sparse': sparse}[part](options, queries)
    ]
    figures.tell(options, told)


if __name__ == '__main__':
    main()
