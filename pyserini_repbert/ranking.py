"""The frozen values that flow between stages: a query, a candidate, a ranking of candidates for a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """A topic: its identifier and its text."""

    qid: str
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage in a ranking. `text` is None until somebody needs it; the higher the score, the better."""

    docid: str
    score: float = 0.0
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates of one query, best first."""

    query: Query
    candidates: tuple[Candidate, ...]


def by_score(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates ordered by descending score, ties by ascending docid: the order of searchers and fusion."""
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.docid))


def reordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates ordered by descending score, ties as they came: the order of rerankers."""
    return sorted(candidates, key=lambda candidate: -candidate.score)
