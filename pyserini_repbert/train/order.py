"""Whether a training's instances come query by query, as in a file that is sorted by query.

A batch then has few different queries, and where negatives come from the batch, they are of one
query.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass

from pyserini_repbert.errors import InputError
from pyserini_repbert.tasks.recipe import Recipe
from pyserini_repbert.tasks.task import Task
from pyserini_repbert.train.stream import InstanceStream

# Instances that are counted: ten times the shuffle buffer of most recipes.
_COUNTED = 100_000
# Hits that are read for them where sources have runs.
_HITS = 2_000_000
# Pairs of instances of one query are too many from this multiple of chance on, and this number.
_MULTIPLE = 2.0
_FEWEST_PAIRS = 20


@dataclass(frozen=True)
class QueryMixture:
    """How many different queries the first batches have.

    Attributes
    ----------
    batch : instances of a batch
    n_instances : how many were counted
    distinct : mean number of different queries of a batch
    by_chance : its expectation if the same instances came in a random order
    is_grouped : whether instances of one query meet in a batch much more often than by chance
    """

    batch: int
    n_instances: int
    distinct: float
    by_chance: float
    is_grouped: bool

    def __str__(self) -> str:
        return (
            f'the instances of a query come one after the other: {self.distinct:.1f} different '
            f'queries in a batch of {self.batch}, {self.by_chance:.1f} if the first '
            f'{self.n_instances:,} instances were mixed'
        )


def check_order(recipe: Recipe, task: Task, stream: InstanceStream) -> str | None:
    """A line about a stream that is grouped by query; None if it is mixed, or grouped on purpose.

    Candidates that a teacher scores are not counted, since its scores are dear.

    Raises InputError if negatives come from a batch that has few different queries.
    """
    is_uncounted = recipe.teacher is not None or not task.reads_queries
    if recipe.training.order == 'grouped' or is_uncounted:
        return None
    batch = recipe.training.batch_size // task.inputs_per_instance
    mixture = measure_mixture(stream, batch=max(2, batch), limit=_limit(recipe))
    if not mixture.is_grouped:
        return None
    remedy = 'mix the file (shuf), or raise training.shuffle'
    if task.negatives_from_batch:
        raise InputError(
            f'{mixture}, and negatives come from the batch: {remedy}; training.order: grouped '
            'trains on it anyway'
        )
    return f'{mixture}: {remedy}, or set training.order: grouped'


def _limit(recipe: Recipe) -> int:
    """How many instances are counted."""
    depths = [source.depth for source in recipe.data if source.run is not None]
    return min(_COUNTED, _HITS // max(depths, default=1))


def measure_mixture(stream: InstanceStream, batch: int, limit: int) -> QueryMixture:
    """Count the queries of the first batches of a stream.

    Parameters
    ----------
    stream : of a training
    batch : instances of a batch
    limit : instances that are counted at most
    """
    first = itertools.islice(stream.first_epoch(), limit)
    queries = [(instance.source, instance.qid) for instance in first]
    n_batches = len(queries) // batch
    n_distinct = 0
    n_pairs = 0
    for start in range(0, n_batches * batch, batch):
        of_batch = Counter(queries[start : start + batch])
        n_distinct += len(of_batch)
        n_pairs += sum(count * (count - 1) // 2 for count in of_batch.values())
    counts = list(Counter(queries).values())
    expected = n_batches * math.comb(batch, 2) * _share_of_pairs(counts)
    return QueryMixture(
        batch=batch,
        n_instances=len(queries),
        distinct=n_distinct / max(1, n_batches),
        by_chance=expected_distinct(counts, batch),
        is_grouped=n_pairs >= _FEWEST_PAIRS and n_pairs > _MULTIPLE * expected,
    )


def _share_of_pairs(counts: list[int]) -> float:
    """The share of all pairs of instances that are of one query."""
    n_pairs = math.comb(sum(counts), 2)
    return sum(math.comb(count, 2) for count in counts) / max(1, n_pairs)


def expected_distinct(counts: list[int], batch: int) -> float:
    """The expected number of different queries among `batch` instances drawn without replacement.

    `counts` are the instances of each query. A query with c of n instances is missed with
    probability C(n - c, batch) / C(n, batch).
    """
    n_instances = sum(counts)
    if batch > n_instances:
        return float(len(counts))
    total = 0.0
    for count, n_queries in Counter(counts).items():
        others = n_instances - count
        missed = 0.0
        if others >= batch:
            missed = math.exp(_log_comb(others, batch) - _log_comb(n_instances, batch))
        total += n_queries * (1 - missed)
    return total


def _log_comb(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
