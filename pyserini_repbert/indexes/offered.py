"""`OfferedRankings`: the rankings of an index that are searched alone, as a service offers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    approximate : by the name of each that searches an approximate index, the ranking whose hits it
        finds
    usual : is searched where none is named; '' where the first ones of vectors and words are
    fused : are fused where all are asked for; none where there are no two
    """

    names: tuple[str, ...]
    of_vectors: frozenset[str] = frozenset()
    of_models: frozenset[str] = frozenset()
    of_documents: frozenset[str] = frozenset()
    with_feedback: frozenset[str] = frozenset()
    approximate: Mapping[str, str] = field(default_factory=dict)
    usual: str = ''
    fused: tuple[str, ...] = ()
