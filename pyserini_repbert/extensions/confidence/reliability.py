"""How far probabilities can be believed: Brier score, expected calibration error, AUC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

BINS = 10


@dataclass(frozen=True)
class ReliabilityBin:
    """Predictions of about one size.

    Attributes
    ----------
    predicted : their mean
    observed : the share of them that came true
    n : how many there are
    """

    predicted: float
    observed: float
    n: int


def reliability(
    probabilities: Sequence[float] | NDArray[np.float64],
    outcomes: Sequence[bool] | NDArray[np.bool_],
    n_bins: int = BINS,
) -> list[ReliabilityBin]:
    """The reliability diagram: predictions in bins of as many each, from the least to the greatest.

    Parameters
    ----------
    probabilities : (n,), from 0 to 1
    outcomes : what came true, (n,)
    n_bins : at most; fewer if there are fewer predictions
    """
    predicted = np.asarray(probabilities, np.float64)
    observed = np.asarray(outcomes, np.float64)
    order = np.argsort(predicted, kind='stable')
    edges = np.linspace(0, len(order), min(n_bins, len(order)) + 1).astype(int)
    bins = []
    for start, end in pairwise(edges.tolist()):
        rows = order[start:end]
        mean = float(predicted[rows].mean())
        bins.append(ReliabilityBin(mean, float(observed[rows].mean()), len(rows)))
    return bins


def expected_calibration_error(
    probabilities: Sequence[float] | NDArray[np.float64],
    outcomes: Sequence[bool] | NDArray[np.bool_],
) -> float:
    """The mean distance of predicted from observed in the bins of `reliability` (ECE)."""
    bins = reliability(probabilities, outcomes)
    total = sum(group.n for group in bins)
    return sum(abs(group.predicted - group.observed) * group.n for group in bins) / total


def brier_score(
    probabilities: Sequence[float] | NDArray[np.float64],
    outcomes: Sequence[bool] | NDArray[np.bool_],
) -> float:
    """The mean squared distance of probabilities from outcomes (Brier 1950)."""
    distances = np.asarray(probabilities, np.float64) - np.asarray(outcomes, np.float64)
    return float((distances**2).mean())


def area_under_roc(
    scores: Sequence[float] | NDArray[np.float64], outcomes: Sequence[bool] | NDArray[np.bool_]
) -> float | None:
    """How often a true prediction has a greater score than a false one; ties count half (AUC).

    None without a true one, or without a false one.
    """
    is_true = np.asarray(outcomes, bool)
    n_true = int(is_true.sum())
    n_false = len(is_true) - n_true
    if not n_true or not n_false:
        return None
    ranks = rankdata(np.asarray(scores, np.float64))
    return float((ranks[is_true].sum() - n_true * (n_true + 1) / 2) / (n_true * n_false))


def risk_by_coverage(
    probabilities: Sequence[float] | NDArray[np.float64],
    outcomes: Sequence[bool] | NDArray[np.bool_],
) -> list[float]:
    """The share of false ones among the n most probable, for n from 1 to all (n,).

    This is the risk of who answers the share n / all of the questions, and abstains from the rest.
    """
    order = np.argsort(-np.asarray(probabilities, np.float64), kind='stable')
    is_false = ~np.asarray(outcomes, bool)[order]
    risks = np.cumsum(is_false) / np.arange(1, len(order) + 1)
    return [float(risk) for risk in risks]
