"""`OfferedRankings`: the single rankings of an index, as a service offers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ScannedRanking:
    """A ranking whose hits a scan finds.

    Attributes
    ----------
    scan : the name of the scan
    exact : the ranking of exact search whose hits it finds
    """

    scan: str
    exact: str


@dataclass(frozen=True)
class OfferedRankings:
    """The names of the rankings that `Index.ranking` gives, and which of them can do what.

    Attributes
    ----------
    names : of all; the usual one of vectors, and the usual one of words, come first
    of_vectors : of dense vectors
    of_models : whose queries a model reads
    of_documents : take a document instead of a question
    with_feedback : move a query's vector towards its best hits
    scanned : by name, those whose hits a scan finds
    usual : is searched if none is named; '' if the first ones of vectors and words are
    fused : are fused if all are asked for; empty if there are not two
    """

    names: tuple[str, ...]
    of_vectors: frozenset[str] = frozenset()
    of_models: frozenset[str] = frozenset()
    of_documents: frozenset[str] = frozenset()
    with_feedback: frozenset[str] = frozenset()
    scanned: Mapping[str, ScannedRanking] = field(default_factory=dict)
    usual: str = ''
    fused: tuple[str, ...] = ()
