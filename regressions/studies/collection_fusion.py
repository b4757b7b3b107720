"""How a collection fuses by default, beside other fusions: tables of `docs/guides/documents.md`.

    python regressions/studies/collection_fusion.py NAME=COLLECTION,TOPICS,QRELS … [--most 300]
      [--rankings dense bm25]

Whole rankings are fused. Questions without a relevant document are left out. A topic is a training
topic or a test topic by the checksum of its qid. There is a table of each: choose by the first, and
report the second. The last column is what the default gives above the better ranking alone.
"""

from __future__ import annotations

import argparse
import zlib
from contextlib import closing
from dataclasses import dataclass

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.rankings import default_fusion
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.extensions.confidence.learning import relevant_docids
from pyserini_repbert.fusion import fuse
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Background, Ranking, Run

MEASURE = 'nDCG@10'
HITS = 10
# Hits of each ranking that are fused where the last one's score is a zero.
DEPTH = 1000
HALVES = ('training', 'test')


@dataclass(frozen=True)
class Scale:
    """A normalisation of scores, and how many hits of each ranking it is of; None: all."""

    name: str
    normalize: str
    depth: int | None
    shares: tuple[float, ...]
    # Whether a best hit that chance gives counts for less.
    sees_chance: bool = True


SCALES = (
    Scale('over the best', 'max', None, (0.6,)),
    Scale('above the background', 'background', None, (0.4, 0.5, 0.6, 0.7)),
    Scale('without chance', 'background', None, (0.6,), sees_chance=False),
    Scale('min-max', 'minmax', DEPTH, (0.6,)),
    Scale('min-max of 100', 'minmax', 100, (0.6,)),
    Scale('z-scores', 'zscore', DEPTH, (0.6,)),
)


@dataclass(frozen=True)
class Asked:
    """The whole rankings of a collection for its judged topics.

    Attributes
    ----------
    runs : of its two rankings, by their names
    qrels : of the topics
    """

    runs: dict[str, Run]
    qrels: Qrels

    def of_half(self, half: str) -> Asked:
        """The same for the topics of a half, by the checksums of their qids."""
        judged = {}
        for qid, grades in self.qrels.items():
            if HALVES[zlib.crc32(qid.encode()) % 2] == half:
                judged[qid] = grades
        runs = {}
        for name, run in self.runs.items():
            runs[name] = {qid: run[qid] for qid in judged}
        return Asked(runs, judged)

    def value(self, run: Run) -> float:
        """The mean of a run."""
        return evaluate(by_rank(run), self.qrels, parse_measures([MEASURE])).means[MEASURE]

    def background(self) -> str:
        """'.76, .88': the means of the first ranking's background and of its best score."""
        rankings = [ranking for ranking in next(iter(self.runs.values())).values() if ranking]
        background = sum(ranking.background.score for ranking in rankings) / len(rankings)
        best = sum(ranking.scores[0] for ranking in rankings) / len(rankings)
        return f'{background:.2f}, {best:.2f}'


def ask(files: list[str], rankings: list[str], most: int) -> Asked:
    """Search a collection for its judged topics; `files` are it, its topics and its qrels."""
    collection, topics, qrels = files
    judgments = load_qrels(qrels)
    queries = []
    for topic in load_topics(topics):
        if relevant_docids(judgments.get(topic.qid, {})):
            queries.append(topic)
    queries = queries[:most]
    runs = {}
    opened = Collection.open(collection)
    with opened, closing(opened.searcher(rankings=rankings)) as searcher:
        for name, part in zip(rankings, searcher.parts, strict=True):
            runs[name] = part.rank(queries, None, None)
    return Asked(runs, {topic.qid: judgments[topic.qid] for topic in queries})


def first_hits(run: Run, depth: int | None) -> Run:
    """The run, so deep."""
    cut: dict[str, Ranking] = {qid: ranking[:depth] for qid, ranking in run.items()}
    return cut


def without_chance(run: Run) -> Run:
    """The run, without what its best hits score by chance."""
    return {
        qid: ranking.with_background(Background(ranking.background.score))
        for qid, ranking in run.items()
    }


def values_of(asked: Asked) -> dict[str, float]:
    """The mean of each ranking alone, then of each fusion."""
    values = {name: asked.value(run) for name, run in asked.runs.items()}
    for scale in SCALES:
        runs = [first_hits(run, scale.depth) for run in asked.runs.values()]
        if not scale.sees_chance:
            runs = [without_chance(run) for run in runs]
        for share in scale.shares:
            fused = fuse(runs, 'interpolation', HITS, share, normalize=scale.normalize)
            values[f'{scale.name}, {share}'] = asked.value(fused)
    values['rrf'] = asked.value(
        fuse([first_hits(run, DEPTH) for run in asked.runs.values()], 'rrf', HITS)
    )
    return values


def gain_of_default(values: dict[str, float], rankings: list[str]) -> str:
    """'+.012': what the default fusion has above the better ranking."""
    usual = default_fusion(rankings)
    share = max(usual.weights_for(2)) if len(usual.weights) == 2 else 0.5
    better = max(values[name] for name in rankings)
    return f'{values[f"above the background, {share}"] - better:+.3f}'


def table(all_asked: dict[str, Asked], rankings: list[str]) -> str:
    """A row for each collection, by its name, and the means."""
    rows = []
    columns: dict[str, list[float]] = {}
    for name, asked in all_asked.items():
        values = values_of(asked)
        for column, value in values.items():
            columns.setdefault(column, []).append(value)
        cells = [shown(value) for value in values.values()]
        gain = gain_of_default(values, rankings)
        rows.append([f'{name} ({len(asked.qrels)})', asked.background(), *cells, gain])
    means = [shown(sum(values) / len(values)) for values in columns.values()]
    rows.append(['mean', '', *means, ''])
    return markdown(['', 'background, best', *columns, 'default against the better'], rows)


def shown(value: float) -> str:
    """'.523'."""
    return f'{value:.3f}'.removeprefix('0')


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('collections', nargs='+', metavar='NAME=COLLECTION,TOPICS,QRELS')
    parser.add_argument('--most', type=int, default=400, help='questions of a collection')
    parser.add_argument('--rankings', nargs=2, default=['dense', 'bm25'], help='the stronger first')
    options = parser.parse_args()
    asked = {}
    for collection in options.collections:
        name, _, files = collection.partition('=')
        asked[name] = ask(files.split(','), options.rankings, options.most)
    for half in HALVES:
        of_half = {name: found.of_half(half) for name, found in asked.items()}
        print(f'{half} topics:\n\n{table(of_half, options.rankings)}\n', flush=True)


if __name__ == '__main__':
    main()
