"""`CollectionPart`: what an extension does in collections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.collection.generation import Generation
    from pyserini_repbert.collection.searching import CollectionSearcher
    from pyserini_repbert.ranking import Query
    from pyserini_repbert.trace import Notes


class CollectionPart:
    """What an extension does in collections; each method does nothing unless it is replaced.

    Attributes
    ----------
    files : what it keeps in a collection's folder: regular expressions, as of `FolderForm`. A
        writer refuses a folder with other files, and removes none of these
    """

    files: tuple[str, ...] = ()

    def after_publication(self, collection: Collection) -> None:
        """A generation was published, and `collection` reads it; searches may do so already.

        It is called where `Collection` has written, without the writer's lock. An error of this
        package is logged: what was published stays.
        """

    def after_learning(self, folder: Path, device: str) -> None:
        """A service has let a collection learn from its judgments, in a process of its own.

        Parameters
        ----------
        folder : of the collection
        device : where encoders run
        """

    def of_answer(self, searcher: CollectionSearcher, topic: Query, notes: Notes) -> dict[str, Any]:
        """What it says of a question that was asked from Python: attributes of the answer, by name.

        Parameters
        ----------
        searcher : has answered
        topic : the question
        notes : what the searcher reported
        """
        return {}

    def before_compacting(self, folder: Path) -> None:
        """Remove files that a collection can do without; the caller holds the writer's lock."""

    def copy(self, folder: Path, target: Path) -> None:
        """Copy what searches of a copy need; `target` is the copy's folder."""

    def describe(self, generation: Generation) -> list[str]:
        """What `index status` says of its files, a line each."""
        return []

    def check(self, generation: Generation) -> list[str]:
        """Compare its files; returns what `index check` says of them, a line each.

        Raises DamagedFileError.
        """
        return []
