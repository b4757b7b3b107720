"""Ask the judged questions of a collection again, to show what a sync has changed.

Documents that are new are not judged yet, and would look like losses. So each question has two
figures: nDCG@10, and nDCG@10 of only the judged documents (Sakai's condensed lists, SIGIR 2007).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from pyserini_repbert.adapt.weights import CUT
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.generation import Generation, read_known
from pyserini_repbert.collection.judging.asking import (
    DIGITS,
    JudgedQuestions,
    ask_collection,
    judged_questions,
    mean_of_questions,
    question_values,
)
from pyserini_repbert.collection.judgments import JudgmentStore
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.watching.measured import (
    GenerationChange,
    MeasuredGeneration,
    MeasuredQuestion,
    MovedQuestion,
)
from pyserini_repbert.extensions.watching.stored import (
    store_generation,
    stored_generations,
    stored_rankings,
)
from pyserini_repbert.ranking import Query, Run

# A P(answered) that moves by less is not news.
_LEAST_MOVE = 0.1


def is_measured(folder: Path) -> bool:
    """Whether the newest generation was measured with the present judgments and search settings."""
    store = judgments_of(folder)
    measured = stored_generations(store)
    if not measured:
        return False
    newest = measured[-1]
    is_newest = newest.manifest_sha256 == read_known(folder).sha256
    return is_newest and newest.asked == _digest(store)


def measure_generation(folder: Path, device: str = 'cpu') -> MeasuredGeneration:
    """Search a collection for its judged questions, with the present search, and store the results.

    Parameters
    ----------
    folder : of the collection
    device : where its encoder runs

    Where the newest generation was asked the same questions already, that is returned. Raises
    InputError for a collection without a question that has a relevant document.
    """
    store = judgments_of(folder)
    if is_measured(folder):
        return stored_generations(store)[-1]
    judged = judged_questions(folder)
    if not judged.topics:
        raise InputError(
            f'nobody has judged a document of {folder} relevant: judge in the page of `serve`, or '
            'import judgments with `index judgments`'
        )
    asked = _digest(store)
    before = stored_generations(store)
    with ask_collection(folder, judged.all_topics, device) as answers:
        generation = answers.generation
        run = answers.run
        measured = _measure(generation, judged, run, answers.answered)
        measured = replace(measured, asked=asked)
        if before and before[-1].asked == asked and before[-1].generation < generation.number:
            change = _change(before[-1], measured, stored_rankings(store), run, judged.qrels)
            if change is not None:
                measured = replace(measured, change=_mark_deleted(change, generation))
    rankings = {topic.qid: run[topic.qid].docids[:CUT] for topic in judged.topics}
    store_generation(store, measured, rankings)
    return measured


def _digest(store: JudgmentStore) -> str:
    """Of all that decides whether two measurements can be compared, except for the documents.

    A document that is renamed keeps its judgments, so no docid counts.
    """
    in_use = store.in_use()
    judgments = [
        [judgment.question, judgment.judge, judgment.judged, judgment.grade]
        for judgment in store.judgments()
    ]
    parts = [None if in_use is None else in_use.number, sorted(judgments)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _measure(
    generation: Generation, judged: JudgedQuestions, run: Run, answered: Mapping[str, float]
) -> MeasuredGeneration:
    """The figures of a generation, without a comparison."""
    values = question_values(judged, run)
    questions = []
    n_judged = 0
    n_hits = 0
    for topic, plain, condensed in zip(judged.topics, values.ndcg, values.condensed, strict=True):
        grades = judged.qrels[topic.qid]
        best = run[topic.qid].docids[:CUT]
        n_hits += len(best)
        n_judged += sum(docid in grades for docid in best)
        questions.append(_measured_question(topic, plain, condensed, answered))
    without_relevant = [
        _measured_question(topic, 0.0, 0.0, answered) for topic in judged.without_relevant
    ]
    return MeasuredGeneration(
        generation=generation.number,
        manifest_sha256=generation.sha256,
        measured=datetime.now(UTC).isoformat(timespec='seconds'),
        asked='',
        judged_share=round(n_judged / max(n_hits, 1), DIGITS),
        ndcg=mean_of_questions(values.ndcg),
        condensed=mean_of_questions(values.condensed),
        answered=round(fmean(answered.values()), DIGITS) if answered else None,
        questions=tuple(questions),
        without_relevant=tuple(without_relevant),
    )


def _measured_question(
    topic: Query, ndcg_value: float, condensed: float, answered: Mapping[str, float]
) -> MeasuredQuestion:
    probability = answered.get(topic.qid)
    return MeasuredQuestion(
        qid=topic.qid,
        question=topic.text,
        ndcg=ndcg_value,
        condensed=condensed,
        answered=None if probability is None else round(probability, DIGITS),
    )


def _change(
    before: MeasuredGeneration,
    after: MeasuredGeneration,
    rankings: Mapping[str, Sequence[str]],
    run: Run,
    qrels: Qrels,
) -> GenerationChange | None:
    """A generation against the one before, in the questions that both have; None if there is none.

    Which documents are deleted is not said yet.

    Parameters
    ----------
    before, after : figures of questions
    rankings : the best docids of each question before, by qid
    run : the rankings now
    qrels : the judgments
    """
    old_by_qid = {question.qid: question for question in before.questions}
    pairs: list[tuple[MeasuredQuestion, MeasuredQuestion]] = [
        (old_by_qid[new.qid], new) for new in after.questions if new.qid in old_by_qid
    ]
    if not pairs:
        return None
    moved = []
    for old, new in pairs:
        question = _compare_question(
            old,
            new,
            first=rankings.get(new.qid, []),
            second=run[new.qid].docids[:CUT],
            grades=qrels[new.qid],
        )
        if _has_moved(old, new) or question.left:
            moved.append(question)
    # The worst come first, by the judged documents.
    moved.sort(key=lambda question: (-question.loss, question.after.ndcg - question.before.ndcg))
    return GenerationChange(
        since=before.generation,
        ndcg=mean_of_questions([new.ndcg - old.ndcg for old, new in pairs]),
        condensed=mean_of_questions([new.condensed - old.condensed for old, new in pairs]),
        questions=tuple(moved),
    )


def _compare_question(
    before: MeasuredQuestion,
    after: MeasuredQuestion,
    *,
    first: Sequence[str],
    second: Sequence[str],
    grades: Mapping[str, int],
) -> MovedQuestion:
    """A question's answers in two generations.

    Parameters
    ----------
    before, after : its figures
    first, second : the best docids before, and now
    grades : of its judged documents
    """
    left = [docid for docid in first if grades.get(docid, 0) > 0 and docid not in second]
    entered = [docid for docid in second if docid not in first]
    return MovedQuestion(
        before=before,
        after=after,
        left=tuple(left),
        deleted=(),
        entered=tuple(entered),
        unjudged=tuple(docid for docid in entered if docid not in grades),
    )


def _has_moved(before: MeasuredQuestion, after: MeasuredQuestion) -> bool:
    """Whether a question's figures differ by more than a hair."""
    if (before.ndcg, before.condensed) != (after.ndcg, after.condensed):
        return True
    if before.answered is None or after.answered is None:
        return False
    return abs(after.answered - before.answered) >= _LEAST_MOVE


def _mark_deleted(change: GenerationChange, generation: Generation) -> GenerationChange:
    """The same change, with the documents that the generation does not have."""
    questions = []
    for question in change.questions:
        docnos = generation.docnos(question.left).tolist()
        deleted = [docid for docid, docno in zip(question.left, docnos, strict=True) if docno < 0]
        questions.append(replace(question, deleted=tuple(deleted)))
    return replace(change, questions=tuple(questions))
