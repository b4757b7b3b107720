"""The table of `regressions/adapting.md`: what `adapt` gains on the half of a collection's topics
that it did not see.

python tools/adapting_table.py NAME=DENSE,LUCENE,TOPICS,QRELS …
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.learning import DEPTH, adapt
from pyserini_repbert.adapt.weights import ndcg
from pyserini_repbert.evaluate.studies.fusion import untuned_settings
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.fusion.methods import FusionMethod, Normalization
from pyserini_repbert.names.dense import RepBertSearcher
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Run

HALVES = 12
RECOMMENDED = 'interpolation dense+bm25 alpha=0.7 minmax'
Grades = dict[str, dict[str, int]]


def halves(topics: Sequence[Query]) -> list[tuple[list[Query], list[Query]]]:
    """Twelve ways to cut the topics in two: those learnt from, those ranked."""
    cuts = []
    for seed in range(HALVES):
        shuffled = random.Random(seed).sample(list(topics), len(topics))
        middle = len(topics) // 2
        cuts.append((shuffled[:middle], shuffled[middle:]))
    return cuts


def mean_ndcg(run: Run, topics: Sequence[Query], grades: Grades) -> float:
    """The mean nDCG@10 of a run over these topics."""
    return float(np.mean([ndcg(run[topic.qid], grades[topic.qid]) for topic in topics]))


def cell(gains: NDArray[np.float64]) -> str:
    """The mean of gains, and the worst one."""
    return f'{gains.mean():+.4f} ({gains.min():+.4f})'


def row(name: str, dense: str, lucene: str, topics_name: str, qrels_name: str) -> str:
    """The collection's row: nDCG@10 of the dense index, then gains over it, then of `adapt` over
    the best untuned ranking.
    """
    opened = open_pipeline(PipelineSpec(index=dense, sparse=(f'bm25@{lucene}',)))
    searcher, sparse = opened.pipeline.leaves()
    assert isinstance(searcher, RepBertSearcher)
    qrels = load_qrels(qrels_name)
    grades: Grades = {}
    topics: list[Query] = []
    for topic in load_topics(topics_name):
        judged = qrels.get(topic.qid, {})
        relevant = {docid: grade for docid, grade in judged.items() if grade > 0}
        if (searcher.index.rows(list(relevant)) >= 0).any():
            grades[topic.qid] = relevant
            topics.append(topic)
    runs = {'dense': searcher.rank(topics, None, DEPTH), 'bm25': sparse.rank(topics, None, DEPTH)}
    qids = [topic.qid for topic in topics]
    untuned = runs | {
        str(setting): setting.fused(runs, qids, DEPTH) for setting in untuned_settings(list(runs))
    }

    values: dict[str, list[float]] = {ranking: [] for ranking in untuned}
    mapped_values: list[float] = []
    fused_values: list[float] = []
    for seen, others in halves(topics):
        for ranking, run in untuned.items():
            values[ranking].append(mean_ndcg(run, others, grades))
        learnt = adapt(searcher, [sparse], seen, qrels)
        mapped = searcher.with_settings(query_map=learnt.query_map).rank(others, None, DEPTH)
        mapped_values.append(mean_ndcg(mapped, others, grades))
        fused = fuse(
            [mapped, {topic.qid: runs['bm25'][topic.qid] for topic in others}],
            FusionMethod.INTERPOLATION,
            DEPTH,
            learnt.weights,
            normalize=Normalization.MINMAX,
        )
        fused_values.append(mean_ndcg(fused, others, grades))

    best = max(values, key=lambda ranking: np.mean(values[ranking]))
    alone = np.array(values['dense'])
    adapted = np.array(fused_values)
    cells = [
        name,
        str(len(topics)),
        f'{alone.mean():.4f}',
        cell(np.array(mapped_values) - alone),
        cell(np.array(values[RECOMMENDED]) - alone),
        f'{cell(np.array(values[best]) - alone)} {best}',
        cell(adapted - alone),
        cell(adapted - np.array(values[best])),
    ]
    return f'| {" | ".join(cells)} |'


def main() -> None:
    """Print a row for each collection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('collections', nargs='+', metavar='NAME=DENSE,LUCENE,TOPICS,QRELS')
    for collection in parser.parse_args().collections:
        name, _, places = collection.partition('=')
        print(row(name, *places.split(',')), flush=True)


if __name__ == '__main__':
    main()
