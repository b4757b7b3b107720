"""Growth of a collection: what each step costs with 10,000, 100,000 and more documents.

    python benchmarks/growth.py [--sizes 10000 100000 1000000] [--dimension 384] [--no-service]

For each size, a process builds a collection and measures the steps: processor seconds of one
thread, of the process and of what it starts. Documents have 20 to 60 words, one of 5,000 has 20,000
words. Their fields have 5, 2,000 and all different values, and shares of 1%, 11% and 50%. Questions
are encoded by a small model with random weights, passages are random vectors. The exponent of a
step is how it grows between the smallest and the largest size: 0 is not at all, 1 is linear. The
benchmark fails where a step grows more than it may.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

import figures
from figures import Figure
from soak import request, start_service
from synthetic import (
    LONG_WORDS,
    NEAR,
    SyntheticVectors,
    document,
    documents,
    text_of,
    write_encoder,
)

from pyserini_repbert.collection import Collection

_QUERY = 'w1 w22 w333'
_QUERIES = 5
_HITS = 10
# A step below so many processor seconds may grow as it likes: 200 MB are read in this time.
_NOTHING = 0.03
_TICKS = os.sysconf('SC_CLK_TCK')


@dataclass(frozen=True)
class Step:
    """A step, and how it may grow.

    Attributes
    ----------
    name : what is done
    exponent : the greatest that is allowed
    """

    name: str
    exponent: float


# Exact search reads every vector, and a filter every document that it finds.
_LINEAR = 1.1
_FLAT = 0.35
# A generation is shown after one search, which reads every vector.
_WITH_SEARCH = 0.5
STEPS = (
    Step('build', _LINEAR),
    Step('open', _FLAT),
    Step('first search of a process', _LINEAR),
    Step('dearest of the next ten searches', _LINEAR),
    Step('search', _LINEAR),
    Step('add one document', _FLAT),
    Step('first search after add', _LINEAR),
    Step('first filter by a value of 2,000', _FLAT),
    Step('first filter by a value of its own', _FLAT),
    Step('first filter of 1%', _LINEAR),
    Step('search within 1%', _LINEAR),
    Step('first filter of 11%', _LINEAR),
    Step('search within 11%', _LINEAR),
    Step('first filter of 50%', _LINEAR),
    Step('search within 50%', _LINEAR),
    Step('delete one document', _FLAT),
    Step('move the passages of a long document', _FLAT),
    Step('search near a long document', _LINEAR),
    Step('add one document, 11% dead', _FLAT),
    Step('first search after add, 11% dead', _LINEAR),
    Step('PUT one document until found', _WITH_SEARCH),
)


def processor_seconds(process: int) -> float:
    """Processor seconds of a process with its children (Linux)."""
    values = Path(f'/proc/{process}/stat').read_text(encoding='utf-8').rpartition(')')[2].split()
    total = (int(values[11]) + int(values[12])) / _TICKS
    children = Path(f'/proc/{process}/task/{process}/children')
    for child in children.read_text(encoding='utf-8').split():
        total += processor_seconds(int(child))
    return total


def cost(work: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def least_cost(works: Sequence[Callable[[], object]]) -> float:
    """The least of the processor seconds of several calls."""
    return min(cost(work) for work in works)


class Measurement:
    """Measures the steps of a collection of `count` documents in a folder."""

    def __init__(self, folder: Path, count: int, dimension: int) -> None:
        self._count = count
        self._embedding = SyntheticVectors(dimension)
        self._encoder = folder / 'encoder'
        self._folder = folder / 'mine'
        self._next = count
        self.seconds: dict[str, float] = {}
        write_encoder(self._encoder, dimension)

    def _open(self) -> Collection:
        return Collection.open(self._folder, self._encoder, embedding=self._embedding)

    def build(self) -> None:
        """Build the collection."""
        with self._open() as collection:
            self.seconds['build'] = cost(lambda: collection.sync(documents(self._count)))

    def search(self) -> None:
        """Open the collection, search it, and within filters."""
        # Java and the model are loaded for another collection.
        with self._open() as before:
            before.search(_QUERY, _HITS)
        with self._open() as collection:
            self.seconds['open'] = cost(lambda: len(collection))
            first = cost(lambda: collection.search(_QUERY, _HITS))
            self.seconds['first search of a process'] = first
            # Some of them round vectors; later searches read these.
            next_ten = [cost(lambda: collection.search(_QUERY, _HITS)) for _ in range(10)]
            self.seconds['dearest of the next ten searches'] = max(next_ten)
            self.seconds['search'] = self._search_cost(collection)
            value = f'tags:tag{self._count % 1999}'
            self._measure_filter(collection, 'by a value of 2,000', value)
            self._measure_filter(collection, 'by a value of its own', f'number:{self._count // 2}')
            for share in ('1', '11', '50'):
                wanted = f'of{share}:true'
                self._measure_filter(collection, f'of {share}%', wanted)
                within = self._search_cost(collection, wanted)
                self.seconds[f'search within {share}%'] = within

    def _search_cost(self, collection: Collection, wanted: str | None = None) -> float:
        """The least cost of a search, after one that is not measured."""
        collection.search(_QUERY, _HITS, wanted)
        queries = [f'{_QUERY} w{number}' for number in range(_QUERIES)]
        works = [lambda query=query: collection.search(query, _HITS, wanted) for query in queries]
        return least_cost(works)

    def _measure_filter(self, collection: Collection, name: str, wanted: str) -> None:
        """The first search within a filter, beside a search without it."""
        whole = cost(lambda: collection.search(_QUERY, _HITS, wanted))
        self.seconds[f'first filter {name}'] = max(0.0, whole - self.seconds['search'])

    def change(self) -> None:
        """Add, delete and move documents."""
        with self._open() as collection:
            collection.search(_QUERY, _HITS)
            self._add(collection, 'add one document', 'first search after add')
            delete = [lambda n=number: collection.delete(f'd{n}') for number in (17, 19, 23)]
            self.seconds['delete one document'] = least_cost(delete)
            encoder = collection.searcher().dense
            self._embedding.query = encoder.vector_of(_QUERY)
            near = document(self._next, LONG_WORDS) | {'title': NEAR}
            self._next += 1
            collection.add([near])
            near_search = self._search_cost(collection)
            self.seconds['search near a long document'] = near_search
            # The eighth small shard makes one of them all.
            moves = [self._add_one(collection) for _ in range(9)]
            self.seconds['move the passages of a long document'] = max(moves)
            collection.delete(near['id'])
            collection.delete(f'd{number}' for number in range(0, self._count, 9))
            collection.search(_QUERY, _HITS)
            self._add(collection, 'add one document, 11% dead', 'first search after add, 11% dead')

    def _add_one(self, collection: Collection) -> float:
        new = document(self._next, 30)
        self._next += 1
        return cost(lambda: collection.add([new]))

    def _add(self, collection: Collection, add: str, found: str) -> None:
        """The cost of adding a document, and of the search after it."""
        adds = []
        searches = []
        for _ in range(3):
            adds.append(self._add_one(collection))
            searches.append(cost(lambda: collection.search(_QUERY, _HITS)))
        self.seconds[add] = min(adds)
        self.seconds[found] = min(searches)

    def put(self) -> None:
        """Write documents over HTTP, until the service finds them."""
        service, address = start_service(self._folder.parent)
        try:
            body = json.dumps({'text': text_of(random.Random(0), 30)}).encode()
            costs = []
            for number in range(5):
                start = processor_seconds(service.pid)
                request(f'{address}/v1/mine/documents/new{number}?wait=true', 'PUT', body)
                costs.append(processor_seconds(service.pid) - start)
            # The first one starts the writer.
            self.seconds['PUT one document until found'] = min(costs[1:])
        finally:
            service.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                service.wait(60)


def measure(options: argparse.Namespace) -> dict[str, float]:
    """The processor seconds of each step for one size, in this process."""
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        measurement = Measurement(Path(folder), options.sizes[0], options.dimension)
        measurement.build()
        measurement.search()
        measurement.change()
        if options.service:
            measurement.put()
    return measurement.seconds


def measure_apart(options: argparse.Namespace, size: int) -> dict[str, float]:
    """The same in a separate process. Raises CalledProcessError if it fails."""
    command = [sys.executable, __file__, '--here', '--sizes', str(size)]
    command += ['--dimension', str(options.dimension)]
    if options.work:
        command += ['--work', str(options.work)]
    if not options.service:
        command.append('--no-service')
    environment = {**os.environ, 'OMP_NUM_THREADS': '1'}
    output = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment
    ).stdout
    seconds: dict[str, float] = json.loads(output)
    return seconds


def exponent(small: float, large: float, times: float) -> float:
    """How a step grows; 0 where it costs next to nothing."""
    return log(max(large, _NOTHING) / max(small, _NOTHING)) / log(times)


def main() -> None:
    """A process for each size, a table, and a failure where a step grows more than it may."""
    parser = figures.parser(__doc__, dimension=384)
    parser.add_argument('--sizes', type=int, nargs='+', default=[10_000, 100_000])
    parser.add_argument('--no-service', dest='service', action='store_false')
    parser.add_argument('--work', type=Path, help='folder for the collections')
    parser.add_argument(
        '--here', action='store_true', help='measure the one size in this process, as JSON'
    )
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options)))
        return
    sizes = sorted(set(options.sizes))
    if len(sizes) < 2:
        parser.error('--sizes: two sizes or more were expected, growth is between them')
    by_size = [measure_apart(options, size) for size in sizes]
    header = ' | '.join(f'{size:,}' for size in sizes)
    print(f'| processor seconds | {header} | exponent | at most |')
    print('|---|' + '---:|' * (len(sizes) + 2))
    found = []
    for step in STEPS:
        if step.name not in by_size[0]:
            continue
        seconds = [measured[step.name] for measured in by_size]
        grows = exponent(seconds[0], seconds[-1], sizes[-1] / sizes[0])
        values = ' | '.join(f'{value:.3f}' for value in seconds)
        print(f'| {step.name} | {values} | {grows:.2f} | {step.exponent:g} |')
        found.append(Figure(f'{step.name}: exponent', grows, '', step.exponent, at_most=True))
    figures.tell(options, found)
    if any(figure.verdict == 'missed' for figure in found):
        sys.exit(1)


if __name__ == '__main__':
    main()
