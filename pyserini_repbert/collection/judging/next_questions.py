"""Which questions of a collection to judge next, so that few judgments tell much.

Questions on which rankings differ tell rankings apart, and those whose P(answered) is nearest to a
half teach confidence. But a mean over such questions is not the mean over all questions.
So a share is drawn at random.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging.asking import ask_collection
from pyserini_repbert.collection.judgments import NextQuestion, WhyNext
from pyserini_repbert.evaluate.overlap import rank_biased_overlap
from pyserini_repbert.indexes.kind import kind_of
from pyserini_repbert.ranking import Query, Run


@dataclass(frozen=True)
class _Asked:
    """A question that nobody has judged.

    Attributes
    ----------
    topic : the question
    agreement : the mean rank-biased overlap of each two rankings; 1 of a single ranking
    doubt : how far P(answered) is from a half, 0 to .5; None if it is not known
    """

    topic: Query
    agreement: float
    doubt: float | None


def order_questions(folder: Path, device: str = 'cpu') -> list[NextQuestion]:
    """Put the questions that nobody has judged in the order in which they teach most, and store it.

    By turns, the next question is the one on which rankings differ most, the one whose P(answered)
    is nearest to a half, if it is known, and one at random. The probability that a question is
    answered concerns the present search, with its rerankers.

    Parameters
    ----------
    folder : of the collection
    device : where its encoder and its rerankers run

    Raises InputError for a folder that is not a collection.
    """
    kind_of(str(folder)).check_writable(str(folder))
    store = judgments_of(folder)
    judged = {topic.qid for topic in store.topics()}
    topics = [
        Query(question.qid, question.text)
        for question in store.questions()
        if question.qid not in judged
    ]
    ordered = list(_take_turns(_ask(folder, topics, device))) if topics else []
    store.set_next_questions(ordered)
    return ordered


def _ask(folder: Path, topics: Sequence[Query], device: str) -> list[_Asked]:
    """What a collection says about questions, by its present search."""
    with ask_collection(folder, topics, device) as answers:
        asked = []
        for topic in topics:
            probability = answers.answered.get(topic.qid)
            doubt = None if probability is None else abs(probability - 0.5)
            asked.append(_Asked(topic, _agreement(topic.qid, answers.runs), doubt))
    return asked


def _agreement(qid: str, runs: Mapping[str, Run]) -> float:
    """How alike the rankings of a question are, 0 to 1."""
    rankings = [run[qid].docids for run in runs.values()]
    pairs = [rank_biased_overlap(one, other) for one, other in combinations(rankings, 2)]
    return fmean(pairs) if pairs else 1.0


def _take_turns(asked: Sequence[_Asked]) -> Iterator[NextQuestion]:
    """The questions, from each of their orders by turns."""
    orders: dict[WhyNext, list[_Asked]] = {}
    if any(question.agreement < 1 for question in asked):
        orders[WhyNext.DIFFERENT] = sorted(asked, key=lambda question: question.agreement)
    known = [question for question in asked if question.doubt is not None]
    if known:
        orders[WhyNext.UNSURE] = sorted(known, key=lambda question: question.doubt or 0.0)
    orders[WhyNext.RANDOM] = sorted(asked, key=_digest)
    taken: set[str] = set()
    while len(taken) < len(asked):
        for reason, order in orders.items():
            left = [question for question in order if question.topic.qid not in taken]
            if left:
                topic = left[0].topic
                taken.add(topic.qid)
                yield NextQuestion(topic.qid, topic.text, reason)


def _digest(question: _Asked) -> bytes:
    """By which questions are in a random order, which is always the same."""
    return hashlib.sha256(question.topic.text.encode()).digest()
