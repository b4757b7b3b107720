"""Fusion tuned by cross-validation: method, order and constants are chosen on some topics and reported on others."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import fmean
from typing import NamedTuple

from pyserini_repbert.data.topics import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import NamedMeasure, evaluate
from pyserini_repbert.evaluate.significance import paired_t_test
from pyserini_repbert.evaluate.studies.fusion_tables import in_order
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, fuse
from pyserini_repbert.ranking import Run

RRF_KS = (1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0)
ALPHAS = tuple(step / 20 for step in range(1, 20))
_MOST_ORDERED = 4  # runs of which all orders are tried; of more, each run leads once


@dataclass(frozen=True)
class FusionSetting:
    """One way to fuse.

    Attributes
    ----------
    method : a `FusionMethod`
    order : names of the runs; the first one leads
    rrf_k, alpha : constants of the methods that have them
    """

    method: str
    order: tuple[str, ...]
    rrf_k: float = RRF_K
    alpha: float = ALPHA

    def __str__(self) -> str:
        names = '+'.join(self.order)
        own = {FusionMethod.RRF: f' k={self.rrf_k:g}', FusionMethod.INTERPOLATION: f' alpha={self.alpha:g}'}
        return f'{self.method} {names}{own.get(FusionMethod(self.method), "")}'

    def fused(self, runs: Mapping[str, Run], k: int | None) -> Run:
        """The runs, fused by this setting."""
        return fuse([runs[name] for name in self.order], self.method, k, self.alpha, self.rrf_k)


class FoldChoice(NamedTuple):
    """The setting that is best on a fold's training topics.

    Attributes
    ----------
    training, held_out : its mean over the training topics, and over the topics held out
    topics : qids of the topics held out
    """

    setting: FusionSetting
    training: float
    held_out: float
    topics: tuple[str, ...]


class Against(NamedTuple):
    """The held-out values compared with those of a fixed setting or a single run, over all topics.

    Attributes
    ----------
    mean : of the fixed setting or the run
    difference : mean of the held-out values less `mean`
    t, p : of a paired t-test, two-sided
    """

    name: str
    mean: float
    difference: float
    t: float
    p: float


class Tuned(NamedTuple):
    """The result of a cross-validation.

    Attributes
    ----------
    folds : the choice of each
    held_out : mean over all topics, each with the setting of the fold that held it out
    against : comparisons with the runs alone, and with interleave and RRF untuned
    whole : the setting that is best on all topics, for use on others; its value on these is no estimate
    run : the fused hits of each topic, with the setting of the fold that held it out
    """

    folds: tuple[FoldChoice, ...]
    held_out: float
    against: tuple[Against, ...]
    whole: FusionSetting
    run: Run


def settings(names: Sequence[str], methods: Sequence[str] = tuple(FusionMethod)) -> Iterator[FusionSetting]:
    """The settings to try; interpolation only for two runs."""
    orders = list(permutations(names)) if len(names) <= _MOST_ORDERED else [_led_by(names, name) for name in names]
    if FusionMethod.INTERLEAVE in methods:
        yield from (FusionSetting(FusionMethod.INTERLEAVE, tuple(order)) for order in orders)
    if FusionMethod.RRF in methods:
        yield from (FusionSetting(FusionMethod.RRF, tuple(names), rrf_k=k) for k in RRF_KS)
    if FusionMethod.INTERPOLATION in methods and len(names) == 2:
        yield from (FusionSetting(FusionMethod.INTERPOLATION, tuple(names), alpha=alpha) for alpha in ALPHAS)


def tune_fusion(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measure: NamedMeasure,
    folds: int = 5,
    seed: int = 0,
    methods: Sequence[str] = tuple(FusionMethod),
    k: int | None = 1000,
) -> Tuned:
    """Choose a setting on the training topics of each fold, and report its values on those held out.

    Parameters
    ----------
    runs : name -> run, two or more
    measure : its mean is maximised; of settings with equal means, the first of `settings` is chosen
    folds : how many; the judged topics are shuffled by `seed`
    methods : FusionMethods to try
    k : length of a fused ranking; None for all hits

    Raises
    ------
    InputError
        for fewer than two runs or folds, more folds than judged topics, or nothing to try
    """
    names, topics = list(runs), list(qrels)
    if len(names) < 2 or not 2 <= folds <= len(topics):
        raise InputError(
            f'{len(names)} runs and {folds} folds of {len(topics)} judged topics were given: expected two or more '
            'runs, and 2 folds to as many as there are topics'
        )
    judged = {name: {qid: run[qid] for qid in topics if qid in run} for name, run in runs.items()}
    tried = list(settings(names, methods))
    if not tried:
        raise InputError(f'there is nothing to try: interpolation takes two runs, {len(names)} were given')

    def values(run: Run) -> dict[str, float]:
        return evaluate(in_order(run), qrels, [measure]).values[measure.name]

    found = {setting: values(setting.fused(judged, k)) for setting in tried}
    shuffled = random.Random(seed).sample(topics, len(topics))
    chosen: list[FoldChoice] = []
    own: dict[str, float] = {}
    run: Run = {}
    for number in range(folds):
        held = shuffled[number::folds]
        others = [qid for qid in topics if qid not in set(held)]
        best = _best(found, others)
        mine = {qid: found[best][qid] for qid in held}
        chosen.append(FoldChoice(best, _mean(found[best], others), fmean(mine.values()), tuple(held)))
        own |= mine
        run |= {qid: ranking for qid, ranking in best.fused(judged, k).items() if qid in mine}
    fixed = {name: values(judged[name]) for name in names}
    usual = [FusionSetting(FusionMethod.INTERLEAVE, tuple(names)), FusionSetting(FusionMethod.RRF, tuple(names))]
    fixed |= {f'{setting} (untuned)': values(setting.fused(judged, k)) for setting in usual}
    against = tuple(_against(name, theirs, own, topics) for name, theirs in fixed.items())
    ordered = {qid: run[qid] for qid in topics if qid in run}
    return Tuned(tuple(chosen), _mean(own, topics), against, _best(found, topics), ordered)


def _led_by(names: Sequence[str], leader: str) -> tuple[str, ...]:
    return (leader, *(name for name in names if name != leader))


def _mean(values: Mapping[str, float], topics: Sequence[str]) -> float:
    return fmean(values[qid] for qid in topics)


def _best(found: Mapping[FusionSetting, Mapping[str, float]], topics: Sequence[str]) -> FusionSetting:
    return max(found, key=lambda setting: _mean(found[setting], topics))  # the first of equal ones


def _against(name: str, theirs: Mapping[str, float], own: Mapping[str, float], topics: Sequence[str]) -> Against:
    t, p = paired_t_test([own[qid] for qid in topics], [theirs[qid] for qid in topics])
    return Against(name, _mean(theirs, topics), _mean(own, topics) - _mean(theirs, topics), t, p)
