"""A hybrid question of a collection, beside its two rankings one after the other.

    python benchmarks/hybrid.py --index FOLDER --topics FILE [--threads 1]
    python benchmarks/hybrid.py --corpus FILE --fields answer --topics FILE
    python benchmarks/hybrid.py --documents 100000

`--index` is a collection with vectors and BM25; `--documents` makes one of synthetic documents.
Each question is asked in three ways, which take turns: its dense ranking and then BM25, ten hits
each; the hybrid by min-max of 1,000 hits; and the hybrid by the default of collections. The first
questions warm up. Then a thousand questions are asked together, the least time of some runs.
Times are of the wall, and of the processor with all its threads: where other work shares the
cores, the latter says more.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import figures
import numpy as np
import synthetic
from figures import Figure
from synthetic import WordVectors, text_of, write_encoder

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.data.documents import Document
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Query, Ranker

_HITS = 10
_WARMING = 200
_TOGETHER = 1000
_RUNS = 5
_GOAL = 1.2
_DIMENSION = 128
# Of synthetic questions.
_SEED = 7
_WORDS = 4
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


def synthetic_topics(most: int) -> list[Query]:
    """Questions of four words, as synthetic documents have them."""
    drawn = random.Random(_SEED)
    return [Query(str(number), text_of(drawn, _WORDS)) for number in range(most)]


def synthetic_documents(count: int) -> list[Document]:
    """So many synthetic documents."""
    return [Document(made['id'], made['text']) for made in synthetic.documents(count)]


@contextmanager
def free_searcher(documents: Sequence[Document]) -> Iterator[CollectionSearcher]:
    """The hybrid of a collection of documents, in which encoding costs nothing."""
    vectors_of = WordVectors([document.text for document in documents], _DIMENSION)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_encoder(folder / 'encoder', _DIMENSION)
        settings = {'encoder': folder / 'encoder', 'embedding': vectors_of}
        with Collection.open(folder / 'mine', **settings) as collection:
            collection.sync(documents)
            searcher = collection.searcher()
            encoder: Any = searcher.dense.query_encoder
            encoder.encode_batch = lambda texts: vectors_of(None, list(texts))
            encoder.encode = lambda text: vectors_of(None, [text])[0]
            yield searcher


def say_what_is_asked(searcher: CollectionSearcher, topics: Sequence[Query]) -> None:
    """Print how often a fusion searches, of how many documents it asks for scores, and what both
    take, in milliseconds of the processor.
    """
    for part in searcher.parts:
        asked: dict[str, float] = defaultdict(float)
        kind = type(part)
        search = kind._rank
        scores = kind.document_scores

        def count_search(self: Any, *given: Any, search: Any = search, asked: Any = asked) -> Any:
            asked['searches'] += 1
            begun = time.process_time()
            run = search(self, *given)
            asked['ms of searches'] += 1000 * (time.process_time() - begun)
            return run

        def count_scores(
            self: Any,
            topic: Any,
            docids: Any,
            hits: Any,
            scores: Any = scores,
            asked: Any = asked,
        ) -> Any:
            asked['documents'] += len(set(docids) - set(hits.docids))
            of_searches = asked['ms of searches']
            begun = time.process_time()
            found = scores(self, topic, docids, hits)
            asked['ms of scores'] += 1000 * (time.process_time() - begun)
            # A search among these documents is a part of asking for scores.
            asked['ms of searches'] = of_searches
            return found

        with (
            patch.object(kind, '_rank', count_search),
            patch.object(kind, 'document_scores', count_scores),
        ):
            for topic in topics:
                searcher.rank([topic], None, _HITS)
        per_topic = {name: round(count / len(topics), 2) for name, count in asked.items()}
        print(f'{part.name}: {per_topic} a question')


def main() -> None:
    """A table, and the ratios of hybrid questions to their parts."""
    parser = figures.parser(__doc__)
    parser.add_argument('--index', type=Path)
    parser.add_argument('--corpus', help='in place of --index')
    parser.add_argument('--fields', nargs='+', default=[], help='of the corpus')
    parser.add_argument('--documents', type=int, help='in place of both: so many synthetic ones')
    parser.add_argument('--topics', help='needed, unless documents are synthetic')
    parser.add_argument('--most', type=int, default=200, help='so many topics; default: 200')
    parser.add_argument('--threads', type=int, nargs='+', default=[1])
    options: argparse.Namespace = parser.parse_args()
    given = [options.index, options.corpus, options.documents]
    if given.count(None) != 2:
        parser.error('give one of --index, --corpus and --documents')
    if options.documents is not None:
        topics = synthetic_topics(options.most)
    elif options.topics is None:
        parser.error('give --topics')
    else:
        topics = load_topics(options.topics)[: options.most]
    found = []
    print('| threads | one question | wall: median, p95, ms | processor: median, p95, ms |')
    print('|---:|---|---:|---:|')
    with ExitStack() as stack:
        if options.index is not None:
            collection = stack.enter_context(Collection.open(options.index))
            searcher = collection.searcher()
        else:
            if options.documents is not None:
                documents = synthetic_documents(options.documents)
            else:
                fields = tuple(options.fields)
                corpus = open_corpus(options.corpus, fields=fields, keep_empty=True)
                documents = list(corpus.documents())
            searcher = stack.enter_context(free_searcher(documents))
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
        say_what_is_asked(searcher, topics)
    figures.tell(options, found)


if __name__ == '__main__':
    main()
