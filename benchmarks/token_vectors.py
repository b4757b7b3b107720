"""What a late-interaction model adds to a collection, and what approximate search of its token
vectors misses.

    python benchmarks/token_vectors.py --model MODEL --data FOLDER --work FOLDER
        [--encoder repbert-demo] [--collections demo CACM …] [--precision float32] [--ann 10 100]

The collections are `confidence.py`'s, with all their questions, or 200 of MedQuAD's pages.
They stay in the work folder: said again with another model, dense vectors are not encoded again.

The first table has nDCG@10 of each ranking and fusion, and the difference from the dense ranking
and from its fusion with BM25, with the p of a paired t-test over questions. With `--ann`, the
second one has for each depth what `index ann --ranking multi` reports, the share of exact search's
hits that are found for the collection's questions, and the processor time of a question.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from confidence import MOST_TOPICS, SEED, SOURCES

from pyserini_repbert.collection import Collection
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import Evaluation, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.extensions.approximate import AnnSettings, build_ann
from pyserini_repbert.ranking import Query, Run

MEASURE = 'nDCG@10'
DEPTH = 100
RANKINGS = {
    'dense': ['dense'],
    'BM25': ['bm25'],
    'dense, BM25': ['dense', 'bm25'],
    'rescored': ['rescored'],
    'multi': ['multi'],
    'dense, BM25, multi': ['dense', 'bm25', 'multi'],
}
BASELINES = ('dense', 'dense, BM25')


@dataclass(frozen=True)
class JudgedCollection:
    """A collection with token vectors, and its judged questions."""

    name: str
    collection: Collection
    topics: Sequence[Query]
    qrels: Qrels

    def search(self, rankings: Sequence[str], k: int, ann: bool = False) -> tuple[Run, float]:
        """The run of rankings, and the processor seconds of a question."""
        with contextlib.closing(self.collection.searcher(rankings=rankings, ann=ann)) as searcher:
            searcher.search('warm', 1)
            begun = time.process_time()
            run = searcher.rank(self.topics, None, k)
            return run, (time.process_time() - begun) / len(self.topics)


def open_collections(options: argparse.Namespace) -> Iterator[JudgedCollection]:
    """The collections that are asked for and there, encoded by both models."""
    for name in options.collections:
        source = SOURCES[name]
        if not (options.data / source.folder).exists():
            print(f'!!!! {name} is left out: {options.data / source.folder} is missing')
            continue
        judged = source.read(options.data)
        topics = [topic for topic in judged.topics if topic.qid in judged.qrels]
        if name == 'MedQuAD-pages':
            topics = random.Random(SEED).sample(topics, min(MOST_TOPICS, len(topics)))
        opened = Collection.open(
            options.work / f'{options.encoder}-{name}',
            encoder=options.encoder,
            multi_vector=options.model,
            precision=options.precision,
        )
        with opened as collection:
            collection.sync(judged.documents, rebuild=True)
            yield JudgedCollection(name, collection, topics, judged.qrels)


def quality(judged: JudgedCollection) -> list[list[str]]:
    """The rows of a collection: ranking, nDCG@10, differences from the baselines."""
    measures = parse_measures([MEASURE])
    evaluations = {}
    for name, rankings in RANKINGS.items():
        run, _ = judged.search(rankings, DEPTH)
        evaluations[name] = evaluate(run, judged.qrels, measures)
    rows = []
    for name, evaluation in evaluations.items():
        cells = [difference(evaluation, evaluations[baseline]) for baseline in BASELINES]
        rows.append([judged.name, name, f'{evaluation.means[MEASURE]:.4f}', *cells])
    return rows


def difference(evaluation: Evaluation, baseline: Evaluation) -> str:
    """'+0.0228, p 0.12': of the means, and the two-sided p of a paired t-test over questions."""
    if evaluation is baseline:
        return ''
    (comparison,) = compare(baseline, evaluation)
    return f'{comparison.difference:+.4f}, p {comparison.p:.2g}'


def approximation(judged: JudgedCollection, hits: int) -> list[str]:
    """The row of a depth: what was built, the share that is found, and the time of a question."""
    begun = time.process_time()
    settings = AnnSettings(hits=hits)
    record = build_ann(judged.collection.folder, settings, ranking='multi', overwrite=True)
    built = time.process_time() - begun
    exact, exact_seconds = judged.search(['multi'], hits)
    found, seconds = judged.search(['multi'], hits, ann=True)
    shares = []
    for qid, ranking in exact.items():
        common = set(ranking.docids) & set(found[qid].docids)
        shares.append(len(common) / max(1, len(ranking)))
    return [
        judged.name,
        str(record),
        f'{built:.0f}',
        f'{fmean(shares):.4f}',
        f'{1000 * exact_seconds:.1f}',
        f'{1000 * seconds:.1f}',
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--model', required=True, help='a multi-vector model')
    parser.add_argument('--data', type=Path, required=True)
    parser.add_argument('--work', type=Path, required=True)
    parser.add_argument('--encoder', default='repbert-demo')
    parser.add_argument('--precision', default='float32')
    parser.add_argument('--collections', nargs='+', default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument('--ann', nargs='+', type=int, default=[], metavar='HITS')
    options = parser.parse_args()
    rows = []
    anns = []
    for judged in open_collections(options):
        manifest = judged.collection.generation.manifest
        print(
            f'{judged.name}: {manifest.documents} documents, {manifest.passages} passages, '
            f'{len(judged.topics)} questions',
            flush=True,
        )
        rows += quality(judged)
        anns += [approximation(judged, hits) for hits in options.ann]
    print(markdown(['collection', 'ranking', MEASURE, *BASELINES], rows, is_padded=False))
    if anns:
        header = ['collection', 'index', 'built, s', 'found', 'exact, ms', 'approximate, ms']
        print(markdown(header, anns, is_padded=False))


if __name__ == '__main__':
    main()
