"""A hybrid question of a collection, beside its two rankings one after the other.

    python benchmarks/hybrid.py --index FOLDER --topics FILE [--threads 1]

`--index` is a collection with vectors and BM25. Each question is asked in three ways, which take
turns: its dense ranking and then BM25, ten hits each; the hybrid by min-max of 1,000 hits; and the
hybrid by the collections' default. The first questions warm up. Then a thousand questions are asked
together, the least time of some runs. Times are of the wall, and of the processor with all its
threads: where other work shares the cores, the latter says more.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import figures
import numpy as np
from figures import Figure

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Query, Ranker

_HITS = 10
_WARMING = 200
_TOGETHER = 1000
_RUNS = 5
_GOAL = 1.2
_PARTS = 'dense, then BM25'


class Times:
    """The seconds of a way to answer, by question: of the wall, and of the processor."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []

    def measure(self, work: Callable[[], object]) -> None:
        """Do it, and note what it took."""
        wall = time.perf_counter()
        processor = time.process_time()
        work()
        self.processor.append(time.process_time() - processor)
        self.wall.append(time.perf_counter() - wall)


def ways_to_answer(
    searcher: CollectionSearcher, threads: int
) -> dict[str, Callable[[Sequence[Query]], object]]:
    """The ways to answer questions together, by name."""

    def asked(ranker: Ranker) -> Callable[[Sequence[Query]], object]:
        with_threads = ranker.with_settings(threads=threads)
        return lambda topics: with_threads.rank(topics, None, _HITS)

    dense, words = (asked(part) for part in searcher.parts)
    before = FusionSettings(FusionMethod.INTERPOLATION, normalize='minmax').changed(alpha=0.6)

    def one_after_the_other(topics: Sequence[Query]) -> None:
        dense(topics)
        words(topics)

    return {
        _PARTS: one_after_the_other,
        'hybrid by min-max': asked(searcher.with_settings(settings=before)),
        'hybrid': asked(searcher),
    }


def measure(
    searcher: CollectionSearcher, topics: Sequence[Query], threads: int
) -> dict[str, Times]:
    """The times of each way."""
    ways = ways_to_answer(searcher, threads)
    for topic in islice(cycle(topics), _WARMING):
        for answer in ways.values():
            answer([topic])
    times = {name: Times() for name in ways}
    for topic in topics:
        for name, answer in ways.items():
            times[name].measure(partial(answer, [topic]))
    return times


def measure_together(
    searcher: CollectionSearcher, topics: Sequence[Query], threads: int
) -> dict[str, float]:
    """The processor seconds of each way for `_TOGETHER` questions at once, the least of some runs.

    A question comes several times, under other names.
    """
    asked = []
    for number, topic in enumerate(islice(cycle(topics), _TOGETHER)):
        asked.append(Query(str(number), topic.text))
    times = {name: Times() for name in ways_to_answer(searcher, threads)}
    for _ in range(_RUNS):
        for name, answer in ways_to_answer(searcher, threads).items():
            times[name].measure(partial(answer, asked))
    return {name: min(of_way.processor) for name, of_way in times.items()}


def milliseconds(seconds: Sequence[float]) -> str:
    """The median and the 95th percentile, for a table."""
    return f'{1000 * statistics.median(seconds):.1f}, {1000 * np.quantile(seconds, 0.95):.1f}'


def median_ratio(seconds: Sequence[float], others: Sequence[float]) -> float:
    """The median over questions of the ratio of two ways."""
    return statistics.median(a / b for a, b in zip(seconds, others, strict=True))


def main() -> None:
    """A table, and the ratios of hybrid questions to their parts."""
    parser = figures.parser(__doc__)
    parser.add_argument('--index', type=Path, required=True)
    parser.add_argument('--topics', required=True)
    parser.add_argument('--threads', type=int, nargs='+', default=[1])
    options: argparse.Namespace = parser.parse_args()
    topics = load_topics(options.topics)
    found = []
    print('| threads | one question | wall: median, p95, ms | processor: median, p95, ms |')
    print('|---:|---|---:|---:|')
    with Collection.open(options.index) as collection:
        searcher = collection.searcher()
        for threads in options.threads:
            times = measure(searcher, topics, threads)
            parts = times[_PARTS]
            for name, of_way in times.items():
                wall = milliseconds(of_way.wall)
                print(f'| {threads} | {name} | {wall} | {milliseconds(of_way.processor)} |')
                if of_way is not parts:
                    label = f'{name} against {_PARTS}, {threads} threads'
                    ratio = median_ratio(of_way.wall, parts.wall)
                    of_processor = median_ratio(of_way.processor, parts.processor)
                    goal = _GOAL if name == 'hybrid' else None
                    found.append(Figure(f'{label}: wall', ratio, 'x', goal, at_most=True))
                    found.append(Figure(f'{label}: processor', of_processor, 'x', goal, True))
            together = measure_together(searcher, topics, threads)
            for name, seconds in together.items():
                print(f'{_TOGETHER} questions together, {name}: {seconds:.2f} s of the processor')
            label = f'{_TOGETHER} questions together, hybrid against {_PARTS}, {threads} threads'
            found.append(Figure(label, together['hybrid'] / together[_PARTS], 'x', _GOAL, True))
    figures.tell(options, found)


if __name__ == '__main__':
    main()
