"""The table of `regressions/adapting.md`: what `adapt` gains on unseen topics.

python tools/adapting_table.py NAME=DENSE,LUCENE,TOPICS,QRELS …
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.judged_topics import DEPTH
from pyserini_repbert.adapt.learning import adapt
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.studies.fusion import untuned_settings
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.fusion.methods import (
    FusionMethod,
    Normalization,
)
from pyserini_repbert.indexes.dense.searcher import DenseSearcher
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Run

HALVES = 12
RECOMMENDED = 'interpolation dense+bm25 alpha=0.7 minmax'
(NDCG,) = parse_measures(['nDCG@10'])
Values = NDArray[np.float64]  # mean nDCG@10 of each half that was ranked, (HALVES,)


class Half(NamedTuple):
    """A cut of the topics in two: those learned from, those ranked."""

    seen: list[Query]
    others: list[Query]


class Judged(NamedTuple):
    """Topics with relevant passages in the index, and the grades of these."""

    topics: list[Query]
    grades: Qrels


def halves(topics: Sequence[Query]) -> list[Half]:
    """Twelve ways to cut the topics in two."""
    cuts = []
    middle = len(topics) // 2
    for seed in range(HALVES):
        shuffled = random.Random(seed).sample(list(topics), len(topics))
        cuts.append(Half(shuffled[:middle], shuffled[middle:]))
    return cuts


def judged_topics(searcher: DenseSearcher, topics: Iterable[Query], qrels: Qrels) -> Judged:
    """The topics that have a relevant passage in the searcher's index."""
    judged = Judged([], {})
    for topic in topics:
        grades = qrels.get(topic.qid, {})
        relevant = {docid: grade for docid, grade in grades.items() if grade > 0}
        if (searcher.index.rows(list(relevant)) >= 0).any():
            judged.topics.append(topic)
            judged.grades[topic.qid] = relevant
    return judged


def mean_ndcg(run: Run, topics: Iterable[Query], grades: Qrels) -> float:
    """The mean nDCG@10 of a run over these topics."""
    qrels = {topic.qid: grades[topic.qid] for topic in topics}
    return evaluate(by_rank(run), qrels, [NDCG]).means[NDCG.name]


def cell(gains: Values) -> str:
    """The mean of gains, and the worst one."""
    return f'{gains.mean():+.4f} ({gains.min():+.4f})'


def row(name: str, dense: str, lucene: str, topics_name: str, qrels_name: str) -> list[str]:
    """The collection's row.

    nDCG@10 of the dense index, then gains over it, then of `adapt` over the best untuned ranking.

    Parameters
    ----------
    name : of the collection
    dense, lucene : its indexes
    topics_name, qrels_name : its topics and judgments
    """
    opened = open_pipeline(PipelineSpec(index=dense, sparse=(f'bm25@{lucene}',)))
    searcher, sparse = opened.pipeline.leaves()
    assert isinstance(searcher, DenseSearcher)
    qrels = load_qrels(qrels_name)
    topics, grades = judged_topics(searcher, load_topics(topics_name), qrels)
    runs = {'dense': searcher.rank(topics, None, DEPTH), 'bm25': sparse.rank(topics, None, DEPTH)}
    qids = [topic.qid for topic in topics]
    untuned = dict(runs)
    for setting in untuned_settings(list(runs)):
        untuned[str(setting)] = setting.fused(runs, qids, DEPTH)

    values: dict[str, list[float]] = {ranking: [] for ranking in untuned}
    mapped_values: list[float] = []
    fused_values: list[float] = []
    for seen, others in halves(topics):
        for ranking, run in untuned.items():
            values[ranking].append(mean_ndcg(run, others, grades))
        learnt = adapt(searcher, [sparse], seen, qrels)
        mapped = searcher.with_settings(query_map=learnt.query_map).rank(others, None, DEPTH)
        mapped_values.append(mean_ndcg(mapped, others, grades))
        lexical = {topic.qid: runs['bm25'][topic.qid] for topic in others}
        fused = fuse(
            [mapped, lexical],
            FusionMethod.INTERPOLATION,
            DEPTH,
            learnt.weights,
            normalize=Normalization.MINMAX,
        )
        fused_values.append(mean_ndcg(fused, others, grades))

    best = max(values, key=lambda ranking: np.mean(values[ranking]))
    alone = np.array(values['dense'])
    best_untuned = np.array(values[best])
    adapted = np.array(fused_values)
    return [
        name,
        str(len(topics)),
        f'{alone.mean():.4f}',
        cell(np.array(mapped_values) - alone),
        cell(np.array(values[RECOMMENDED]) - alone),
        f'{cell(best_untuned - alone)} {best}',
        cell(adapted - alone),
        cell(adapted - best_untuned),
    ]


def main() -> None:
    """Print a row for each collection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('collections', nargs='+', metavar='NAME=DENSE,LUCENE,TOPICS,QRELS')
    header = ['', 'topics', 'alone', 'query map', 'recommended', 'best untuned', 'map and weight']
    header.append('over the best untuned')
    rows = []
    for collection in parser.parse_args().collections:
        name, _, files = collection.partition('=')
        rows.append(row(name, *files.split(',')))
    print(markdown(header, rows, is_padded=False))


if __name__ == '__main__':
    main()
