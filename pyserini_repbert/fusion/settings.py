"""`FusionSettings`: how rankings are fused, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Self

from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.methods import ALPHA, RRF_K, FusionMethod, Normalization
from pyserini_repbert.ranking import NO_WORD, Background, Ranking

DEPTH = 1000  # RepBERT eq. 6 merges two lists of 1000
# What makes of a score the same, however many hits are fused.
_OVER_BEST = (Normalization.MAX, Normalization.BACKGROUND)


@dataclass(frozen=True)
class FusionSettings:
    """How rankings of the same queries are fused.

    Attributes
    ----------
    method : `interleave` (RepBERT eq. 6; the scores are 1, 1/2, 1/3, …), `rrf` (sum of 1 / (rrf_k
        + rank), rank from 1) or `interpolation` (the sum of the rankings' scores times their
        weights; a document that a ranking lacks has the score 0 there)
    weights : of interpolation, one for each ranking, 0 or more; none: two rankings have 0.5 each
    rrf_k : the constant of reciprocal rank fusion (Cormack et al., SIGIR 2009), at least 0
    normalize : of interpolation: how each ranking's scores are scaled first
    depth : hits of each ranking that are fused; None: whole rankings where `fuses_whole`, otherwise
        what `depth_for` says
    """

    method: FusionMethod | str = FusionMethod.INTERLEAVE
    weights: tuple[float, ...] = ()
    rrf_k: float = RRF_K
    normalize: Normalization | str = Normalization.MINMAX
    depth: int | None = None

    def __post_init__(self) -> None:
        """Raises InputError for an unknown method or normalisation, and for an rrf_k below 0."""
        object.__setattr__(self, 'method', FusionMethod(self.method))
        object.__setattr__(self, 'normalize', Normalization(self.normalize))
        object.__setattr__(self, 'weights', tuple(map(float, self.weights)))
        if self.method is FusionMethod.RRF and not 0 <= self.rrf_k < inf:
            raise InputError(
                f'rrf_k is {self.rrf_k}, a number from 0 on was expected (60 is usual)'
            )

    def changed(self, alpha: float | Sequence[float] | None = None, **changes: Any) -> Self:
        """These settings with others instead of some.

        Parameters
        ----------
        alpha : `weights`, or of two rankings the first one's weight, 0 to 1: the second has 1 -
            alpha; None changes nothing
        changes : other attributes
        """
        if alpha is not None:
            changes['weights'] = weights_of(alpha)
        return replace(self, **changes)

    def weights_for(self, n_rankings: int) -> tuple[float, ...]:
        """The weight of each ranking in their interpolation.

        Raises InputError if the weights are of another number of rankings, and for weights that
        are negative, not finite, or all 0.
        """
        weights = self.weights
        if not weights:
            if n_rankings != 2:
                raise InputError(
                    f"fusion by 'interpolation' was given {n_rankings} runs, exactly two expected: "
                    'or give a weight for each',
                    parameters=('weights',),
                )
            return weights_of(ALPHA)
        in_range = all(0 <= weight < inf for weight in weights)
        if len(weights) != n_rankings or not in_range or not any(weights):
            given = ' '.join(map(str, weights))
            raise InputError(
                f'weights {given} were given for {n_rankings} runs: expected a number from 0 on '
                'for each, not all of them 0',
                parameters=('weights',),
            )
        return weights

    @property
    def fuses_whole(self) -> bool:
        """Whether the k best of complete rankings can be found without reading these, see
        `fusion.threshold`.
        """
        is_interpolation = self.method is FusionMethod.INTERPOLATION
        return is_interpolation and self.normalize in _OVER_BEST and self.depth is None

    @property
    def is_above_background(self) -> bool:
        """Whether shares of the scores above the background are interpolated."""
        is_interpolation = self.method is FusionMethod.INTERPOLATION
        return is_interpolation and self.normalize is Normalization.BACKGROUND

    def background_of(self, ranking: Ranking) -> Background:
        """The scores of a ranking that add nothing to an interpolation over the best."""
        is_counted = self.is_above_background and len(ranking) > 0
        return ranking.background if is_counted else NO_WORD

    def depth_for(self, k: int | None) -> int | None:
        """How many hits of each ranking are fused, for k fused hits; None: all.

        If `depth` does not say it, it is k for 'interleave', otherwise at least `DEPTH`: the first
        k of interleaved rankings depend on the first k of each only; with other methods, lower
        ranks count.
        """
        if self.depth is not None:
            return self.depth
        if k is None or self.method is FusionMethod.INTERLEAVE:
            return k
        return max(k, DEPTH)


def weights_of(alpha: float | Sequence[float]) -> tuple[float, ...]:
    """The weights that `alpha` means: alpha and 1 - alpha, or the numbers of a sequence.

    Raises InputError for a number that is not from 0 to 1.
    """
    if not isinstance(alpha, (int, float)):
        return tuple(map(float, alpha))
    if not 0 <= alpha <= 1:
        raise InputError(
            f'alpha is {alpha}, a weight from 0 (second run only) to 1 (first run only) was '
            'expected'
        )
    return float(alpha), 1 - alpha
