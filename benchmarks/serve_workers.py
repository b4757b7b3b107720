"""One process and two: searches of the demo a second at 16 clients, and p99 at 50 clients.

    python benchmarks/serve_workers.py [--seconds 20]

Each service runs on this machine and is asked by dense queries; the clients are threads of another
process. What one query takes alone is measured first.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass

import figures
from figures import Figure

from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.serve.server import listen


@dataclass(frozen=True)
class Load:
    """What clients saw: searches a second, and quantiles of milliseconds."""

    per_second: float
    median: float
    p99: float


def ask(address: str, number: int, until: float, milliseconds: list[float]) -> None:
    """Search until the time has come, one question after the other."""
    texts = [topic.text for topic in load_topics('demo')]
    while time.monotonic() < until:
        text = texts[number % len(texts)]
        number += 17
        words = urllib.request.quote(text)
        start = time.perf_counter()
        with urllib.request.urlopen(
            f'{address}/v1/demo/search?query={words}&system=dense'
        ) as found:
            json.load(found)
        milliseconds.append(1000 * (time.perf_counter() - start))


def measure_load(address: str, clients: int, seconds: float) -> Load:
    """Let clients search for some seconds."""
    milliseconds: list[float] = []
    until = time.monotonic() + seconds
    threads = []
    for number in range(clients):
        arguments = (address, number * 31, until, milliseconds)
        threads.append(threading.Thread(target=ask, args=arguments))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    quantiles = statistics.quantiles(milliseconds, n=100)
    return Load(len(milliseconds) / seconds, quantiles[49], quantiles[98])


def load_in_a_process(address: str, clients: int, seconds: float) -> Load:
    """The same in a separate process, beside the service's."""
    context = multiprocessing.get_context('spawn')
    with context.Pool(1) as pool:
        return pool.apply(measure_load, (address, clients, seconds))


def measure(workers: int, clients: Sequence[int], seconds: float) -> list[Load]:
    """What so many clients at a time see of a service of so many workers."""
    with listen('127.0.0.1', 0) as free:
        port = free.getsockname()[1]
    command = [sys.executable, '-m', 'pyserini_repbert.serve', '--index', 'demo', '--quiet']
    command += ['--workers', str(workers), '--port', str(port), '--log-file', '/dev/null']
    service = subprocess.Popen(command)
    address = f'http://127.0.0.1:{port}'
    try:
        n_ready = 0
        while n_ready < 20:
            try:
                urllib.request.urlopen(f'{address}/readyz').close()
                n_ready += 1
            except OSError:
                n_ready = 0
                if service.poll() is not None:
                    raise
                time.sleep(0.1)
        load_in_a_process(address, 16, 2.0)
        return [load_in_a_process(address, n, seconds) for n in clients]
    finally:
        service.terminate()
        service.wait(60)


def main() -> None:
    """Measure and print."""
    parser = figures.parser(__doc__, seconds=20)
    options: argparse.Namespace = parser.parse_args()
    alone, one = measure(1, (1, 16), options.seconds)
    alone_of_two, two, many = measure(2, (1, 16, 50), options.seconds)
    print(f'alone {alone.median:.1f} ms; two workers alone {alone_of_two.median:.1f} ms')
    found = [
        Figure('one process, 16 clients', one.per_second, 'searches/s'),
        Figure('two processes, 16 clients', two.per_second, 'searches/s'),
        Figure('two processes over one', two.per_second / one.per_second, 'x', 1.3),
        Figure(
            'p99 at 50 clients of two, over the median alone',
            many.p99 / alone.median,
            'times',
            10,
            at_most=True,
        ),
    ]
    figures.tell(options, found)


if __name__ == '__main__':
    main()
