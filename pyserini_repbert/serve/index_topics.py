"""The topics of a served index, and their judgments."""

from __future__ import annotations

from pyserini_repbert import catalog
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.errors import MissingResourceError
from pyserini_repbert.ranking import Query
from pyserini_repbert.serve.settings import IndexSettings


class IndexTopics:
    """The topics that an index was judged on, as its settings name them, or the catalog.

    Parameters
    ----------
    alias : how clients call the index
    settings : of the index

    Attributes
    ----------
    by_qid : the topics by qid; empty if none are known
    qrels : the judgments; empty if none are known
    """

    def __init__(self, alias: str, settings: IndexSettings) -> None:
        self._alias = alias
        self.by_qid: dict[str, Query] = {}
        self.qrels: Qrels = {}
        topics = settings.topics or _name_in_catalog('topics', settings.location)
        if topics:
            from pyserini_repbert.names.topics import load_topics

            self.by_qid = {topic.qid: topic for topic in load_topics(topics)}
        qrels = settings.qrels or _name_in_catalog('qrels', settings.location)
        if qrels:
            from pyserini_repbert.names.topics import load_qrels

            self.qrels = load_qrels(qrels)
        self._judged_qids: dict[str, str] = {}
        for topic in self.by_qid.values():
            if topic.qid in self.qrels:
                self._judged_qids[_folded(topic.text)] = topic.qid

    def grades(self, qid: str) -> dict[str, int]:
        """The judgments of a topic: docid -> grade.

        Raises MissingResourceError for a topic without judgments.
        """
        if qid not in self.qrels:
            raise MissingResourceError(
                f"index '{self._alias}' has no judgments for topic '{qid[:200]}'"
            )
        return self.qrels[qid]

    def judged_qid(self, query: str) -> str | None:
        """The qid of the judged topic with the same text, apart from case, spaces and a final
        '?'; None without one.
        """
        return self._judged_qids.get(_folded(query))


def _name_in_catalog(kind: str, location: str) -> str | None:
    """The collection of a catalog's index, if the catalog has its 'topics' or 'qrels'."""
    entry = catalog.find('indexes', location)
    if entry is None:
        return None
    collection = str(entry.values['collection'])
    return collection if catalog.find(kind, collection) else None


def _folded(text: str) -> str:
    return ' '.join(text.casefold().split()).rstrip('?')
