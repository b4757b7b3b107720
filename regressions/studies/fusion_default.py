"""Is 0.6 after min-max a good default of collections? The last table of `docs/guides/documents.md`.

    python regressions/studies/fusion_default.py NAME=DENSE,LUCENE,TOPICS,QRELS …

DENSE is an index of vectors, LUCENE one of Lucene's, both of the same passages. Nothing is chosen
by this table: it says what the default gives, and what others would have given.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import Evaluation, by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.fusion import fuse
from pyserini_repbert.lucene import LuceneSparseSearcher
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.ranking import Run
from pyserini_repbert.search import DenseSearcher

DEPTH = 1000
MEASURE = 'nDCG@10'
DEFAULT = 'minmax, dense 0.6'
SHARES = (0.5, 0.6, 0.7, 0.8)


@dataclass(frozen=True)
class Runs:
    """The rankings of one collection, and its judgments."""

    dense: Run
    bm25: Run
    qrels: Qrels


def search(dense: str, lucene: str, topics: str, qrels: str) -> Runs:
    """Both rankings of the topics."""
    queries = load_topics(topics)
    dense_run = DenseSearcher(dense).rank(queries, None, DEPTH)
    bm25_run = LuceneSparseSearcher(lucene).rank(queries, None, DEPTH)
    return Runs(dense_run, bm25_run, load_qrels(qrels))


def fusions(runs: Runs) -> dict[str, Run]:
    """The rankings and their fusions, by name."""
    both = [runs.dense, runs.bm25]
    named = {'BM25': runs.bm25, 'dense': runs.dense}
    for scale in ('minmax', 'zscore'):
        for share in SHARES:
            name = f'{scale}, dense {share}'
            named[name] = fuse(both, 'interpolation', DEPTH, share, normalize=scale)
    named['rrf'] = fuse(both, 'rrf', DEPTH)
    named['interleave'] = fuse(both, 'interleave', DEPTH)
    return named


def evaluate_all(runs: Runs) -> dict[str, Evaluation]:
    """The values of all fusions, by name."""
    measures = parse_measures([MEASURE])
    evaluations = {}
    for name, run in fusions(runs).items():
        evaluations[name] = evaluate(by_rank(run), runs.qrels, measures)
    return evaluations


def cell(evaluation: Evaluation, baseline: Evaluation) -> str:
    """'.5647 (p 0.03)': the mean, and the p of its difference from the default."""
    mean = f'{evaluation.means[MEASURE]:.4f}'.removeprefix('0')
    if evaluation is baseline:
        return f'**{mean}**'
    (comparison,) = compare(baseline, evaluation)
    return f'{mean} ({comparison.difference:+.3f}, p {comparison.p:.1g})'


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('collections', nargs='+', metavar='NAME=DENSE,LUCENE,TOPICS,QRELS')
    evaluations = {}
    for collection in parser.parse_args().collections:
        name, _, files = collection.partition('=')
        evaluations[name] = evaluate_all(search(*files.split(',')))
    names = next(iter(evaluations.values()))
    rows = []
    for fusion in names:
        cells = [cell(found[fusion], found[DEFAULT]) for found in evaluations.values()]
        rows.append([fusion, *cells])
    print(markdown([MEASURE, *evaluations], rows, is_padded=False))


if __name__ == '__main__':
    main()
