"""A language model grades what a collection finds for its questions, beside people's judgments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging.model_grades import ModelGrade, ModelGradeStore
from pyserini_repbert.collection.judging.own_settings import teacher_of
from pyserini_repbert.collection.judgments import JudgmentStore
from pyserini_repbert.data.model_judges import model_of
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.language_models.judge import LanguageModelJudge
from pyserini_repbert.indexes.kind import kind_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.indexes.stores import DocumentStore
from pyserini_repbert.pipeline.opening import open_resolved
from pyserini_repbert.pipeline.pipeline import Pipeline
from pyserini_repbert.pipeline.resolving import resolve
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Ranking
from pyserini_repbert.trace import Notes


@dataclass(frozen=True)
class ModelJudging:
    """What became of a pool.

    Attributes
    ----------
    graded : documents that got a grade now
    known : documents that had one of the same model and prompt
    ungraded : documents for which the model gave no grade
    """

    graded: int
    known: int
    ungraded: int


def grade_pool(
    folder: Path,
    judge: LanguageModelJudge,
    depth: int,
    device: str = 'cpu',
    even_if_circular: bool = False,
    on_progress: Callable[[int], object] = int,
) -> ModelJudging:
    """Let a language model grade the pool of each question of a collection, and store its grades.

    The pool has the best documents of the present search and of each of its rankings. It also has
    the documents that people judged, to show how well the model agrees. The grades of a question
    are stored together.

    Parameters
    ----------
    folder : of the collection
    judge : the model
    depth : how many of the best documents of each ranking
    device : where the collection's encoder runs
    even_if_circular : also where the same model taught how the collection ranks
    on_progress : called with 1 after each question

    Raises InputError for a folder that is not a collection, for one without questions, and if the
    same model taught how it ranks; and the errors of `LanguageModelJudge.grade`.
    """
    kind_of(str(folder)).check_writable(str(folder))
    store = judgments_of(folder)
    if not even_if_circular:
        _check_not_circular(folder, store, judge.judge.model)
    topics = [Query(question.qid, question.text) for question in store.questions()]
    if not topics:
        raise InputError(
            f'collection {folder} has no questions: add some, here or in the page of `serve`',
            parameters=('questions',),
        )
    machine = Machine(devices=(device,))
    resolved = resolve(PipelineSpec(index=str(folder)), machine)
    index: Any = resolved.index
    pipeline: Any = open_resolved(resolved, machine).pipeline
    with contextlib.closing(pipeline):
        pools = _pools(pipeline, topics, store, depth)
        grading = _Grading(judge, ModelGradeStore(store.path), index.store(machine))
        for topic in topics:
            ranking = Ranking(pools[topic.qid], [0.0] * len(pools[topic.qid]))
            grading.grade(topic, pipeline.first.with_stored_texts(topic.text, ranking))
            on_progress(1)
    return ModelJudging(grading.graded, grading.known, grading.ungraded)


class _Grading:
    """Grades the documents of one question after the other.

    Parameters
    ----------
    judge : the model
    store : gets the grades
    documents : of the collection's generation

    Attributes
    ----------
    graded, known, ungraded : as in `ModelJudging`
    """

    def __init__(
        self, judge: LanguageModelJudge, store: ModelGradeStore, documents: DocumentStore
    ) -> None:
        self._judge = judge
        self._store = store
        self._documents = documents
        # The version of each document that has a grade, by question and docid.
        self._versions: dict[tuple[str, str], str] = {}
        for grade in store.grades(judge.judge.name):
            self._versions[grade.question, grade.docid] = grade.version
        self.graded = 0
        self.known = 0
        self.ungraded = 0

    def grade(self, topic: Query, hits: Ranking) -> None:
        """Grade the documents of a question whose present text has no grade, and store the grades.

        `hits` have texts; one without is left out.
        """
        versions = self._documents.versions(hits.docids)
        grades = []
        for hit, version in zip(hits, versions, strict=True):
            if not hit.text:
                continue
            if self._versions.get((topic.text, hit.docid)) == version:
                self.known += 1
                continue
            value = self._judge.grade(topic.text, hit.text)
            if value is None:
                self.ungraded += 1
                continue
            grades.append(
                ModelGrade(
                    question=topic.text,
                    docid=hit.docid,
                    grade=value,
                    generation=self._documents.digest,
                    version=version,
                )
            )
        if grades:
            self._store.add_grades(self._judge.judge, grades)
        self.graded += len(grades)


def _pools(
    pipeline: Pipeline, topics: Sequence[Query], store: JudgmentStore, depth: int
) -> dict[str, list[str]]:
    """The docids to grade for each question, by qid, in order: the best of each ranking and of the
    present search, and those that people judged.
    """
    notes = Notes()
    runs = [pipeline.searching_deeper(depth).rank(topics, None, depth, notes)]
    runs += [part.run for part in notes.leaves()]
    judged: dict[str, list[str]] = {}
    for judgment in store.judgments():
        judged.setdefault(judgment.question, []).append(judgment.docid)
    pools = {}
    for topic in topics:
        docids = set(judged.get(topic.text, []))
        for run in runs:
            docids.update(run[topic.qid].docids[:depth])
        pools[topic.qid] = sorted(docids)
    return pools


def _check_not_circular(folder: Path, store: JudgmentStore, model: str) -> None:
    """Raises InputError if the model's grades taught how the collection is searched."""
    in_use = store.in_use()
    teacher = None if in_use is None else teacher_of(folder / in_use.folder)
    if teacher is not None and model_of(teacher) == model:
        raise InputError(
            f"'{model}' would judge a search that its own grades taught: {folder} is searched "
            f"as it learned from '{teacher}': let another model judge",
            parameters=('even_if_circular',),
        )
