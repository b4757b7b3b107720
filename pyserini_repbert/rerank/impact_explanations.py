"""What explanations of scores by weights of terms share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.encode.impact_encoder import ImpactEncoder, check_fits
from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.models.term_vectors import TermVector

# Terms in the reason for a hit.
REASON_TERMS = 5


@dataclass(frozen=True)
class ExplainedPassage:
    """A passage of an index: its vector, and its text; None where that is not known."""

    vector: TermVector
    text: str | None


def explained_passage(
    index: EpicBundle, encoder: ImpactEncoder, docid: str, text: str | None
) -> ExplainedPassage:
    """A passage of an index, with the text that is given, or else stored.

    Raises MismatchError for an index of another encoder, MissingResourceError for a docid that it
    lacks.
    """
    check_fits(index, encoder)
    row = int(index.rows([docid])[0])
    if row < 0:
        raise MissingResourceError(
            f"index {index.folder} has no passage '{docid}': check the docid, or give its text",
            parameters=('passage',),
        )
    if not text:
        (text,) = index.texts([docid])
    return ExplainedPassage(index.vector(row), text)


def strongest_terms(vector: TermVector, others: Sequence[int], top: int) -> list[int]:
    """The `top` terms of the greatest weights that are not among others, strongest first."""
    weights = vector.as_dict()
    terms = sorted(weights.keys() - set(others), key=lambda term: (-weights[term], term))
    return terms[:top]


def reason_text(shares: Sequence[Mapping[str, Any]]) -> str:
    """The terms that add most to a score, in a line: 'bitter 1.79 + let 1.28'."""
    return ' + '.join(
        f'{share["term"]} {share["contribution"]:.2f}'
        for share in shares[:REASON_TERMS]
        if share['contribution'] > 0
    )


def contributions(
    names: Sequence[str], query_weights: Sequence[float], passage_weights: Sequence[float]
) -> list[dict[str, Any]]:
    """What each term adds to a score, greatest first: its weights, and their product."""
    shares: list[dict[str, Any]] = []
    for name, of_query, of_passage in zip(names, query_weights, passage_weights, strict=True):
        shares.append(
            {
                'term': name,
                'query_weight': of_query,
                'passage_weight': of_passage,
                'contribution': of_query * of_passage,
            }
        )
    shares.sort(key=lambda share: (-share['contribution'], share['term']))
    return shares
