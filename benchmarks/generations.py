"""Searches while generations are published: are all answers right, and what does it cost?

    python benchmarks/generations.py [--clients 16] [--generations 50] [--seconds 20]

A service of a collection of the demo's passages runs on this machine. Clients, the threads of
another process, search it, each one question after the other: first for some seconds while nothing
is published, then until a third process has published the generations. Each of these rewrites the
same twenty documents, whose texts then say which generation they are of. An answer is wrong where
a hit and the answer are of different generations, or where a client goes back to an earlier one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import figures
from figures import Figure
from soak import request, start_service

from pyserini_repbert.collection import Collection
from pyserini_repbert.names.corpora import open_corpus

_MARKERS = 20
_QUERY = 'which+generation+is+this+report+of'
_PAUSE = 0.6  # seconds after each generation: the service looks twice a second
_TEXT = re.compile(r'This report is of generation (\d+)')


@dataclass
class Findings:
    """What clients saw.

    Attributes
    ----------
    milliseconds : of each search
    generations : numbers that answers named
    wrong, failed : what was wrong with answers, and why requests failed
    """

    milliseconds: list[float] = field(default_factory=list)
    generations: set[int] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def p99(self) -> float:
        """The 99th percentile, milliseconds."""
        return statistics.quantiles(self.milliseconds, n=100)[98]


def markers(generation: int) -> list[dict[str, str]]:
    """The documents that say which generation they are of."""
    documents = []
    for number in range(_MARKERS):
        text = f'This report is of generation {generation}, and its number is {number}.'
        documents.append({'id': f'report-{number}', 'text': text})
    return documents


def check(findings: Findings, answer: dict[str, Any], newest: int) -> int:
    """The generation of an answer, after it was compared with the texts of its hits.

    `newest` is the latest generation that the client has seen.
    """
    generation = int(answer['generation'])
    findings.generations.add(generation)
    told = set()
    for hit in answer['candidates']:
        match = _TEXT.search(hit['doc'])
        if match:
            told.add(int(match[1]))
    if told != {generation}:
        findings.wrong.append(f'an answer of generation {generation} has texts of {sorted(told)}')
    if generation < newest:
        findings.wrong.append(f'generation {generation} came after {newest}')
    return max(generation, newest)


def search(address: str, ends: Event, findings: Findings) -> None:
    """Search until the event says to end."""
    newest = 0
    while not ends.is_set():
        start = time.perf_counter()
        try:
            answer = request(f'{address}/v1/mine/search?query={_QUERY}&hits={_MARKERS}')
        except urllib.error.HTTPError as error:
            findings.failed.append(f'{error.code} {error.read()[:200].decode()}')
            continue
        except OSError as error:
            findings.failed.append(str(error))
            continue
        findings.milliseconds.append(1000 * (time.perf_counter() - start))
        newest = check(findings, answer, newest)


def search_together(address: str, clients: int, starts: Event, ends: Event, results: Any) -> None:
    """Let clients search; what they saw is put into the queue `results`.

    Parameters
    ----------
    address : of the service
    clients : how many
    starts : is set when they begin
    ends : is set when they shall end
    results : gets the findings
    """
    findings = Findings()
    starts.set()
    threads = []
    for _ in range(clients):
        threads.append(threading.Thread(target=search, args=(address, ends, findings)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(findings)


class Clients:
    """A context in which clients search, in a separate process; then `findings` are there."""

    findings: Findings

    def __init__(self, address: str, clients: int) -> None:
        context = multiprocessing.get_context('spawn')
        self._starts = context.Event()
        self._ends = context.Event()
        self._results = context.Queue()
        arguments = (address, clients, self._starts, self._ends, self._results)
        self._process = context.Process(target=search_together, args=arguments)

    def __enter__(self) -> Clients:
        self._process.start()
        # Its imports take a while.
        self._starts.wait()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        self.findings = self._results.get(timeout=150)
        self._process.join()


def publish(folder: str, generations: int) -> None:
    """Publish generations of a collection, each of which rewrites the documents that say it."""
    with Collection.open(folder) as collection:
        for _ in range(generations):
            number = collection.generation.number + 1
            collection.add(markers(number))
            time.sleep(_PAUSE)


def publish_in_a_process(folder: Path, generations: int) -> None:
    """The same in a process beside the service. Raises CalledProcessError if it fails."""
    command = [sys.executable, __file__, '--publish', str(folder), '--generations']
    subprocess.run([*command, str(generations)], check=True)


def build(folder: Path, sparse: str, passages: int) -> None:
    """A collection of passages of the demo, and of those documents that say generation 1."""
    documents: list[dict[str, str]] = markers(1)
    for passage in islice(open_corpus('demo'), passages):
        documents.append({'id': passage.docid, 'text': passage.text})
    with Collection.open(folder, sparse=sparse) as collection:
        collection.sync(documents)


def measure(options: argparse.Namespace, folder: Path) -> tuple[Findings, Findings]:
    """What clients see while nothing is published, and while generations are."""
    build(folder / 'mine', 'bm25' if options.bm25 else 'none', options.passages)
    service, address = start_service(folder)
    try:
        with Clients(address, options.clients):
            # Caches are warm after this.
            time.sleep(3)
        with Clients(address, options.clients) as quiet:
            time.sleep(options.seconds)
        with Clients(address, options.clients) as busy:
            publish_in_a_process(folder / 'mine', options.generations)
    finally:
        service.terminate()
        service.wait(60)
    return quiet.findings, busy.findings


def main() -> None:
    """Measure, print, and fail if an answer was wrong or missing."""
    parser = figures.parser(__doc__, clients=16, generations=50, seconds=20, passages=1583)
    parser.add_argument('--bm25', action='store_true', help='with Lucene beside the vectors')
    parser.add_argument('--publish', metavar='FOLDER', help='only publish generations of this')
    options = parser.parse_args()
    if options.publish:
        publish(options.publish, options.generations)
        return
    with tempfile.TemporaryDirectory() as folder:
        quiet, busy = measure(options, Path(folder))
    problems = [*quiet.wrong, *busy.wrong, *quiet.failed, *busy.failed]
    print(
        f'{len(quiet.milliseconds)} searches before, {len(busy.milliseconds)} while '
        f'{options.generations} generations were published; answers named '
        f'{len(busy.generations)} of them'
    )
    found = [
        Figure('requests that failed', len(quiet.failed) + len(busy.failed), '', 0, at_most=True),
        Figure('wrong answers', len(quiet.wrong) + len(busy.wrong), '', 0, at_most=True),
        Figure('p99 without publishing', quiet.p99, 'ms'),
        Figure('p99 with publishing', busy.p99, 'ms'),
        Figure('p99 with over without publishing', busy.p99 / quiet.p99, 'x', 2, at_most=True),
    ]
    figures.tell(options, found)
    for problem in problems[:5]:
        print(f'  {problem}')
    if problems:
        sys.exit(1)


if __name__ == '__main__':
    main()
