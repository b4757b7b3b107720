"""`CollectionPart`: what an extension does in collections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyserini_repbert.adapt.adaptation import Adaptation
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.collection.generation import Generation
    from pyserini_repbert.collection.judgments import JudgmentStore
    from pyserini_repbert.collection.searching import CollectionSearcher
    from pyserini_repbert.ranking import Query
    from pyserini_repbert.rerank.base import Reranker
    from pyserini_repbert.trace import Notes


@dataclass(frozen=True)
class LearnedSearches:
    """What a collection learns: the present search, and the one offered instead.

    Attributes
    ----------
    now, offered : without rerankers
    adaptation : has a query map for each fold of questions, which these did not teach
    store : has the judgments
    seed : draws the folds
    rerankers : of the present search, by their stages
    """

    now: CollectionSearcher
    offered: CollectionSearcher
    adaptation: Adaptation
    store: JudgmentStore
    seed: int
    rerankers: Mapping[str, Reranker]


@dataclass(frozen=True)
class MoreLearned:
    """What a part learned.

    Attributes
    ----------
    report : values of JSON, by names that no other part uses
    sentence : for the report's own; '' for none
    """

    report: Mapping[str, Any] = field(default_factory=dict)
    sentence: str = ''


class CollectionPart:
    """What an extension does in collections; each method does nothing unless it is replaced.

    Attributes
    ----------
    files : what it keeps in a collection's folder: regular expressions, as in `FolderForm`. A
        writer refuses a folder with other files, and removes none of these
    """

    files: tuple[str, ...] = ()

    def after_publication(self, collection: Collection) -> None:
        """A generation was published, and `collection` reads it; searches may do so already.

        It is called where `Collection` has written, without the writer's lock. Errors of this
        package or of files are logged; what was published stays.
        """

    def after_learning(self, folder: Path, device: str) -> None:
        """A service has let a collection learn from its judgments, in a separate process.

        Parameters
        ----------
        folder : of the collection
        device : where encoders run
        """

    def learn(self, learned: LearnedSearches) -> MoreLearned:
        """Learn more from the same judgments, by the folds of `adapt`; it is stored in the report
        of the learning.
        """
        return MoreLearned()

    def describe_learning(self, report: Mapping[str, Any]) -> list[str]:
        """What `adapt` says about what it has learned, one line each."""
        return []

    def describe_loss(self, folder: Path) -> list[str]:
        """What a collection had that its present search lacks; one line each."""
        return []

    def of_answer(self, searcher: CollectionSearcher, topic: Query, notes: Notes) -> dict[str, Any]:
        """What it says about a question asked from Python: attributes of the answer, by name.

        Parameters
        ----------
        searcher : has answered
        topic : the question
        notes : what the searcher reported
        """
        return {}

    def before_compacting(self, folder: Path) -> None:
        """Remove files that a collection can do without; the caller holds the writer's lock."""

    def after_cleaning(self, folder: Path, shards: Sequence[str]) -> None:
        """Shards that no generation needs were removed: remove what belongs only to them.

        Parameters
        ----------
        folder : of the collection
        shards : the names of the others
        """

    def copy(self, generation: Generation, target: Path) -> list[str]:
        """Copy what searches of a copy need.

        Parameters
        ----------
        generation : that is copied
        target : the folder of the copy

        Returns what is left out, and why, one line each.
        """
        return []

    def describe(self, generation: Generation) -> list[str]:
        """What `index status` says of its files, a line each."""
        return []

    def check(self, generation: Generation) -> list[str]:
        """Compare its files; returns what `index check` says of them, a line each.

        Raises DamagedFileError.
        """
        return []
