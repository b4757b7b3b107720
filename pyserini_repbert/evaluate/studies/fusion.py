"""Fusion on judged topics: every ordered pair of runs (RepBERT Tables 3 and 4), and tuning by
cross-validation.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from statistics import fmean
from typing import Any, NamedTuple

from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation, NamedMeasure, by_rank, evaluate
from pyserini_repbert.evaluate.significance import Comparison, compare
from pyserini_repbert.fusion.fusing import fuse
from pyserini_repbert.fusion.methods import ALPHA, DENSE_ALPHA, RRF_K, FusionMethod, Normalization
from pyserini_repbert.ranking import Run

RRF_KS = (1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0)
ALPHAS = tuple(step / 20 for step in range(1, 20))
# runs of which all subsets and orders are tried; of more, pairs, and all runs with each of them
# leading once
_FEW = 4


def fusion_table(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measures: Sequence[NamedMeasure],
    method: str = FusionMethod.INTERLEAVE,
    k: int | None = 1000,
    **constants: Any,
) -> dict[str, dict[str, dict[str, float]]]:
    """Measure -> row's run -> column's run -> value of the two fused, over all judged topics; a run
    with itself alone.

    `constants` are those of `fuse`; the row's run comes first.
    """
    judged = {name: _of_topics(run, qrels) for name, run in runs.items()}
    table: dict[str, dict[str, dict[str, float]]] = {
        named.name: {row: {} for row in runs} for named in measures
    }
    for row, first in judged.items():
        for column, second in judged.items():
            fused = (
                first if row == column else by_rank(fuse([first, second], method, k, **constants))
            )
            for name, value in evaluate(fused, qrels, measures).means.items():
                table[name][row][column] = value
    return table


@dataclass(frozen=True)
class FusionSetting:
    """One way to fuse; the constants are of the methods that have them."""

    method: str
    order: tuple[str, ...]  # names of the runs; the first one leads
    rrf_k: float = RRF_K
    alpha: float | tuple[float, ...] = ALPHA
    normalize: str = Normalization.NONE

    def __str__(self) -> str:
        weights = self.alpha if isinstance(self.alpha, tuple) else (self.alpha,)
        name = 'weights' if len(weights) > 1 else 'alpha'
        scale = '' if self.normalize == Normalization.NONE else f' {self.normalize}'
        interpolation = f' {name}={" ".join(f"{weight:g}" for weight in weights)}{scale}'
        constant = {
            FusionMethod.RRF: f' k={self.rrf_k:g}',
            FusionMethod.INTERPOLATION: interpolation,
        }
        return f'{self.method} {"+".join(self.order)}{constant.get(FusionMethod(self.method), "")}'

    def fused(self, runs: Mapping[str, Run], qids: Sequence[str], k: int | None) -> Run:
        """The runs' rankings for these topics, fused by this setting."""
        parts = [_of_topics(runs[name], qids) for name in self.order]
        return fuse(parts, self.method, k, self.alpha, self.rrf_k, self.normalize)


class FoldChoice(NamedTuple):
    """The best setting on a fold's training topics: its mean there and over the topics held out,
    whose qids follow.
    """

    setting: FusionSetting
    training: float
    held_out: float
    topics: tuple[str, ...]


class Tuned(NamedTuple):
    """The result of a cross-validation: each topic has the setting of the fold that held it out."""

    folds: tuple[FoldChoice, ...]
    held_out: float  # mean over all topics
    against: dict[
        str, Comparison
    ]  # the held-out values with those of runs alone and of untuned fusion, best first
    # the best on all topics, for use on others; its value on these is no estimate
    whole: FusionSetting
    run: Run


def settings(
    names: Sequence[str], methods: Sequence[str] = tuple(FusionMethod)
) -> Iterator[FusionSetting]:
    """The settings to try, for every subset of the runs; interpolation of more than two is of
    normalised scores.
    """
    sizes = range(2, len(names) + 1) if len(names) <= _FEW else (2, len(names))
    for subset in (subset for size in sizes for subset in combinations(names, size)):
        if FusionMethod.INTERLEAVE in methods:
            led = [(name, *(other for other in subset if other != name)) for name in subset]
            orders = permutations(subset) if len(subset) <= _FEW else led
            yield from (FusionSetting(FusionMethod.INTERLEAVE, order) for order in orders)
        if FusionMethod.RRF in methods:
            yield from (FusionSetting(FusionMethod.RRF, subset, rrf_k=k) for k in RRF_KS)
        if FusionMethod.INTERPOLATION in methods:
            scales = tuple(Normalization)[:2] if len(subset) == 2 else (Normalization.MINMAX,)
            alphas: Iterable[Any] = ALPHAS if len(subset) == 2 else _weights(len(subset))
            for scale, alpha in product(scales, alphas):
                yield FusionSetting(
                    FusionMethod.INTERPOLATION, subset, alpha=alpha, normalize=scale
                )


def untuned_settings(names: Sequence[str]) -> list[FusionSetting]:
    """The ways to fuse all runs, the dense one first, that need no judgments; the default is first.

    Interleaving led by the dense run and by the sparse ones, reciprocal ranks, and interpolation
    with even weights and with `DENSE_ALPHA`, under each normalisation.
    """
    dense, *sparse = names
    order = (dense, *sparse)
    chosen = [
        FusionSetting(FusionMethod.INTERLEAVE, order),
        FusionSetting(FusionMethod.INTERLEAVE, (*sparse, dense)),
        FusionSetting(FusionMethod.RRF, order),
    ]
    even = 1 / len(order)
    for share in (even, DENSE_ALPHA):
        rest = (1 - share) / len(sparse)
        alpha = share if len(sparse) == 1 else (share, *[rest] * len(sparse))
        for scale in Normalization:
            chosen.append(
                FusionSetting(FusionMethod.INTERPOLATION, order, alpha=alpha, normalize=scale)
            )
    return chosen


def _weights(n_runs: int) -> Iterator[tuple[float, ...]]:
    """Weights above 0 that sum to 1: even ones first, then, for up to four runs, multiples of
    1/6.
    """
    yield (1 / n_runs,) * n_runs
    for parts in product(range(1, 7), repeat=n_runs) if n_runs <= _FEW else ():
        if sum(parts) == 6 and len(set(parts)) > 1:
            yield tuple(part / 6 for part in parts)


def tune_fusion(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measure: NamedMeasure,
    folds: int = 5,
    seed: int = 0,
    methods: Sequence[str] = tuple(FusionMethod),
    k: int | None = 1000,
    on_progress: Callable[[int], object] = int,
) -> Tuned:
    """Choose a setting on the training topics of each fold, and report its values on those held
    out.

    `runs` are two or more. The judged topics are shuffled by `seed`. The mean of `measure` is
    maximised; of settings with equal means, the first of `settings` is chosen. `on_progress` is
    called with 1 after each of them.
    """
    names = list(runs)
    topics = list(qrels)
    if len(names) < 2 or not 2 <= folds <= len(topics):
        raise InputError(
            f'{len(names)} runs and {folds} folds of {len(topics)} judged topics were given: '
            f'expected two or more '
            'runs, and 2 folds to as many as there are topics'
        )
    tried: dict[FusionSetting, Evaluation] = {}
    for setting in settings(names, methods):
        tried[setting] = evaluate(by_rank(setting.fused(runs, topics, k)), qrels, [measure])
        on_progress(1)
    shuffled = random.Random(seed).sample(topics, len(topics))
    choices: list[FoldChoice] = []
    values: dict[str, float] = {}
    run: Run = {}
    for number in range(folds):
        held = shuffled[number::folds]
        others = [qid for qid in topics if qid not in set(held)]
        best = _best(tried, others)
        choices.append(
            FoldChoice(best, _mean(tried[best], others), _mean(tried[best], held), tuple(held))
        )
        values |= {qid: tried[best].values[measure.name][qid] for qid in held}
        run |= best.fused(runs, held, k)
    tuned = Evaluation({measure.name: values}, {measure.name: fmean(values.values())}, ())
    untuned = {
        FusionSetting(one.method, tuple(name for name in names if name in one.order))
        for one in tried
    }
    rivals = {
        f'{setting} (untuned)': values for setting, values in tried.items() if setting in untuned
    }
    rivals |= {
        name: evaluate(by_rank(_of_topics(runs[name], topics)), qrels, [measure]) for name in names
    }
    against = {name: compare(rival, tuned)[0] for name, rival in rivals.items()}
    best_first = dict(sorted(against.items(), key=lambda item: -item[1].baseline))
    return Tuned(
        tuple(choices),
        tuned.means[measure.name],
        best_first,
        _best(tried, topics),
        _of_topics(run, topics),
    )


def _of_topics(run: Run, qids: Iterable[str]) -> Run:
    return {qid: run[qid] for qid in qids if qid in run}


def _mean(evaluation: Evaluation, topics: Sequence[str]) -> float:
    (values,) = evaluation.values.values()
    return fmean(values[qid] for qid in topics)


def _best(tried: Mapping[FusionSetting, Evaluation], topics: Sequence[str]) -> FusionSetting:
    return max(tried, key=lambda setting: _mean(tried[setting], topics))  # the first of equal ones
