"""What watching does in collections."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.collection.parts import CollectionPart


class WatchedCollections(CollectionPart):
    """Asks the judged questions once a collection has learned: it may tell P(answered) now."""

    def after_learning(self, folder: Path, device: str) -> None:
        from pyserini_repbert.extensions.watching.measuring import measure_generation

        measure_generation(folder, device)


IN_COLLECTIONS = WatchedCollections()
