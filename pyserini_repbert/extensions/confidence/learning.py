"""A collection learns how likely its hits are relevant, and its questions answered.

Each question is judged by models that other folds taught, the folds of `adapt`. It is asked twice:
unchanged, and with its relevant documents removed from all rankings, which is the hard case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.adapt.judged_topics import DEPTH, FOLDS, deal_folds, number_texts
from pyserini_repbert.collection.noted_rankings import relevances_of, runs_of_rankings
from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.data.qrels import Qrels
from pyserini_repbert.evaluate.measures import counts_unjudged
from pyserini_repbert.extensions.confidence.features import HitFeatures, question_features
from pyserini_repbert.extensions.confidence.models import (
    TOP,
    ConfidenceModel,
    HeldOutTest,
    LogisticModel,
    chance_auc,
    fit_logistic,
)
from pyserini_repbert.extensions.confidence.reliability import (
    area_under_roc,
    brier_score,
    expected_calibration_error,
)
from pyserini_repbert.pipeline.pipeline import Pipeline
from pyserini_repbert.ranking import Query, Ranking, Run
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.trace import Notes

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class AskedQuestion:
    """A judged question, with and without its answers.

    Attributes
    ----------
    text : number of its text
    hits : features of its judged hits among the best `TOP`, (hits, features)
    relevant : whether each is relevant
    question : its features
    is_answered : whether a relevant hit is among the best `TOP`
    removed : its features where its relevant documents are taken out
    """

    text: int
    hits: Rows
    relevant: tuple[bool, ...]
    question: Rows
    is_answered: bool
    removed: Rows


@dataclass(frozen=True)
class Reliability:
    """The reliability of probabilities on held-out questions.

    Attributes
    ----------
    n : how many there are
    auc : None if all outcomes are the same
    brier, ece : as in `reliability`
    chance_auc : an AUC above it is more than chance, as in `models`; None if there is none
    """

    n: int
    auc: float | None
    brier: float
    ece: float
    chance_auc: float | None

    @classmethod
    def of(
        cls, probabilities: Rows, outcomes: NDArray[np.bool_], questions: Sequence[int]
    ) -> Reliability:
        """Of probabilities, (n,), what came true, and the number of the question of each."""
        return cls(
            n=len(outcomes),
            auc=area_under_roc(probabilities, outcomes),
            brier=brier_score(probabilities, outcomes),
            ece=expected_calibration_error(probabilities, outcomes),
            chance_auc=chance_auc(questions, outcomes.tolist()),
        )

    @property
    def test(self) -> HeldOutTest:
        """Whether the probabilities tell more than chance."""
        return HeldOutTest(self.auc, self.chance_auc)


@dataclass(frozen=True)
class FittedModels:
    """The models of hits and of questions."""

    hits: LogisticModel
    questions: LogisticModel


@dataclass(frozen=True)
class LearnedConfidence:
    """What was learned, and its reliability on held-out questions.

    Attributes
    ----------
    models : fitted to all questions
    hits : of P(relevant)
    questions : for the probability that a question is answered: each question unchanged, and with
        its answers removed
    counts_unjudged : whether unjudged hits counted as not relevant
    elsewhere_auc : how often a held-out question has a greater P(answered) than a question of
        another collection; None if none was asked
    """

    models: FittedModels
    hits: Reliability
    questions: Reliability
    counts_unjudged: bool
    elsewhere_auc: float | None = None

    def model(
        self, encoder_weights: str, search: Mapping[str, Any], stages: Sequence[str] = ()
    ) -> ConfidenceModel:
        """The stored part.

        Parameters
        ----------
        encoder_weights : SHA-256 of the encoder
        search : that was asked, as `SearchedRankings.description` gives it
        stages : the rerankers that were asked
        """
        return ConfidenceModel(
            hits=self.models.hits,
            questions=self.models.questions,
            source='learned',
            hits_test=self.hits.test,
            questions_test=self.questions.test,
            search=dict(search),
            encoder_weights=encoder_weights,
            stages=tuple(stages),
        )


@dataclass(frozen=True)
class SearchedTopics:
    """What a collection finds for topics, before any reranker.

    Attributes
    ----------
    searcher : of the collection
    topics : all that were searched for
    run : the hits of each
    runs : the hits of each ranking, by `CollectionRanking`
    """

    searcher: CollectionSearcher
    topics: Sequence[Query]
    run: Run
    runs: Mapping[str, Run]


def search_topics(searcher: CollectionSearcher, topics: Sequence[Query]) -> SearchedTopics:
    """Search a collection for all topics at once."""
    notes = Notes()
    run = searcher.rank(topics, None, DEPTH, notes)
    return SearchedTopics(searcher, topics, run, runs_of_rankings(searcher, notes))


class _ReadSearch:
    """The best `TOP` hits of topics, with their features.

    Parameters
    ----------
    searched : the topics
    rerankers : read the best hits, one after the other
    """

    def __init__(self, searched: SearchedTopics, rerankers: Sequence[Reranker]) -> None:
        self._searcher = searched.searcher
        self._rerankers = rerankers
        self._features = HitFeatures(self._searcher.dense, self._searcher.words)
        self._runs = searched.runs
        self._run = self._rerank(searched.topics, searched.run)

    def hits(self, topic: Query) -> ReadHits:
        """The hits of one of the topics."""
        rankings = {name: run[topic.qid] for name, run in self._runs.items()}
        return self._read(topic, self._run[topic.qid], rankings)

    def hits_without(self, topic: Query, docids: set[str]) -> ReadHits:
        """Its hits where these documents are taken out of all rankings."""
        rankings = {name: _without(run[topic.qid], docids) for name, run in self._runs.items()}
        parts: list[Run] = [{topic.qid: ranking} for ranking in rankings.values()]
        # The last stage scores the other rankings again, so it determines the search.
        is_whole = len(parts) == 1 or CollectionRanking.RESCORED in rankings
        fused = parts[-1] if is_whole else self._searcher.fused([topic], parts, DEPTH)
        reranked = self._rerank([topic], fused)
        return self._read(topic, reranked[topic.qid], rankings)

    def _rerank(self, topics: Sequence[Query], run: Run) -> Run:
        if not self._rerankers:
            return run
        return Pipeline(self._rerankers, self._searcher).rank(topics, run, None)

    def _read(self, topic: Query, ranking: Ranking, rankings: Mapping[str, Ranking]) -> ReadHits:
        relevances = None
        if self._rerankers:
            relevances = relevances_of(ranking, self._rerankers[-1])
        docids = ranking.docids[:TOP]
        return ReadHits(docids, self._features.of_hits(topic.text, docids, rankings, relevances))


@dataclass(frozen=True)
class ReadHits:
    """The best hits of a question, and their features, (hits, features)."""

    docids: Sequence[str]
    rows: Rows


def ask_questions(
    searched: SearchedTopics, qrels: Qrels, rerankers: Sequence[Reranker] = ()
) -> list[AskedQuestion]:
    """All topics, asked with and without their answers.

    Parameters
    ----------
    searched : topics with a relevant document (`judged_topics`)
    qrels : what people judged
    rerankers : read the best hits, one after the other; with some, hits have a further feature
    """
    judged = searched.topics
    search = _ReadSearch(searched, rerankers)
    counts_all = counts_unjudged(qrels)
    asked = []
    for number, topic in zip(number_texts(judged), judged, strict=True):
        grades = qrels[topic.qid]
        answers = relevant_docids(grades)
        hits = search.hits(topic)
        left = search.hits_without(topic, answers)
        known_rows = []
        relevant = []
        for row, docid in enumerate(hits.docids):
            if counts_all or docid in grades:
                known_rows.append(row)
                relevant.append(docid in answers)
        question = AskedQuestion(
            text=number,
            hits=hits.rows[known_rows],
            relevant=tuple(relevant),
            question=question_features(hits.rows),
            is_answered=not answers.isdisjoint(hits.docids),
            removed=question_features(left.rows),
        )
        asked.append(question)
    return asked


def ask_all(
    parts: Sequence[SearchedTopics], qrels: Qrels, rerankers: Sequence[Reranker] = ()
) -> list[AskedQuestion]:
    """The topics of several searches, such as the searches of folds; other parameters as in
    `ask_questions`.
    """
    topics: list[Query] = []
    asked = []
    for part in parts:
        topics += part.topics
        asked += ask_questions(part, qrels, rerankers)
    numbers = number_texts(topics)
    return [replace(question, text=number) for question, number in zip(asked, numbers, strict=True)]


def judged_topics(topics: Sequence[Query], qrels: Qrels) -> list[Query]:
    """The topics with a relevant document."""
    return [topic for topic in topics if relevant_docids(qrels.get(topic.qid, {}))]


def relevant_docids(grades: Mapping[str, int]) -> set[str]:
    """The documents that are relevant by their grades."""
    return {docid for docid, grade in grades.items() if grade > 0}


def _without(ranking: Ranking, docids: set[str]) -> Ranking:
    """A ranking without some documents."""
    rows = [row for row, docid in enumerate(ranking.docids) if docid not in docids]
    return ranking.select_rows(rows, [ranking.scores[row] for row in rows])


def fit_models(asked: Sequence[AskedQuestion]) -> FittedModels:
    """The models that questions teach."""
    questions = _questions(asked)
    n_questions = len({question.text for question in asked})
    relevant: list[bool] = []
    for question in asked:
        relevant += question.relevant
    hits = np.concatenate([question.hits for question in asked])
    return FittedModels(
        hits=fit_logistic(hits, relevant, n_questions=n_questions),
        questions=fit_logistic(questions.rows, questions.outcomes, n_questions=n_questions),
    )


@dataclass(frozen=True)
class _Questions:
    """Features of questions, (n, features), and whether each is answered."""

    rows: Rows
    outcomes: NDArray[np.bool_]


def _questions(asked: Sequence[AskedQuestion]) -> _Questions:
    """The unchanged questions, then the questions with their answers removed."""
    rows = [question.question for question in asked] + [question.removed for question in asked]
    outcomes = [question.is_answered for question in asked] + [False] * len(asked)
    return _Questions(np.stack(rows), np.array(outcomes))


def judge_models(
    asked: Sequence[AskedQuestion], models: Sequence[FittedModels]
) -> Mapping[str, Reliability]:
    """The reliability of P(relevant), 'hits', and P(answered), 'questions'.

    Parameters
    ----------
    asked : the questions
    models : of each question: those that judge it
    """
    hit_values: list[float] = []
    relevant: list[bool] = []
    texts_of_hits: list[int] = []
    as_is: list[float] = []
    removed: list[float] = []
    for question, judging in zip(asked, models, strict=True):
        hit_values += judging.hits.probabilities(question.hits).tolist()
        relevant += question.relevant
        texts_of_hits += [question.text] * len(question.relevant)
        both = np.stack([question.question, question.removed])
        first, second = judging.questions.probabilities(both).tolist()
        as_is.append(first)
        removed.append(second)
    texts = [question.text for question in asked]
    outcomes = _questions(asked).outcomes
    return {
        'hits': Reliability.of(np.array(hit_values), np.array(relevant, bool), texts_of_hits),
        'questions': Reliability.of(np.array(as_is + removed), outcomes, texts + texts),
    }


def learn_confidence(
    asked: Sequence[AskedQuestion],
    seed: int = 0,
    unjudged_count: bool = False,
    elsewhere: Rows | None = None,
) -> LearnedConfidence:
    """Models of all questions, and their reliability by cross-validation.

    Parameters
    ----------
    asked : at least one in each fold
    seed : draws the folds, as in `adapt`
    unjudged_count : what `counts_unjudged` said of the judgments
    elsewhere : features of questions of another collection, (m, features): the easy case
    """
    folds = deal_folds([question.text for question in asked], seed)
    of_fold = []
    for fold in range(FOLDS):
        of_fold.append(fit_models([q for q in asked if folds[q.text] != fold]))
    of_question = [of_fold[folds[question.text]] for question in asked]
    judged = judge_models(asked, of_question)
    return LearnedConfidence(
        models=fit_models(asked),
        hits=judged['hits'],
        questions=judged['questions'],
        counts_unjudged=unjudged_count,
        elsewhere_auc=_elsewhere_auc(asked, of_question, elsewhere),
    )


def features_elsewhere(searched: SearchedTopics, rerankers: Sequence[Reranker] = ()) -> Rows:
    """The features of questions of another collection, (m, features)."""
    search = _ReadSearch(searched, rerankers)
    return np.stack([question_features(search.hits(topic).rows) for topic in searched.topics])


def _elsewhere_auc(
    asked: Sequence[AskedQuestion], models: Sequence[FittedModels], elsewhere: Rows | None
) -> float | None:
    """The AUC that separates the probabilities of answered questions from another collection's
    questions.

    Parameters
    ----------
    asked : the questions; those without an answer among the best hits are left out
    models : of each question: those that judge it, and its share of the other questions
    elsewhere : features of the others; None: there are none
    """
    if elsewhere is None:
        return None
    values = []
    outcomes = []
    for number, (question, judging) in enumerate(zip(asked, models, strict=True)):
        if question.is_answered:
            values += judging.questions.probabilities(question.question[None]).tolist()
            outcomes.append(True)
        share = elsewhere[number :: len(asked)]
        values += judging.questions.probabilities(share).tolist()
        outcomes += [False] * len(share)
    return area_under_roc(np.array(values), np.array(outcomes))
