"""The judged questions of a collection, and their judgments, where topics and qrels are named."""

from __future__ import annotations

from pathlib import Path

from pyserini_repbert.collection.adaptation import JUDGMENTS
from pyserini_repbert.collection.judgments import JudgmentStore
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.manifest import is_collection
from pyserini_repbert.ranking import Query


def open_topics(name: str) -> list[Query] | None:
    """The judged questions of the collection at a path; None for another name.

    Raises InputError for a collection without judgments.
    """
    judgments = _judgments_at(name)
    return None if judgments is None else judgments.topics()


def open_qrels(name: str) -> Qrels | None:
    """The judgments of the collection at a path; None for another name.

    Raises InputError for a collection without judgments.
    """
    judgments = _judgments_at(name)
    return None if judgments is None else judgments.qrels()


def _judgments_at(name: str) -> JudgmentStore | None:
    """What people judged in the collection at a path, without opening it; None for another name.

    Raises InputError for a collection without any.
    """
    folder = Path(name)
    if not is_collection(folder):
        return None
    store = JudgmentStore(folder / JUDGMENTS)
    if not store.count():
        raise InputError(
            f'nobody has judged in collection {name}: judge in the page of `serve`, or import '
            'judgments with `index judgments`'
        )
    return store
