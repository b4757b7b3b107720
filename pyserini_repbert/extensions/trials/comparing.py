"""What a trial would change: a collection's present first stage, and the trial's."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from pyserini_repbert.adapt.judged_topics import DEPTH
from pyserini_repbert.adapt.weights import CUT
from pyserini_repbert.collection.generation import Generation, open_generation
from pyserini_repbert.collection.judging.asking import (
    JudgedQuestions,
    MeanOfQuestions,
    judged_questions,
    mean_of_questions,
    question_values,
)
from pyserini_repbert.collection.opened_searches import OpenedSearches
from pyserini_repbert.collection.settings import EncoderSource
from pyserini_repbert.evaluate.overlap import overlap
from pyserini_repbert.evaluate.significance import paired_t_test
from pyserini_repbert.extensions.trials.trying import open_trial
from pyserini_repbert.ranking import Run


@dataclass(frozen=True)
class MeasureOfTrial:
    """A measure of the present search and of the trial.

    Attributes
    ----------
    now, trial : means over the questions
    difference : of the trial from now
    p : of the paired t-test; None for one question
    """

    now: float
    trial: float
    difference: MeanOfQuestions
    p: float | None


@dataclass(frozen=True)
class TrialComparison:
    """A trial compared with the present search, on the judged questions of a collection.

    Attributes
    ----------
    n_questions : that were asked
    ndcg : nDCG@10; unjudged documents count as not relevant
    condensed : nDCG@10 of only the judged documents
    in_common : mean share of the best ten that both have
    seconds_now, seconds_trial : of a question, the median
    """

    n_questions: int
    ndcg: MeasureOfTrial
    condensed: MeasureOfTrial
    in_common: float
    seconds_now: float
    seconds_trial: float


@dataclass(frozen=True)
class _Answers:
    """What a search answers, and the median seconds that a question took."""

    run: Run
    seconds: float


def compare_trial(folder: Path, device: str = 'cpu') -> TrialComparison | None:
    """A trial compared with the present search; None without a judged question.

    Rerankers are left out: they read passages of the live generation.

    Parameters
    ----------
    folder : of the collection
    device : where encoders run

    Raises InputError without a trial, or with one of an earlier generation.
    """
    judged = judged_questions(folder)
    if not judged.topics:
        return None
    now = _answers(open_generation(folder), judged, device)
    trial = _answers(open_trial(folder), judged, device)
    first = question_values(judged, now.run)
    second = question_values(judged, trial.run)
    shares = []
    for topic in judged.topics:
        before = now.run[topic.qid].docids[:CUT]
        after = trial.run[topic.qid].docids[:CUT]
        shares.append(overlap(before, after, CUT))
    return TrialComparison(
        n_questions=len(judged.topics),
        ndcg=_measure(first.ndcg, second.ndcg),
        condensed=_measure(first.condensed, second.condensed),
        in_common=fmean(shares),
        seconds_now=now.seconds,
        seconds_trial=trial.seconds,
    )


def _measure(now: Sequence[float], trial: Sequence[float]) -> MeasureOfTrial:
    """A measure of both searches, from the values of each question."""
    differences = [after - before for before, after in zip(now, trial, strict=True)]
    p = paired_t_test(trial, now).p if len(now) > 1 else None
    return MeasureOfTrial(fmean(now), fmean(trial), mean_of_questions(differences), p)


def _answers(generation: Generation, judged: JudgedQuestions, device: str) -> _Answers:
    """Ask all questions of a generation, one after the other, and close it."""
    searches = OpenedSearches(EncoderSource(device=device))
    with contextlib.closing(generation), contextlib.closing(searches.open(generation)) as searcher:
        # The first question opens what the others use.
        searcher.rank(judged.topics[:1], None, DEPTH)
        run: Run = {}
        seconds = []
        for topic in judged.topics:
            began = time.perf_counter()
            run |= searcher.rank([topic], None, DEPTH)
            seconds.append(time.perf_counter() - began)
    return _Answers(run, median(seconds))
