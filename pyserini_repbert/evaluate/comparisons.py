"""Comparisons of several runs, by their names, and how they were tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import Evaluation
from pyserini_repbert.evaluate.significance import (
    LEVEL,
    SAMPLES,
    TEST_NAMES,
    Comparison,
    Interval,
    SignificanceTest,
    bootstrap_interval,
    compare,
    holm,
    paired_values,
)

# Measure -> baseline -> run -> qid -> the run's value minus the baseline's.
TopicDifferences = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]


@dataclass(frozen=True)
class ComparisonSettings:
    """How runs are compared.

    Attributes
    ----------
    test : what p is of
    confidence : of the intervals of the differences; None: without intervals
    samples, seed : of the randomisation test and the bootstrap
    """

    test: SignificanceTest = SignificanceTest.T
    confidence: float | None = None
    samples: int = SAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, 'test', SignificanceTest(self.test))

    def __str__(self) -> str:
        """The test, as in 'paired t-test, two-sided'."""
        text = f'{TEST_NAMES[self.test]}, two-sided'
        if self.test is SignificanceTest.RANDOMIZATION or self.confidence is not None:
            text += f'; {self.samples} samples, seed {self.seed}'
        return text


class RunPair(NamedTuple):
    """The names of two runs: `run` is compared with `baseline`."""

    baseline: str
    run: str


@dataclass(frozen=True)
class RunComparison:
    """The comparison of a run with a baseline, both by their names.

    Attributes
    ----------
    p_holm : p corrected for all comparisons that are made; None if it is the only one
    interval : of the difference; None if it was not asked for
    """

    baseline: str
    run: str
    comparison: Comparison
    p_holm: float | None = None
    interval: Interval | None = None

    @property
    def p(self) -> float:
        """p, corrected if there are several comparisons."""
        return self.comparison.p if self.p_holm is None else self.p_holm

    @property
    def is_better(self) -> bool:
        """Whether the run is significantly better than the baseline."""
        return self.p < LEVEL and self.comparison.difference > 0

    @property
    def is_worse(self) -> bool:
        """Whether the run is significantly worse than the baseline."""
        return self.p < LEVEL and self.comparison.difference < 0


def pairs_with(baselines: Sequence[str], names: Sequence[str]) -> list[RunPair]:
    """Each baseline with each other run; two baselines are one pair.

    Raises InputError for a baseline that is not one of the runs.
    """
    pairs: list[RunPair] = []
    for number, baseline in enumerate(baselines):
        if baseline not in names:
            raise InputError(
                f"baseline '{baseline}' is not one of the runs: expected one of {', '.join(names)}"
            )
        compared = set(baselines[: number + 1])
        pairs += [RunPair(baseline, name) for name in names if name not in compared]
    return pairs


def all_pairs(names: Sequence[str]) -> list[RunPair]:
    """Each two runs once; the earlier one is the baseline."""
    return [RunPair(*pair) for pair in combinations(names, 2)]


def compare_with_first(
    evaluations: Mapping[str, Evaluation], settings: ComparisonSettings | None = None
) -> list[RunComparison]:
    """Each run against the first one, measure by measure, as `compare_pairs` does."""
    names = list(evaluations)
    return compare_pairs(evaluations, pairs_with(names[:1], names), settings)


def compare_pairs(
    evaluations: Mapping[str, Evaluation],
    pairs: Sequence[RunPair],
    settings: ComparisonSettings | None = None,
) -> list[RunComparison]:
    """Each pair of runs, measure by measure; several p are corrected by Holm.

    Parameters
    ----------
    evaluations : by the names of runs
    pairs : the runs to compare
    settings : how; default: by the paired t-test, without intervals
    """
    how = settings or ComparisonSettings()
    compared: list[RunComparison] = []
    for pair in pairs:
        baseline = evaluations[pair.baseline]
        other = evaluations[pair.run]
        for comparison in compare(baseline, other, how.test, how.samples, how.seed):
            interval = _interval(baseline, other, comparison.measure, how)
            compared.append(RunComparison(*pair, comparison, interval=interval))
    if len(compared) < 2:
        return compared
    corrected = holm([one.comparison.p for one in compared])
    return [replace(one, p_holm=p) for one, p in zip(compared, corrected, strict=True)]


def _interval(
    baseline: Evaluation, other: Evaluation, measure: str, settings: ComparisonSettings
) -> Interval | None:
    """The bootstrap interval of a difference; None if it was not asked for."""
    if settings.confidence is None:
        return None
    pairs = paired_values(baseline, other, measure)
    interval = bootstrap_interval(
        pairs.other,
        pairs.baseline,
        confidence=settings.confidence,
        samples=settings.samples,
        seed=settings.seed,
    )
    if baseline.is_sum(measure) or other.is_sum(measure):
        return interval.of_sum(len(pairs.other))
    return interval


def topic_differences(
    evaluations: Mapping[str, Evaluation], pairs: Sequence[RunPair]
) -> TopicDifferences:
    """The differences of each pair of runs in the first measure, topic by topic."""
    measure = next(iter(next(iter(evaluations.values())).values))
    by_baseline: dict[str, dict[str, dict[str, float]]] = {}
    for pair in pairs:
        before = evaluations[pair.baseline].values[measure]
        after = evaluations[pair.run].values[measure]
        differences = {qid: after[qid] - value for qid, value in before.items()}
        by_baseline.setdefault(pair.baseline, {})[pair.run] = differences
    return {measure: by_baseline}
