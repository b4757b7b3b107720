"""What `Collection.search` answers: hits of a question, or of a DataFrame of questions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import loaded
from pyserini_repbert.ranking import Candidate, Query, Searcher, check_question, topics_of
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.collection.searching import CollectionSearcher
    from pyserini_repbert.rerank.base import Reranker

logger = logging.getLogger(__name__)

# What a pipeline calls its first stage in a trace.
SEARCH = 'search'


class CollectionAnswer(list[Candidate]):
    """The hits of a question, best first; what extensions say of the question are attributes."""


def answer_of(
    hits: Sequence[Candidate], searcher: CollectionSearcher, topic: Query, notes: Notes
) -> CollectionAnswer:
    """The hits of a question, with what extensions say of it.

    Parameters
    ----------
    hits : best first
    searcher : the searcher that found them, or that found what was reranked
    topic : the question
    notes : what the searcher reported
    """
    answer = CollectionAnswer(hits)
    for part in loaded('in_collections'):
        vars(answer).update(part.of_answer(searcher, topic, notes))
    return answer


def answer_question(
    searcher: CollectionSearcher, rerankers: Sequence[Reranker], query: str, k: int
) -> CollectionAnswer:
    """The k best documents for a question; what `warnings` says is logged.

    Parameters
    ----------
    searcher : gives the hits, and the passages of each that fit the question best
    rerankers : the first reads the best hits, each further one the best of the one before it
    query : the question
    k : how many documents

    Raises InputError for a question without text.
    """
    check_question(query)
    topic = Query('0', query)
    notes = Notes()
    ranker = with_rerankers(searcher, rerankers)
    ranking = ranker.rank([topic], None, k, notes)[topic.qid]
    for warning in ranker.warnings(query):
        logger.warning('%s', warning)
    if rerankers:
        hits = ranker.with_stored_texts(query, ranking)
        notes = notes.parts[SEARCH]
    else:
        hits = ranker.with_shown_texts(query, ranking)
    return answer_of(hits, searcher, topic, notes)


def with_rerankers(searcher: CollectionSearcher, rerankers: Sequence[Reranker]) -> Searcher:
    """A search with its rerankers; the search itself if there are none."""
    if not rerankers:
        return searcher
    # Few collections have rerankers.
    from pyserini_repbert.pipeline.pipeline import Pipeline

    return Pipeline([searcher, *rerankers])


def answer_frame(
    searcher: CollectionSearcher, rerankers: Sequence[Reranker], queries: Any, k: int
) -> Any:
    """The k best documents for each row of a DataFrame, as a DataFrame.

    Both have the columns that `Collection.search` names; the arguments are as in
    `answer_question`. Raises InputError for a column that is missing, and for a row without a
    question.
    """
    import pandas

    missing = {'qid', 'query'} - set(queries.columns)
    if missing:
        raise InputError(
            f"the DataFrame lacks the columns {', '.join(sorted(missing))}: name them 'qid' and "
            "'query'"
        )
    lacking = queries['qid'][queries['query'].isna()]
    if len(lacking):
        raise InputError(f"qid '{lacking.iloc[0]}' has no query: give a question, or leave it out")
    topics = topics_of([str(text) for text in queries['query']], [str(q) for q in queries['qid']])
    ranker = with_rerankers(searcher, rerankers)
    rows = []
    for topic, ranking in zip(topics, ranker.rank(topics, None, k).values(), strict=True):
        for warning in ranker.warnings(topic.text):
            logger.warning('%s', warning)
        for rank, hit in enumerate(ranker.with_shown_texts(topic.text, ranking), 1):
            rows.append({'qid': topic.qid, 'rank': rank, **_hit_values(hit)})
    columns = ['qid', 'docid', 'rank', 'score', 'text', 'passage', 'start', 'end']
    return pandas.DataFrame(rows, columns=columns)


def _hit_values(hit: Candidate) -> dict[str, Any]:
    """A hit's values by the names of their columns; of a hit without passages, None for these."""
    values = {'docid': hit.docid, 'score': hit.score, 'text': hit.text}
    if not hit.excerpts:
        return {**values, 'passage': None, 'start': None, 'end': None}
    passage = hit.excerpts[0]
    return {**values, 'passage': passage.number, 'start': passage.start, 'end': passage.end}
