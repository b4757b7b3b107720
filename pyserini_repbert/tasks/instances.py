"""Training instances: a query with passages, by their ids; and what looks up their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pyserini_repbert.tasks.recipe import Source


class Instance(NamedTuple):
    """A query with passages, by their ids: a pair, or a group of candidates that are scored
    together.

    Attributes
    ----------
    source : position of the source in the recipe
    docids : in a pair, a relevant passage and a non-relevant one, or only the relevant one
    judged : whether the first passage is relevant; otherwise no passage is known to be relevant
    """

    source: int
    qid: str
    docids: tuple[str, ...]
    judged: bool = True


class InstanceSource(Protocol):
    """An opened source of a recipe: `train.sources.TrainingSource`."""

    source: Source
    """What the recipe says of it."""
    space: str
    """The corpus or index that the docids are of: equal docids in one space are one passage."""

    def query(self, qid: str) -> str:
        """A query's text."""

    def texts(self, docids: Sequence[str]) -> list[str]:
        """Passages' texts, in their order."""

    def relevant(self, qid: str) -> list[str]:
        """The docids judged relevant to a query."""

    def taught(self, qid: str, docids: Sequence[str]) -> list[float]:
        """The teacher's scores of a query's candidates, as logits."""
