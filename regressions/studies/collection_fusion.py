"""How a collection fuses by default, beside other fusions: a table of `docs/guides/documents.md`.

    python regressions/studies/collection_fusion.py NAME=COLLECTION,TOPICS,QRELS … [--most 400]

Give training questions: the default is chosen by this table. Questions without a relevant document
are left out.
"""

from __future__ import annotations

import argparse
from contextlib import closing

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.judging.confidence import relevant_docids
from pyserini_repbert.evaluate.measures import by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.names.topics import load_qrels, load_topics

MEASURE = 'nDCG@10'
HITS = 10


def interpolation(scale: str, share: float) -> FusionSettings:
    """Interpolation of the dense ranking, with this share, and BM25."""
    return FusionSettings('interpolation', normalize=scale).changed(alpha=share)


FUSIONS = {
    'min-max, 0.6': interpolation('minmax', 0.6),
    'over the best, 0.6': interpolation('max', 0.6),
    'over the best, 0.7': interpolation('max', 0.7),
    'rrf': FusionSettings('rrf'),
}


def values_of(collection: str, topics: str, qrels: str, most: int) -> list[float]:
    """The mean of each fusion."""
    judgments = load_qrels(qrels)
    answered = []
    for topic in load_topics(topics):
        if relevant_docids(judgments.get(topic.qid, {})):
            answered.append(topic)
    queries = answered[:most]
    judged = {topic.qid: judgments[topic.qid] for topic in queries}
    means = []
    with Collection.open(collection) as opened, closing(opened.searcher()) as searcher:
        for settings in FUSIONS.values():
            run = searcher.with_settings(settings=settings).rank(queries, None, HITS)
            evaluation = evaluate(by_rank(run), judged, parse_measures([MEASURE]))
            means.append(evaluation.means[MEASURE])
    return means


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('collections', nargs='+', metavar='NAME=COLLECTION,TOPICS,QRELS')
    parser.add_argument('--most', type=int, default=400, help='questions of a collection')
    options = parser.parse_args()
    rows = []
    columns: list[list[float]] = []
    for collection in options.collections:
        name, _, files = collection.partition('=')
        means = values_of(*files.split(','), options.most)
        columns.append(means)
        rows.append([name, *(f'{mean:.4f}' for mean in means)])
    totals = [sum(column) / len(column) for column in zip(*columns, strict=True)]
    rows.append(['mean', *(f'{total:.4f}' for total in totals)])
    print(markdown(['', *FUSIONS], rows))


if __name__ == '__main__':
    main()
