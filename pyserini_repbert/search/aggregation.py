"""How the scores of a document's passages become its score: the names of the ways.

Importing this module is light: no `--help` waits for NumPy.
"""

from __future__ import annotations

from typing import Literal

from pyserini_repbert.data.values import Choice

# The values of the class below, for annotations.
AggregationName = Literal['max', 'first', 'mean', 'top3']


class PassageAggregation(Choice, what='aggregation'):
    """How the scores of a document's passages become its score."""

    MAX = 'max'
    """The greatest."""
    FIRST = 'first'
    """That of passage 0."""
    MEAN = 'mean'
    """The mean of all."""
    TOP3 = 'top3'
    """The mean of the three greatest; of all, where there are fewer."""
