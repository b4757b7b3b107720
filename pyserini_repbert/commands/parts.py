"""`CommandPart`: what an extension does in a command of others."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyserini_repbert.extension import parts_of
from pyserini_repbert.ranking import Query, Ranking, Run
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.pipeline.pipeline import Pipeline
    from pyserini_repbert.pipeline.resolving import ResolvedSearch


@dataclass(frozen=True)
class FollowedHits:
    """What an extension says of the hits of a question.

    Attributes
    ----------
    line : below the question; '' for none
    marks : beside the score of each hit, in their order; none: hits have no mark
    rows : of the hits that are shown, in their order; None: of all
    """

    line: str = ''
    marks: tuple[str, ...] = ()
    rows: tuple[int, ...] | None = None


class SearchFollower(ABC):
    """Says something of hits after a search; it never reorders them.

    Attributes
    ----------
    n_hits : how many hits of a question it reads
    """

    n_hits: int = 0

    @abstractmethod
    def follow(self, topic: Query, ranking: Ranking, notes: Notes) -> FollowedHits:
        """Lines and marks for the hits of a question.

        Parameters
        ----------
        topic, ranking : the question and its hits, without texts
        notes : what the pipeline reported
        """

    def write(self, topics: Sequence[Query], run: Run, notes: Notes) -> None:  # noqa: B027 - most write nothing
        """Write what the part knows about the hits of a run, if a flag names a file for it."""


class CommandPart:
    """What an extension does in a command; each method does nothing unless it is replaced."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        """Add its flags, as a group."""

    def check(self, options: argparse.Namespace) -> None:
        """Raise InputError for flags that do not go together."""

    def run(self, options: argparse.Namespace) -> bool:
        """Do what the flags ask for, and return True if the command then has nothing else to do."""
        return False

    def record(self, notes: Notes) -> dict[str, Any]:
        """Of `search` and `rerank`: settings for the record of the run, beside flags.

        `notes` are what the pipeline reported.
        """
        return {}

    def depth(self, options: argparse.Namespace) -> int:
        """Of `search`: how many hits of each ranking it reads; 0 where nothing is asked of it."""
        return 0

    def follow(
        self, options: argparse.Namespace, resolved: ResolvedSearch, pipeline: Pipeline
    ) -> SearchFollower | None:
        """Of `search`: what follows it; None if nothing is asked of it.

        Parameters
        ----------
        options : the flags
        resolved : what is searched
        pipeline : which is open, and searches as deep as `depth` says

        Raises InputError for a search that it cannot follow.
        """
        return None


def recorded_by_parts(command: str, notes: Notes) -> dict[str, Any]:
    """What extensions add to the record of a run: the settings of `CommandPart.record`."""
    settings: dict[str, Any] = {}
    for part in parts_of(command):
        settings |= part.record(notes)
    return settings
