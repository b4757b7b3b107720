"""Fusion on judged topics.

Every ordered pair of runs (RepBERT Tables 3 and 4), and tuning by cross-validation.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from statistics import fmean
from typing import Any, NamedTuple

from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation, NamedMeasure, by_rank, evaluate
from pyserini_repbert.evaluate.significance import Comparison, compare
from pyserini_repbert.fusion.fusing import fuse_runs
from pyserini_repbert.fusion.methods import ALPHA, DENSE_ALPHA, FusionMethod, Normalization
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.ranking import Run

RRF_KS = (1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0)
ALPHAS = tuple(step / 20 for step in range(1, 20))
# The most runs for which all subsets and orders are tried. With more, pairs are tried, and all runs
# with each of them leading once.
_FEW = 4
# Tried without judgments. `MAX`, a collection's own way, is tried where that is searched.
_UNTUNED_SCALES = (Normalization.NONE, Normalization.MINMAX, Normalization.ZSCORE)


def evaluate_fusions(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measures: Sequence[NamedMeasure],
    settings: FusionSettings | None = None,
    k: int | None = 1000,
) -> dict[str, dict[str, Evaluation]]:
    """Row's run -> column's run -> the two fused, evaluated over all judged topics.

    A run fused with itself is the run.

    Parameters
    ----------
    runs : by name; the row's run comes first
    qrels, measures : how fused runs are scored
    settings : how; default: interleaved
    k : hits of each topic that are kept; None keeps all
    """
    how = settings or FusionSettings()
    judged = {name: _of_topics(run, qrels) for name, run in runs.items()}
    evaluations: dict[str, dict[str, Evaluation]] = {row: {} for row in runs}
    for row, first in judged.items():
        for column, second in judged.items():
            run = first
            if row != column:
                run = by_rank(fuse_runs([first, second], how, k))
            evaluations[row][column] = evaluate(run, qrels, measures)
    return evaluations


@dataclass(frozen=True)
class RunFusion:
    """One way to fuse named runs; one run alone is itself.

    Attributes
    ----------
    order : names of the runs; the first one leads
    settings : how they are fused
    """

    order: tuple[str, ...]
    settings: FusionSettings

    def __str__(self) -> str:
        if len(self.order) == 1:
            return self.order[0]
        method = self.settings.method
        text = f'{method} {"+".join(self.order)}'
        if method is FusionMethod.RRF:
            text += f' k={self.settings.rrf_k:g}'
        if method is FusionMethod.INTERPOLATION:
            text += f' {self._weights_text()}'
            if self.settings.normalize is not Normalization.NONE:
                text += f' {self.settings.normalize}'
        return text

    def _weights_text(self) -> str:
        weights = self.settings.weights_for(len(self.order))
        if len(weights) == 2:
            return f'alpha={weights[0]:g}'
        return 'weights=' + ' '.join(f'{weight:g}' for weight in weights)

    def fused(self, runs: Mapping[str, Run], qids: Sequence[str], k: int | None) -> Run:
        """The runs' rankings for these topics, fused by this setting."""
        parts = [_of_topics(runs[name], qids) for name in self.order]
        return fuse_runs(parts, self.settings, k)


class FoldChoice(NamedTuple):
    """A fold's best setting, with its training and held-out means.

    Attributes
    ----------
    setting : the best on the fold's training topics
    training, held_out : its means there, and over the held-out topics
    topics : the qids held out
    """

    setting: RunFusion
    training: float
    held_out: float
    topics: tuple[str, ...]


class Tuned(NamedTuple):
    """The result of a cross-validation: each topic has the setting of the fold that held it out.

    Attributes
    ----------
    held_out : mean over all topics
    against : the held-out values, and the values of runs alone and of untuned fusion, best first
    whole : the best setting on all topics, for use on others; its value on these is not an estimate
    run : of all topics, each fused by the setting of its fold
    """

    folds: tuple[FoldChoice, ...]
    held_out: float
    against: dict[str, Comparison]
    whole: RunFusion
    run: Run


def settings(
    names: Sequence[str], methods: Sequence[str] = tuple(FusionMethod)
) -> Iterator[RunFusion]:
    """The settings to try, for every subset of the runs.

    Interpolation of more than two runs is of normalised scores.
    """
    chosen = [FusionMethod(method) for method in methods]
    for subset in _subsets(names):
        for method in FusionMethod:
            if method in chosen:
                yield from _settings_of(method, subset)


def _settings_of(method: FusionMethod, subset: tuple[str, ...]) -> Iterator[RunFusion]:
    """The settings of one method to try for some of the runs; only its own, if none is known."""
    if method is FusionMethod.INTERLEAVE:
        for order in _orders(subset):
            yield RunFusion(order, FusionSettings())
    elif method is FusionMethod.RRF:
        for k in RRF_KS:
            yield RunFusion(subset, FusionSettings(method, rrf_k=k))
    elif method is FusionMethod.INTERPOLATION:
        yield from _interpolations(subset)
    else:
        yield RunFusion(subset, FusionSettings(method))


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All subsets of two or more of a few runs; of more runs, the pairs and all."""
    sizes: Iterable[int] = (2, len(names))
    if len(names) <= _FEW:
        sizes = range(2, len(names) + 1)
    for size in sizes:
        yield from combinations(names, size)


def _orders(subset: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """All orders of a few runs; of more runs, one in which each leads."""
    if len(subset) <= _FEW:
        yield from permutations(subset)
        return
    for leader in subset:
        yield (leader, *(name for name in subset if name != leader))


def _interpolations(subset: tuple[str, ...]) -> Iterator[RunFusion]:
    scales: Sequence[Normalization] = (Normalization.MINMAX,)
    alphas: Iterable[Any] = _weights(len(subset))
    if len(subset) == 2:
        scales = (Normalization.NONE, Normalization.MINMAX)
        alphas = ALPHAS
    for scale, alpha in product(scales, alphas):
        yield RunFusion(subset, _interpolation(alpha, scale))


def _interpolation(
    alpha: float | Sequence[float], scale: Normalization = Normalization.NONE
) -> FusionSettings:
    return FusionSettings(FusionMethod.INTERPOLATION, normalize=scale).changed(alpha)


def untuned_settings(names: Sequence[str]) -> list[RunFusion]:
    """The ways to fuse all runs, the dense one first, that need no judgments; the default is first.

    Interleaving led by the dense run and by the sparse ones, reciprocal ranks, and interpolation
    with even weights and with `DENSE_ALPHA`, under each normalisation of `_UNTUNED_SCALES`.
    """
    dense, *sparse = names
    order = (dense, *sparse)
    chosen = [
        RunFusion(order, FusionSettings()),
        RunFusion((*sparse, dense), FusionSettings()),
        RunFusion(order, FusionSettings(FusionMethod.RRF)),
    ]
    for share in (1 / len(order), DENSE_ALPHA):
        alpha = _dense_share(share, len(sparse))
        for scale in _UNTUNED_SCALES:
            chosen.append(RunFusion(order, _interpolation(alpha, scale)))
    return chosen


def _dense_share(share: float, n_sparse: int) -> float | tuple[float, ...]:
    """The weight of a dense run.

    If there are several sparse runs, also their weights, which are equal.
    """
    if n_sparse == 1:
        return share
    rest = (1 - share) / n_sparse
    return (share, *[rest] * n_sparse)


def _weights(n_runs: int) -> Iterator[tuple[float, ...]]:
    """Weights above 0 that sum to 1: even ones first, then multiples of 1/6.

    For more than four runs, only equal weights are tried.
    """
    yield (1 / n_runs,) * n_runs
    if n_runs > _FEW:
        return
    for parts in product(range(1, 7), repeat=n_runs):
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
    """Choose a setting on each fold's training topics, and report its values on those held out.

    Parameters
    ----------
    runs : two or more, by name
    qrels : the judged topics
    measure : whose mean is maximised; of settings with equal means, the first of `settings` is
        chosen
    folds, seed : into how many folds topics are dealt, after a shuffle by the seed
    methods : the methods to try
    k : hits of each topic that are fused
    on_progress : called with 1 after each setting

    Raises InputError for fewer than two runs, and for fewer than 2 folds or more folds than topics.
    """
    chosen = [FusionMethod(method) for method in methods]
    names = list(runs)
    topics = list(qrels)
    if len(names) < 2 or not 2 <= folds <= len(topics):
        raise InputError(
            f'{len(names)} runs and {folds} folds of {len(topics)} judged topics were given: '
            f'expected two or more '
            'runs, and 2 folds to as many as there are topics'
        )
    tried: dict[RunFusion, Evaluation] = {}
    for setting in settings(names, chosen):
        tried[setting] = evaluate(by_rank(setting.fused(runs, topics, k)), qrels, [measure])
        on_progress(1)
    shuffled = random.Random(seed).sample(topics, len(topics))
    choices: list[FoldChoice] = []
    values: dict[str, float] = {}
    run: Run = {}
    for number in range(folds):
        choice = _choose(tried, topics, held_out=shuffled[number::folds])
        choices.append(choice)
        best = tried[choice.setting].values[measure.name]
        values |= {qid: best[qid] for qid in choice.topics}
        run |= choice.setting.fused(runs, choice.topics, k)
    tuned = Evaluation({measure.name: values}, {measure.name: fmean(values.values())}, ())
    rivals = _untuned(tried, names)
    for name in names:
        alone = by_rank(_of_topics(runs[name], topics))
        rivals[name] = evaluate(alone, qrels, [measure])
    against = {name: compare(rival, tuned)[0] for name, rival in rivals.items()}
    best_first = sorted(against.items(), key=lambda item: -item[1].baseline)
    return Tuned(
        folds=tuple(choices),
        held_out=tuned.means[measure.name],
        against=dict(best_first),
        whole=_best(tried, topics),
        run=_of_topics(run, topics),
    )


def _choose(
    tried: Mapping[RunFusion, Evaluation], topics: Sequence[str], held_out: Sequence[str]
) -> FoldChoice:
    """The setting that is best on the topics that are not held out."""
    apart = set(held_out)
    training = [qid for qid in topics if qid not in apart]
    best = _best(tried, training)
    return FoldChoice(
        setting=best,
        training=_mean(tried[best], training),
        held_out=_mean(tried[best], held_out),
        topics=tuple(held_out),
    )


def _untuned(tried: Mapping[RunFusion, Evaluation], names: Sequence[str]) -> dict[str, Evaluation]:
    """The settings with default constants and the runs' own order, by name."""
    defaults = set()
    for setting in tried:
        order = tuple(name for name in names if name in setting.order)
        usual = FusionSettings(setting.settings.method)
        if usual.method is FusionMethod.INTERPOLATION:
            usual = _interpolation(ALPHA)
        defaults.add(RunFusion(order, usual))
    return {
        f'{setting} (untuned)': evaluation
        for setting, evaluation in tried.items()
        if setting in defaults
    }


def _of_topics(run: Run, qids: Iterable[str]) -> Run:
    return {qid: run[qid] for qid in qids if qid in run}


def _mean(evaluation: Evaluation, topics: Sequence[str]) -> float:
    (values,) = evaluation.values.values()
    return fmean(values[qid] for qid in topics)


def _best(tried: Mapping[RunFusion, Evaluation], topics: Sequence[str]) -> RunFusion:
    """The setting with the greatest mean; the first if several are equal."""
    return max(tried, key=lambda setting: _mean(tried[setting], topics))
