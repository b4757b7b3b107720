"""Quality against cost while k0, k1, the aggregation and m vary (Multi-Stage section 5, Figures 2 to 4).

Everything is replayed from the scores that one deep reranking saved: no model runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.runs import reciprocal_scores
from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.rerank.aggregation import aggregate_differences
from pyserini_repbert.rerank.duobert import sample_seed
from pyserini_repbert.rerank.saved_scores import SavedScores, submatrix

Order = NDArray[np.int64]


@dataclass(frozen=True)
class Setting:
    """One way to run the pipeline of monoBERT and duoBERT.

    Attributes
    ----------
    k0, k1 : candidates of monoBERT, and of duoBERT; k1 = 0 leaves duoBERT out
    method : the aggregation
    samples : m of 'sample'; None for the other methods
    """

    k0: int
    k1: int = 0
    method: str = 'sum'
    samples: int | None = None

    @property
    def inferences(self) -> int:
        """Model inputs a query: k0 + k1(k1 - 1) (Multi-Stage Figure 4), k0 + k1 m with 'sample'.

        The paper's Figure 3 counts k1(m - 1) for 'sample', but eq. 7 draws m competitors, each of which is an input.
        """
        return self.inferences_of(self.k0)

    def inferences_of(self, n: int) -> int:
        """Model inputs for a query with `n` candidates."""
        return min(self.k0, n) + self.compared(n)

    def compared(self, n: int) -> int:
        """duoBERT's inputs for a query with `n` candidates."""
        head = min(self.k1, n)
        return head * max(0, head - 1 if self.samples is None else min(self.samples, head - 1))

    @property
    def series(self) -> str:
        """The name of the curve that the setting belongs to."""
        if not self.k1:
            return 'monoBERT'
        return self.method if self.samples is None else f'sample, m={self.samples}'

    def __str__(self) -> str:
        return f'k0={self.k0}' + (f' k1={self.k1} {self.series}' if self.k1 else '')


@dataclass(frozen=True)
class Point:
    """A setting with its cost and its quality.

    Attributes
    ----------
    inferences : model inputs a query, the mean over the queries, whose lists may be shorter than k0
    seconds : that the inferences of a query take, from the measured seconds an inference of each stage; None if unknown
    values : measure -> value over all judged topics, for 'sample' the mean over trials
    """

    setting: Setting
    inferences: float
    seconds: float | None
    values: Mapping[str, float]

    def cost(self, unit: str) -> float:
        """Its 'inferences' or 'seconds', whichever `unit` names. Raises InputError if the seconds are unknown."""
        found = self.inferences if unit == 'inferences' else self.seconds
        if found is None:
            raise InputError('how long an inference takes was not saved: give the budget in inferences')
        return found


def settings(
    k0s: Iterable[int], k1s: Iterable[int], methods: Sequence[str], samples: Sequence[int] = ()
) -> list[Setting]:
    """All settings with k1 = 0, or k1 from 2 to k0 and each method; 'sample' with every m below k1 - 1."""
    found = []
    depths = sorted(set(k1s))
    for k0 in sorted(set(k0s)):
        for k1 in depths:
            if k1 == 0:
                found.append(Setting(k0))
            elif 1 < k1 <= k0:
                found += [Setting(k0, k1, method) for method in methods if method != 'sample']
                found += [Setting(k0, k1, 'sample', m) for m in samples if 'sample' in methods and m < k1 - 1]
    return found


class Replay:
    """Replays settings for one query; as `rerank.saved_scores.replay`, but in arrays."""

    def __init__(self, saved: SavedScores) -> None:
        self.saved = saved

    def order(self, setting: Setting, seed: int = 0) -> Order | None:
        """Positions of the candidates, int64 (n,), best first; None if a score or pair that it needs was not saved."""
        saved, n = self.saved, len(self.saved.docids)
        if min(setting.k0, n) > len(saved.scores):
            return None
        scores = saved.scores[: setting.k0]
        order = np.concatenate([np.argsort(-scores, kind='stable'), np.arange(len(scores), n)])
        head = order[: setting.k1]
        if len(head) < 2:
            return order
        if not np.isin(head, saved.members).all():
            return None
        differences = submatrix(saved, head)
        if np.isnan(differences[~np.eye(len(head), dtype=bool)]).any():
            return None
        new = aggregate_differences(differences, setting.method, setting.samples, sample_seed(seed, saved.query))
        return np.concatenate([head[np.argsort(-new, kind='stable')], order[setting.k1 :]])


def trade_off(
    saved: Sequence[SavedScores],
    qrels: Qrels,
    chosen: Sequence[Setting],
    measures: Sequence[NamedMeasure],
    rates: Sequence[float] = (),
    trials: int = 10,
    hits: int = 1000,
    on_progress: Callable[[int], object] | None = None,
) -> tuple[list[Point], list[Setting]]:
    """Points for the settings, and the settings for which pairs or scores are missing.

    Parameters
    ----------
    saved : the scores of all queries
    rates : seconds an inference of monoBERT, and of duoBERT; () if unknown
    trials : drawings of 'sample' that are averaged (10 in Multi-Stage section 5.2)
    hits : how many hits of each query are evaluated
    on_progress : called with 1 after each setting
    """
    queries = [Replay(own) for own in saved]
    points, missing = [], []
    for setting in chosen:
        values: list[Mapping[str, float]] = []
        for seed in range(trials if setting.samples is not None else 1):
            orders = [query.order(setting, seed) for query in queries]
            run: dict[str, Ranking] = {}
            for query, order in zip(queries, orders, strict=True):
                if order is None:
                    break
                docids = [query.saved.docids[position] for position in order[:hits].tolist()]
                run[query.saved.qid] = Ranking(docids, reciprocal_scores(len(docids)))
            if len(run) < len(queries):
                missing.append(setting)
                break
            values.append(evaluate(run, qrels, measures).means)
        else:
            means = {named.name: float(np.mean([value[named.name] for value in values])) for named in measures}
            points.append(_point(setting, [len(own.docids) for own in saved], means, rates))
        if on_progress is not None:
            on_progress(1)
    return points, missing


def _point(setting: Setting, lengths: Sequence[int], values: Mapping[str, float], rates: Sequence[float]) -> Point:
    inferences = float(np.mean([setting.inferences_of(n) for n in lengths]))
    compared = float(np.mean([setting.compared(n) for n in lengths]))
    if not rates or (compared and len(rates) < 2):
        return Point(setting, inferences, None, values)
    return Point(setting, inferences, (inferences - compared) * rates[0] + compared * rates[-1], values)


def seconds_an_inference(about: Mapping[str, Any]) -> list[float]:
    """Seconds an inference of each stage that made any, from the costs saved with the scores."""
    return [cost['seconds'] / cost['inferences'] for cost in about.get('costs', []) if cost['inferences']]


def pareto_front(points: Sequence[Point], measure: str, unit: str = 'inferences') -> list[Point]:
    """The points that are better than all that cost as much or less, cheapest first."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (point.cost(unit), -point.values[measure])):
        if not front or point.values[measure] > front[-1].values[measure]:
            front.append(point)
    return front


def best_within(points: Sequence[Point], measure: str, budget: float, unit: str = 'inferences') -> Point:
    """The best point that costs at most `budget`. Raises InputError where there is none."""
    affordable = [point for point in pareto_front(points, measure, unit) if point.cost(unit) <= budget]
    if not affordable:
        least = min(point.cost(unit) for point in points)
        raise InputError(f'a budget of {budget:g} {unit} a query was given, the cheapest setting takes {least:.3g}')
    return affordable[-1]
