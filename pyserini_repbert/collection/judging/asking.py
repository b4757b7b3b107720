"""The judged questions of a collection, its hits for them, and how good these are.

Documents that are new are not judged yet, and would look like losses. So each question has two
figures: nDCG@10, and nDCG@10 of only the judged documents (Sakai's condensed lists, SIGIR 2007).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from pyserini_repbert.adapt.judged_topics import DEPTH
from pyserini_repbert.adapt.weights import ndcg
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.noted_rankings import runs_of_rankings
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import judged_only
from pyserini_repbert.evaluate.significance import bootstrap_interval
from pyserini_repbert.extension import open_by_extension
from pyserini_repbert.indexes.kind import kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.opening import open_resolved
from pyserini_repbert.pipeline.resolving import resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Run
from pyserini_repbert.trace import Notes

# Figures of fewer questions say little about others.
FEW_QUESTIONS = 20
DIGITS = 6
_Number = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True)
class JudgedQuestions:
    """The judged questions of a collection.

    Attributes
    ----------
    topics : those with a relevant document
    qrels : the judgments of these
    without_relevant : questions for which nobody judged a document relevant
    """

    topics: Sequence[Query]
    qrels: Qrels
    without_relevant: Sequence[Query] = ()

    @property
    def all_topics(self) -> list[Query]:
        """All judged questions."""
        return [*self.topics, *self.without_relevant]


def judged_questions(folder: Path) -> JudgedQuestions:
    """The questions to ask again. Raises InputError for a folder that is not a collection."""
    kind_of(str(folder)).check_writable(str(folder))
    store = judgments_of(folder)
    qrels = {}
    for qid, grades in store.qrels().items():
        if any(grade > 0 for grade in grades.values()):
            qrels[qid] = grades
    topics = []
    without_relevant = []
    for topic in store.topics():
        if topic.qid in qrels:
            topics.append(topic)
        else:
            without_relevant.append(topic)
    return JudgedQuestions(topics, qrels, without_relevant)


@dataclass(frozen=True)
class CollectionAnswers:
    """What a collection finds for questions with its present search.

    Attributes
    ----------
    generation : that was asked
    run : of the search, with the rerankers that a user set
    runs : of each ranking of it
    answered : P(answered) of each question, by qid; empty if it is not known
    """

    generation: Generation
    run: Run
    runs: Mapping[str, Run]
    answered: Mapping[str, float]


@contextlib.contextmanager
def ask_collection(
    folder: Path, topics: Sequence[Query], device: str
) -> Iterator[CollectionAnswers]:
    """The answers of a collection, whose generation stays open meanwhile."""
    machine = Machine(devices=(device,))
    resolved = resolve(PipelineSpec(index=str(folder)), machine)
    pipeline: Any = open_resolved(resolved, machine).pipeline
    with contextlib.closing(pipeline):
        notes = Notes()
        run = pipeline.rank(topics, None, DEPTH, notes)
        rerankers = {}
        if pipeline.rerankers is not None:
            stages = map(str, resolved.spec.stages)
            rerankers = dict(zip(stages, pipeline.rerankers.parts, strict=True))
        of_search = notes.parts['search']
        first = pipeline.first
        tell = open_by_extension('answered', first, rerankers=rerankers)
        answered = {} if tell is None else tell(topics, run, of_search)
        runs = runs_of_rankings(first, of_search)
        yield CollectionAnswers(first.generation, run, runs, answered)


@dataclass(frozen=True)
class QuestionValues:
    """nDCG@10 of each question, over all documents and over only the judged ones."""

    ndcg: Sequence[float]
    condensed: Sequence[float]


def question_values(judged: JudgedQuestions, run: Run) -> QuestionValues:
    """How well a run answers each question."""
    judged_run = judged_only(run, judged.qrels)
    plain = []
    condensed = []
    for topic in judged.topics:
        grades = judged.qrels[topic.qid]
        plain.append(round(ndcg(run[topic.qid], grades), DIGITS))
        condensed.append(round(ndcg(judged_run[topic.qid], grades), DIGITS))
    return QuestionValues(plain, condensed)


@checked_dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid'))
class MeanOfQuestions:
    """A mean over questions.

    Attributes
    ----------
    mean : over the questions
    low, high : of its 95% interval: the bootstrap percentiles over questions
    """

    mean: _Number
    low: _Number
    high: _Number


def mean_of_questions(values: Sequence[float]) -> MeanOfQuestions:
    """The mean of a value of each question, and its 95% interval."""
    mean = fmean(values)
    if len(set(values)) == 1:
        return MeanOfQuestions(mean, mean, mean)
    interval = bootstrap_interval(values, [0.0] * len(values))
    return MeanOfQuestions(
        round(mean, DIGITS), round(interval.low, DIGITS), round(interval.high, DIGITS)
    )
