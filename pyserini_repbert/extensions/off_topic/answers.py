"""The field `off_topic` of answers of the service, over HTTP and MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NotRequired

from pydantic import Field

from pyserini_repbert.ranking import Ranking
from pyserini_repbert.serve.answer_parts import AnswerAddition, AnswerFollower, AnswerPart
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.extensions.off_topic.claims import TopicCheck
    from pyserini_repbert.serve.indexes import ServedIndex
    from pyserini_repbert.serve.requests import Search
    from pyserini_repbert.serve.rerankers import Rerankers

_FIELD = 'off_topic'


class OffTopicInAnswers(AnswerPart):
    """Says of each question whether the collection seems to be about it."""

    answer_fields: ClassVar[Mapping[str, Any]] = {
        _FIELD: NotRequired[
            Annotated[
                bool,
                Field(
                    description='of a collection: whether it does not seem to be about the '
                    'question, whatever the filter; absent if unknown. It never says '
                    'that the question is answered, or is not'
                ),
            ]
        ]
    }

    def follower(
        self, search: Search, index: ServedIndex, rerankers: Rerankers
    ) -> AnswerFollower | None:
        from pyserini_repbert.extensions.off_topic.claims import TopicCheck

        if search.like is not None:
            return None
        for system in search.systems:
            check = TopicCheck.of(index.ranker(system, search.spec).ranker)
            if check is not None:
                return _OffTopicField(check, search.query)
        return None


class _OffTopicField(AnswerFollower):
    """The field of one answer.

    Parameters
    ----------
    check : of the search
    query : the question
    """

    def __init__(self, check: TopicCheck, query: str) -> None:
        self._check = check
        self._query = query

    def follow(self, ranking: Ranking, notes: Notes) -> AnswerAddition:
        from pyserini_repbert.extensions.off_topic.claims import MOST_HITS
        from pyserini_repbert.serve.indexes import DENSE

        dense = None
        for leaf in notes.leaves():
            if leaf.name == DENSE:
                (dense,) = leaf.run.values()
        claim = self._check.is_off_topic(self._query, dense, ranking.docids[:MOST_HITS])
        return AnswerAddition({} if claim is None else {_FIELD: claim})


IN_ANSWERS = OffTopicInAnswers()
