"""What probabilities of hits cost beside a search of a collection without them.

    python benchmarks/confidence_cost.py --index FOLDER --topics FILE

`--index` is a collection with vectors and BM25, of at least 50 passages. Each question is asked in
three ways, which take turns: ten hits with their passages, the same with probabilities, and the
same with whether the collection is about the question. The model has no weights: they change
nothing in the time. The first questions warm up. Times are of the wall, and of the processor
with all its threads: where other work shares the cores, the latter says more.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path

import figures
from figures import Figure
from hybrid import Times, median_ratio, milliseconds

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.noted_rankings import KNOWN_HITS, topic_rankings
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.extensions.confidence.estimating import ConfidenceEstimator
from pyserini_repbert.extensions.confidence.models import (
    HIT_FEATURES,
    TOP,
    ConfidenceModel,
    HeldOutTest,
    LogisticModel,
)
from pyserini_repbert.extensions.off_topic.claims import TopicCheck
from pyserini_repbert.fusion.fused import look_deeper
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.trace import Notes

_ROUNDS = 3
_WARMING = 200
_GOAL = 1.03
_PLAIN = 'a search'
_BELIEVED = 'with confidence'
_TOLD = 'with off_topic'
_TOLD_GOAL = 1.02


def model_without_weights() -> ConfidenceModel:
    """A model that says .5 of everything."""
    zeros = (0.0,) * len(HIT_FEATURES)
    ones = (1.0,) * len(HIT_FEATURES)
    part = LogisticModel(centre=zeros, scale=ones, weights=zeros, intercept=0.0)
    test = HeldOutTest(auc=1.0, chance=0.5)
    return ConfidenceModel(
        hits=part,
        questions=part,
        source='learned',
        hits_test=test,
        questions_test=test,
        search={},
        encoder_weights='',
    )


def ways_to_answer(searcher: CollectionSearcher) -> dict[str, Callable[[Query], object]]:
    """The ways, by name."""
    estimator = ConfidenceEstimator.of(searcher, model_without_weights())
    deep_enough = look_deeper(searcher, KNOWN_HITS)

    def answered(ranker: CollectionSearcher, topic: Query, notes: Notes) -> Ranking:
        ranking = ranker.rank([topic], None, TOP, notes)[topic.qid]
        return ranker.with_stored_texts(topic.text, ranking)

    def believed(topic: Query) -> None:
        notes = Notes()
        ranking = answered(deep_enough, topic, notes)
        rankings = topic_rankings(searcher, notes, topic.qid)
        estimator.estimate(topic.text, ranking.docids, rankings)

    check = TopicCheck.of(searcher)
    assert check is not None

    def told(topic: Query) -> None:
        notes = Notes()
        answered(searcher, topic, notes)
        check.is_off_topic(topic.text, topic_rankings(searcher, notes, topic.qid)['dense'])

    return {
        _PLAIN: lambda topic: answered(searcher, topic, Notes()),
        _BELIEVED: believed,
        _TOLD: told,
    }


def measure(searcher: CollectionSearcher, topics: Sequence[Query]) -> dict[str, Times]:
    """The times of each way."""
    ways = ways_to_answer(searcher)
    for topic in islice(cycle(topics), _WARMING):
        for answer in ways.values():
            answer(topic)
    times = {name: Times() for name in ways}
    for turn in range(_ROUNDS):
        # What comes second finds caches warm.
        first = turn % len(ways)
        names = [*list(ways)[first:], *list(ways)[:first]]
        for topic in topics:
            for name in names:
                times[name].measure(lambda name=name, topic=topic: ways[name](topic))
    return times


def main() -> None:
    """A table, and the ratios of the ways."""
    parser = figures.parser(__doc__)
    parser.add_argument('--index', type=Path, required=True)
    parser.add_argument('--topics', required=True)
    options: argparse.Namespace = parser.parse_args()
    with Collection.open(options.index) as collection:
        searcher = collection.searcher()
        times = measure(searcher, load_topics(options.topics))
        searcher.close()
    print('| | wall: median, p95, ms | processor: median, p95, ms |')
    print('|---|---:|---:|')
    for name, of_way in times.items():
        print(f'| {name} | {milliseconds(of_way.wall)} | {milliseconds(of_way.processor)} |')
    plain = times[_PLAIN]
    found = []
    for name, goal in ((_BELIEVED, _GOAL), (_TOLD, _TOLD_GOAL)):
        wall = median_ratio(times[name].wall, plain.wall)
        processor = median_ratio(times[name].processor, plain.processor)
        found.append(Figure(f'a search {name}: wall', wall, 'x', goal, at_most=True))
        found.append(Figure(f'a search {name}: processor', processor, 'x', goal, at_most=True))
    figures.tell(options, found)


if __name__ == '__main__':
    main()
