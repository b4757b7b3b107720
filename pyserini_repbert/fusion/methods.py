"""The ways to fuse rankings: their names, their formulas, and the settings of each.

Commands, the service and other projects take the names from here. Importing
this module is light: no `--help` waits for NumPy.
"""

from __future__ import annotations

from typing import Literal

from pyserini_repbert.data.values import Choice

RRF_K = 60.0  # Cormack et al., SIGIR 2009
ALPHA = 0.5
NORMALIZE = 'minmax'
DENSE_ALPHA = 0.7  # the share of dense search that docs/guides/choosing.md recommends

# The values of the two classes below, for annotations.
FusionName = Literal['interleave', 'rrf', 'interpolation']
NormalizationName = Literal['none', 'minmax', 'zscore', 'max', 'background']


class FusionMethod(Choice, what='fusion method'):
    """How rankings are fused."""

    INTERLEAVE = 'interleave'
    RRF = 'rrf'
    INTERPOLATION = 'interpolation'


class Normalization(Choice, what='normalisation'):
    """What interpolation makes of a ranking's scores for a query.

    All scores alike become 1 by `MINMAX` and `ZSCORE`.

    NONE : nothing
    MINMAX : 0 for the lowest score to 1 for the highest
    ZSCORE : the distance from the lowest score in standard deviations of the ranking's scores:
        z-scores, shifted so that a document that the ranking lacks has the lowest, 0
    MAX : the share of the best score, and 0 for a score below 0. If no score is above 0: 1 / (1 +
        the distance to the best score), so that the hits keep their order. It is the same however
        many hits are fused
    BACKGROUND : as MAX, of what a score has above `Ranking.background`. So the cosines of an
        encoder that gives .75 to anything count as much as cosines of an encoder that gives it 0.
        Where chance gives a better score than the best, it is the share of that. A ranking that
        cannot judge a document (`Ranker.unjudged`) gives it at least the others' mean share
    """

    NONE = 'none'
    MINMAX = 'minmax'
    ZSCORE = 'zscore'
    MAX = 'max'
    BACKGROUND = 'background'


# What each method does, as `--help` says it.
_SUMMARIES = {
    FusionMethod.INTERLEAVE: 'alternate',
    FusionMethod.RRF: 'add reciprocal ranks',
    FusionMethod.INTERPOLATION: 'add scores, which usually ranks better',
}

# The settings of fusion, and the only method that each belongs to.
SETTINGS = {
    'alpha': FusionMethod.INTERPOLATION,
    'weights': FusionMethod.INTERPOLATION,
    'normalize': FusionMethod.INTERPOLATION,
    'rrf_k': FusionMethod.RRF,
}


def methods_text() -> str:
    """'interleave: alternate; rrf: …': all methods, for a help text."""
    return '; '.join(f'{method}: {summary}' for method, summary in _SUMMARIES.items())
