"""Which question and which document to judge next: the table of `docs/guides/adapting.md`.

    python regressions/studies/judging_order.py NAME=DENSE,LUCENE,TOPICS,QRELS …

The arguments are those of `fusion_default.py`. A person judges question by question; each
document's grade comes from the collection's own judgments. What is learned is which of two rankings
is better: the table has the share of pairs of rankings whose difference in nDCG@10 has the sign
that it has with all judgments. A difference of 0 counts half.

A simulation draws half of the questions. Orders of questions:

- random
- disagreement: those first on whose best 10 documents the rankings agree least, by the sum of
  the documents' weights

Orders of a question's documents, its pool being the best 10 of all rankings:

- random
- rank: by the best rank that a ranking gives them
- weight: by the greatest difference that a document's relevance makes between two rankings, the
  difference of its discounts in DCG. Carterette, Allan and Sitaraman, Minimal test collections for
  retrieval evaluation, SIGIR 2006, choose documents this way for average precision.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from fusion_default import DEFAULT, Runs, fusions, search
from numpy.typing import NDArray

from pyserini_repbert.evaluate.tables import markdown

CUTOFF = 10
CHECKPOINTS = (5, 10, 20, 50, 100, 200)
RANKINGS = ('BM25', 'dense', DEFAULT, 'rrf', 'interleave')
QUESTION_ORDERS = ('random', 'disagreement')
DOCUMENT_ORDERS = ('random', 'rank', 'weight')
# The best 10 of five rankings are some 15 to 25 documents.
WHOLE_POOL = 10 * len(RANKINGS)
LIMITS = (5, 10, WHOLE_POOL)


@dataclass(frozen=True)
class Pool:
    """A question's documents that can be judged.

    Attributes
    ----------
    discounts : of each document in the DCG of each ranking, 0 below the cutoff: (rankings, n)
    grades : those of the collection's judgments, 0 where a document has none: (n,)
    """

    discounts: NDArray[np.float64]
    grades: NDArray[np.float64]

    @property
    def weights(self) -> NDArray[np.float64]:
        """The greatest difference that each document makes between two rankings, (n,)."""
        return self.discounts.max(axis=0) - self.discounts.min(axis=0)

    def ndcg(self, judged: NDArray[np.int64]) -> NDArray[np.float64]:
        """nDCG@10 of each ranking if only these documents are judged, (rankings,)."""
        grades = self.grades[judged]
        ideal = np.sort(grades)[::-1][:CUTOFF]
        best = float(ideal @ (1 / np.log2(np.arange(len(ideal)) + 2)))
        if best == 0:
            return np.zeros(len(self.discounts))
        return self.discounts[:, judged] @ grades / best

    def order(self, name: str, random: np.random.Generator) -> NDArray[np.int64]:
        """The documents in the order in which they are judged; ties at random."""
        shuffled = random.permutation(len(self.grades))
        if name == 'random':
            return shuffled
        keys = self.weights if name == 'weight' else self.discounts.max(axis=0)
        return shuffled[np.argsort(-keys[shuffled], kind='stable')]


def read_pools(runs: Runs) -> list[Pool]:
    """The pools of the judged questions."""
    named = fusions(runs)
    rankings = [named[name] for name in RANKINGS]
    pools = []
    for qid, grades in runs.qrels.items():
        columns: dict[str, int] = {}
        best = [run[qid].docids[:CUTOFF] if qid in run else () for run in rankings]
        for docids in best:
            for docid in docids:
                columns.setdefault(docid, len(columns))
        discounts = np.zeros((len(rankings), len(columns)))
        for row, docids in enumerate(best):
            for rank, docid in enumerate(docids):
                discounts[row, columns[docid]] = 1 / np.log2(rank + 2)
        known = [max(0, grades.get(docid, 0)) for docid in columns]
        pools.append(Pool(discounts, np.array(known, np.float64)))
    return pools


def true_means(pools: Sequence[Pool]) -> NDArray[np.float64]:
    """The mean nDCG@10 of each ranking with all judgments of the pools."""
    return np.mean([pool.ndcg(np.arange(len(pool.grades))) for pool in pools], axis=0)


def share_right(sums: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """The share of pairs of rankings whose difference has its true sign; 0 counts half."""
    points = []
    for first, second in combinations(range(len(truth)), 2):
        product = (sums[first] - sums[second]) * (truth[first] - truth[second])
        points.append((np.sign(product) + 1) / 2)
    return float(np.mean(points))


def order_questions(
    pools: Sequence[Pool], name: str, random: np.random.Generator
) -> Iterator[Pool]:
    """Half of the questions, in the order in which they are judged."""
    drawn = random.permutation(len(pools))[: (len(pools) + 1) // 2]
    if name == 'disagreement':
        disagreements = np.array([pools[number].weights.sum() for number in drawn])
        drawn = drawn[np.argsort(-disagreements, kind='stable')]
    for number in drawn:
        yield pools[number]


@dataclass(frozen=True)
class Way:
    """A way of judging.

    Attributes
    ----------
    questions, documents : names of their orders
    limit : how many documents of a question are judged
    """

    questions: str
    documents: str
    limit: int


def simulate(pools: Sequence[Pool], way: Way, seed: int) -> list[float]:
    """The share of right comparisons after each checkpoint's judgments; the last one goes on."""
    random = np.random.default_rng(seed)
    truth = true_means(pools)
    sums = np.zeros(len(RANKINGS))
    n_judged = 0
    shares: list[float] = []
    for pool in order_questions(pools, way.questions, random):
        order = pool.order(way.documents, random)[: way.limit]
        for checkpoint in CHECKPOINTS[len(shares) :]:
            if checkpoint > n_judged + len(order):
                break
            shares.append(share_right(sums + pool.ndcg(order[: checkpoint - n_judged]), truth))
        sums += pool.ndcg(order)
        n_judged += len(order)
    shares += [share_right(sums, truth)] * (len(CHECKPOINTS) - len(shares))
    return shares


def table(pools: Sequence[Pool], seeds: int) -> str:
    """The share of right comparisons of each way, the mean over seeds."""
    header = ['questions', 'documents', 'of each', *[f'{count}' for count in CHECKPOINTS]]
    rows = []
    for limit in LIMITS:
        for questions in QUESTION_ORDERS:
            for documents in DOCUMENT_ORDERS:
                way = Way(questions, documents, limit)
                shares = np.mean([simulate(pools, way, seed) for seed in range(seeds)], axis=0)
                label = 'all' if limit == WHOLE_POOL else f'{limit}'
                cells = [f'{100 * share:.0f}%' for share in shares]
                rows.append([questions, documents, label, *cells])
    return markdown(header, rows, is_padded=False)


def main() -> None:
    """Print a table for each collection."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('collections', nargs='+', metavar='NAME=DENSE,LUCENE,TOPICS,QRELS')
    parser.add_argument('--seeds', type=int, default=200)
    options = parser.parse_args()
    for argument in options.collections:
        name, _, files = argument.partition('=')
        pools = read_pools(search(*files.split(',')))
        truth = true_means(pools)
        means = ', '.join(
            f'{ranking} {mean:.3f}' for ranking, mean in zip(RANKINGS, truth, strict=True)
        )
        size = np.mean([len(pool.grades) for pool in pools])
        print(f'\n{name}: {len(pools)} questions, {size:.0f} documents in a pool; {means}\n')
        print(table(pools, options.seeds))


if __name__ == '__main__':
    main()
