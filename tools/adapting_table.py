"""The table of `regressions/adapting.md`: what `adapt` gains on the half of a collection's topics
that it did not see.

python tools/adapting_table.py --encoder minilm NAME=DENSE,LUCENE,TOPICS,QRELS …
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query
from pyserini_repbert.search.dense import RepBertSearcher
from pyserini_repbert.train.adapting import DEPTH, adapt
from pyserini_repbert.train.alignment import Alignment

HALVES = 12


def halves(topics: Sequence[Query]) -> list[tuple[list[Query], list[Query]]]:
    """Twelve ways to cut the topics in two: those learnt from, those ranked."""
    shuffled = [random.Random(seed).sample(list(topics), len(topics)) for seed in range(HALVES)]
    return [(own[: len(own) // 2], own[len(own) // 2 :]) for own in shuffled]


def row(name: str, dense: str, lucene: str, topics_name: str, qrels_name: str) -> str:
    """The collection's row: nDCG@10 of the index, mean and worst gain of the map, of fusion, and
    of both.
    """
    opened = open_pipeline(PipelineSpec(index=dense, sparse=(f'bm25@{lucene}',)))
    searcher, sparse = opened.pipeline.leaves()
    assert isinstance(searcher, RepBertSearcher)
    qrels = load_qrels(qrels_name)
    grades = {
        qid: {docid: grade for docid, grade in own.items() if grade > 0}
        for qid, own in qrels.items()
    }
    topics = [
        topic
        for topic in load_topics(topics_name)
        if (searcher.index.rows(list(grades.get(topic.qid, ()))) >= 0).any()
    ]
    run = sparse.rank(topics, None, DEPTH)
    base = []
    gains = []
    for seen, others in halves(topics):
        learnt = adapt(searcher, [sparse], seen, qrels)

        def ndcg(
            weights: Sequence[float], ranker: RepBertSearcher, asked: Sequence[Query] = others
        ) -> NDArray[np.float64]:
            ranked = ranker.rank(asked, None, DEPTH)
            columns = [
                Alignment.of([ranked[topic.qid], run[topic.qid]], grades[topic.qid])
                for topic in asked
            ]
            return np.array([own.values(weights)[0] for own in columns])

        mapped = searcher.with_settings(query_map=learnt.query_map)
        alone = ndcg([1, 0], searcher).mean()
        base.append(alone)
        ways = (([1, 0], mapped), ([0.5, 0.5], searcher), (learnt.weights, mapped))
        gains.append([ndcg(weights, ranker).mean() - alone for weights, ranker in ways])
    means = np.mean(gains, axis=0)
    worst = np.min(gains, axis=0)
    cells = [f'{mean:+.4f} | {least:+.4f}' for mean, least in zip(means, worst, strict=True)]
    return f'| {name} | {len(topics)} | {np.mean(base):.4f} | {" | ".join(cells)} |'


def main() -> None:
    """Print a row for each collection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('collections', nargs='+', metavar='NAME=DENSE,LUCENE,TOPICS,QRELS')
    for collection in parser.parse_args().collections:
        name, _, places = collection.partition('=')
        print(row(name, *places.split(',')), flush=True)


if __name__ == '__main__':
    main()
