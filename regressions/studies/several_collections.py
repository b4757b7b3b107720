"""Several collections searched together: tables of `docs/guides/several.md`.

    python regressions/studies/several_collections.py --split NAME=WHOLE,HALF,HALF,TOPICS,QRELS …
    python regressions/studies/several_collections.py --pair A,TOPICS,QRELS B,TOPICS,QRELS

All but TOPICS and QRELS are collections. `--split`: a collection, and its documents in two halves.
The halves together are compared with the whole, and with the interleaved answers of both.
`--pair`: two collections whose questions each belong to one. How many of the best ten hits, and
how many first hits, are of the right one? Qrels name docids as each collection does. Nothing is
chosen by these tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion import fuse
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.pipeline import PipelineSpec, open_pipeline
from pyserini_repbert.ranking import Query, Ranking, Run

MEASURE = 'nDCG@10'
DEPTH = 100
TOP = 10
_SIGN = '/'


def search(indexes: Sequence[str], topics: Sequence[Query]) -> Run:
    """The run of one collection, or of several together."""
    pipeline = open_pipeline(PipelineSpec(index=list(indexes))).pipeline
    with closing(pipeline):
        return pipeline.rank(topics, None, DEPTH)


def judged(topics: str, qrels: str, most: int) -> tuple[list[Query], Qrels]:
    """The first topics with a relevant document, and their judgments."""
    judgments = load_qrels(qrels)
    queries = []
    for topic in load_topics(topics):
        if any(grade > 0 for grade in judgments.get(topic.qid, {}).values()):
            queries.append(topic)
    queries = queries[:most]
    return queries, {topic.qid: judgments[topic.qid] for topic in queries}


def value(run: Run, qrels: Qrels) -> str:
    """'.523': the mean of a run."""
    mean = evaluate(by_rank(run), qrels, parse_measures([MEASURE])).means[MEASURE]
    return f'{mean:.3f}'.removeprefix('0')


def without_names(run: Run) -> Run:
    """The run of several collections with docids as each has them."""
    renamed: Run = {}
    for qid, ranking in run.items():
        docids = [docid.partition(_SIGN)[2] for docid in ranking.docids]
        renamed[qid] = Ranking(docids, ranking.scores)
    return renamed


def split_row(text: str, most: int) -> list[str]:
    """The row of a collection and its halves."""
    name, _, files = text.partition('=')
    whole, first, second, topics_file, qrels_file = files.split(',')
    topics, qrels = judged(topics_file, qrels_file, most)
    together = without_names(search([first, second], topics))
    interleaved = fuse([search([half], topics) for half in (first, second)], 'interleave', DEPTH)
    runs = [search([whole], topics), together, interleaved]
    return [f'{name} ({len(topics)})', *(value(run, qrels) for run in runs)]


def pair_rows(pair: Sequence[str], most: int) -> list[list[str]]:
    """A row for the questions of each of two collections."""
    files = [text.split(',') for text in pair]
    indexes = [index for index, _, _ in files]
    rows = []
    for index, topics_file, qrels_file in files:
        topics, qrels = judged(topics_file, qrels_file, most)
        together = search(indexes, topics)
        start = f'{Path(index).name}{_SIGN}'
        n_right = 0
        n_hits = 0
        n_first = 0
        of_index: Run = {}
        for qid, ranking in together.items():
            top = ranking.docids[:TOP]
            n_hits += len(top)
            n_right += sum(docid.startswith(start) for docid in top)
            n_first += ranking.docids[0].startswith(start)
            # A hit of the other collection is judged by nobody, and is not relevant.
            docids = []
            for docid in ranking.docids:
                docids.append(docid.removeprefix(start) if docid.startswith(start) else docid)
            of_index[qid] = Ranking(docids, ranking.scores)
        alone = value(search([index], topics), qrels)
        shares = [f'{n_right / n_hits:.3f}', f'{n_first / len(topics):.3f}']
        label = f'{Path(index).name} ({len(topics)})'
        rows.append([label, alone, value(of_index, qrels), *shares])
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--split', nargs='+', default=[], metavar='NAME=FILES')
    parser.add_argument('--pair', nargs=2, metavar='INDEX,TOPICS,QRELS')
    parser.add_argument('--most', type=int, default=300, help='questions of a collection')
    options = parser.parse_args()
    if options.split:
        rows = [split_row(text, options.most) for text in options.split]
        print(markdown([MEASURE, 'undivided', 'two halves together', 'interleaved'], rows))
    if options.pair:
        header = ['questions of', 'alone', 'together', 'of the best ten', 'of the first hits']
        print(markdown(header, pair_rows(options.pair, options.most)))


if __name__ == '__main__':
    main()
