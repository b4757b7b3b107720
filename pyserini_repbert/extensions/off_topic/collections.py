"""What a collection does after each generation: it keeps the threshold of the generation."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.collection.parts import CollectionPart
from pyserini_repbert.extensions.off_topic.file import FILE, LEAST_PASSAGES
from pyserini_repbert.folder_forms import TEMPORARY

if TYPE_CHECKING:
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.collection.generation import Generation
    from pyserini_repbert.collection.searching import CollectionSearcher
    from pyserini_repbert.ranking import Query
    from pyserini_repbert.trace import Notes


class OffTopicInCollections(CollectionPart):
    """Keeps the threshold of each generation."""

    files = (re.escape(FILE), rf'\.{re.escape(FILE)}\.{TEMPORARY}')

    def after_publication(self, collection: Collection) -> None:
        if collection.generation.manifest.passages < LEAST_PASSAGES:
            return
        from pyserini_repbert.extensions.off_topic.updating import keep_threshold

        keep_threshold(collection)

    def of_answer(self, searcher: CollectionSearcher, topic: Query, notes: Notes) -> dict[str, Any]:
        if not (searcher.generation.folder / FILE).is_file():
            return {'off_topic': None}
        from pyserini_repbert.extensions.off_topic.claims import is_off_topic

        return {'off_topic': is_off_topic(searcher, topic, notes)}

    def check(self, generation: Generation) -> list[str]:
        if (generation.folder / FILE).is_file():
            from pyserini_repbert.extensions.off_topic.kept import read_kept

            read_kept(generation.folder)
        return []

    def copy(self, generation: Generation, target: Path) -> list[str]:
        path = generation.folder / FILE
        if path.is_file():
            shutil.copyfile(path, target / FILE)
        return []


IN_COLLECTIONS = OffTopicInCollections()
