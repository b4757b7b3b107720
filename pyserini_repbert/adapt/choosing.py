"""The choice among ways of searching, judged by topics that had no part in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.adaptation import best_name
from pyserini_repbert.adapt.judged_topics import Values

_LEARNED = 'learned'


@dataclass(frozen=True)
class LearnedValues:
    """nDCG@10 of each text with what the texts of other folds taught.

    Attributes
    ----------
    held_out : with what all other folds taught
    without : for each fold, with what all other folds but that one taught; 0 for its own texts
    """

    held_out: Values
    without: Sequence[Values]


def choose_held_out(
    untuned: Mapping[str, Values], learned: LearnedValues, fold_of_text: NDArray[np.int64]
) -> Values:
    """Each text's value by the way that is best on the texts of the other folds, (n texts,).

    The texts of a fold take no part in its choice. What was learned is also compared by values that
    were learned without them.

    Parameters
    ----------
    untuned : values of each way that learns nothing; of equal ways, the first is chosen
    learned : values of what was learned
    fold_of_text : the fold of each text, (n texts,)
    """
    chosen = np.zeros(len(fold_of_text))
    for fold, without in enumerate(learned.without):
        is_held_out = fold_of_text == fold
        compared = {name: values[~is_held_out] for name, values in untuned.items()}
        best = best_name({**compared, _LEARNED: without[~is_held_out]})
        values = learned.held_out if best == _LEARNED else untuned[best]
        chosen[is_held_out] = values[is_held_out]
    return chosen
