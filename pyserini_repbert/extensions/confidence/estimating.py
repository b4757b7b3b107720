"""How likely the hits of a collection are relevant, and its questions answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.answers import SEARCH, answer_of
from pyserini_repbert.collection.noted_rankings import (
    KNOWN_HITS,
    relevances_of,
    runs_of_rankings,
    topic_rankings,
)
from pyserini_repbert.collection.search_description import SearchedRankings, differences_text
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.confidence.features import HitFeatures, question_features
from pyserini_repbert.extensions.confidence.models import (
    TOP,
    ConfidenceModel,
    Source,
    Verdict,
    parse_model,
    verdict,
)
from pyserini_repbert.fusion.fused import look_deeper
from pyserini_repbert.pipeline.pipeline import Pipeline
from pyserini_repbert.ranking import Candidate, Query, Ranker, Ranking, Run, check_question
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.rerank.base import Reranker

# Of `Collection.search` and of retrievers.
ARGUMENT = 'confidence'
# Where a learning's report has its models: of its search, and of the same without rerankers.
MODEL = 'model'
PLAIN_MODEL = 'model_without_rerankers'
# For the offered search, if it differs, and for the same search without rerankers.
OFFERED_MODEL = 'model_of_offered'
OFFERED_PLAIN_MODEL = 'model_of_offered_without_rerankers'
MODELS = (MODEL, PLAIN_MODEL, OFFERED_MODEL, OFFERED_PLAIN_MODEL)


class ConfidenceLostError(InputError):
    """A search has no probabilities, and another search of the collection had some."""


@dataclass(frozen=True, slots=True)
class HitWithProbability(Candidate):
    """A hit; `probability` is that it is relevant."""

    probability: float = 0.0

    @property
    def added(self) -> Mapping[str, Any]:
        return {'probability': self.probability}


@dataclass(frozen=True)
class AnswerConfidence:
    """How far the answer to a question can be believed.

    Attributes
    ----------
    found : 'likely', 'weak' or 'nothing'
    answered : the probability that a document among the best hits answers the question
    relevant : the probability of each hit that it is relevant, in the order of the hits
    source : 'learned' from the collection's judgments
    """

    found: Verdict
    answered: float
    relevant: tuple[float, ...]
    source: Source

    def believed_rows(self, least: float | None) -> list[int]:
        """The rows of the hits of at least this P(relevant), in their order; None: of all."""
        relevant = enumerate(self.relevant)
        return [row for row, probability in relevant if least is None or probability >= least]


class ConfidenceEstimator:
    """Estimates probabilities for one search of a collection.

    Parameters
    ----------
    search : its rankings and their fusion
    model : default: what the collection learned
    stages : the rerankers of the search, as NAME@K

    Raises InputError if there is no model with reliable numbers.
    """

    def __init__(
        self,
        search: SearchedRankings,
        model: ConfidenceModel | None = None,
        stages: Sequence[str] = (),
    ) -> None:
        self.rankings = search.names
        self.model = model or model_for(search, stages)
        self._features = HitFeatures(search.dense, search.words)

    @classmethod
    def of(
        cls,
        searcher: CollectionSearcher,
        model: ConfidenceModel | None = None,
        stages: Sequence[str] = (),
    ) -> Self:
        """The estimator for a collection's search; parameters and errors as in the class."""
        return cls(SearchedRankings.of(searcher), model, stages)

    @property
    def reads_relevances(self) -> bool:
        """Whether it asks what the last reranker says of the hits."""
        return bool(self.model.stages)

    def estimate(
        self,
        query: str,
        docids: Sequence[str],
        rankings: Mapping[str, Ranking],
        relevances: Mapping[str, float] | None = None,
    ) -> AnswerConfidence:
        """The probabilities of a question and its hits.

        Parameters
        ----------
        query : the question
        docids : of its hits, best first, at least `TOP` if there are so many. These decide whether
            it is answered. A reranker may have ordered them.
        rankings : of the search, by `CollectionRanking`
        relevances : as `relevances_of` gives them, if `reads_relevances`
        """
        if not self.reads_relevances:
            relevances = None
        rows = self._features.of_hits(query, docids, rankings, relevances)
        answered = 0.0
        if len(rows):
            question = question_features(rows)
            (answered,) = self.model.questions.probabilities(question[None]).tolist()
        # A relevant hit answers: none is likelier than an answer is.
        relevant = self.model.hits.probabilities(rows).clip(max=answered).tolist()
        return AnswerConfidence(verdict(answered), answered, tuple(relevant), self.model.source)


def model_for(search: SearchedRankings, stages: Sequence[str] = ()) -> ConfidenceModel:
    """What the collection learned for this search.

    Parameters
    ----------
    search : its rankings and their fusion
    stages : its rerankers, as NAME@K

    Raises InputError if there is none, and if tests do not support its numbers. If another search
    has a supported one, raises ConfidenceLostError.
    """
    settings = search.dense.generation.settings
    learned = _learned_models(search.dense.generation.folder, settings.models_sha256)
    model = _model_of_search(learned, search, stages)
    shown_elsewhere = any(other.why_not_shown() is None for other in learned)
    error_type = ConfidenceLostError if shown_elsewhere else InputError
    if model is None and learned:
        differences = _differences_text(learned[0], search, stages)
        raise error_type(
            f'confidence was learned for another search ({differences}): search as the collection '
            'does, or set it to search so, and let it learn'
        )
    if model is None:
        reranked = f' with {" ".join(stages)}' if stages else ''
        raise InputError(
            f"confidence is not known for encoder '{settings.encoder}' and the rankings "
            f'{" ".join(search.names)}{reranked}: judge questions, and let the collection learn'
        )
    problem = model.why_not_shown()
    if problem is not None:
        raise error_type(
            f'confidence cannot be estimated here: {problem}: judge more questions, and let the '
            'collection learn'
        )
    return model


def _learned_models(folder: Path, models_sha256: str) -> list[ConfidenceModel]:
    """What a collection learned with its models of today, the newest first."""
    store = judgments_of(folder)
    models = []
    for learning in reversed(store.learnings()):
        stored = learning.report.get('confidence')
        is_of_models = learning.encoder_weights == models_sha256
        if learning.is_settings or not is_of_models or not isinstance(stored, dict):
            continue
        models += [parse_model(stored[name], store.path) for name in MODELS if name in stored]
    return models


def _model_of_search(
    models: Sequence[ConfidenceModel], search: SearchedRankings, stages: Sequence[str]
) -> ConfidenceModel | None:
    """The first model of this search; None without one."""
    description = search.description()
    for model in models:
        if model.search == description and model.stages == tuple(stages):
            return model
    return None


def _differences_text(
    model: ConfidenceModel, search: SearchedRankings, stages: Sequence[str]
) -> str:
    """How a search differs from a model's search."""
    learned = {**model.search, 'rerank': list(model.stages) or None}
    return differences_text(learned, {**search.description(), 'rerank': list(stages) or None})


def open_search(
    ranker: Ranker, argument: str, rerankers: Mapping[str, Reranker] | None = None
) -> Callable[[str, int], list[Candidate]] | None:
    """What searches with probabilities, as `search_with_confidence` does; None for the search of
    another index, and for any argument except `confidence`.

    Parameters
    ----------
    ranker : an open search
    argument : of `Collection.search` or of a retriever
    rerankers : of the search, by their stages
    """
    if argument != ARGUMENT or not isinstance(ranker, CollectionSearcher):
        return None
    return partial(search_with_confidence, ranker, rerankers=rerankers)


def open_answered(
    first: CollectionSearcher, rerankers: Mapping[str, Reranker]
) -> Callable[[Sequence[Query], Run, Notes], dict[str, float]] | None:
    """What gives P(answered) of each question, by qid; None if nothing was learned that could
    tell it.

    Parameters
    ----------
    first : the search of a collection
    rerankers : by which its hits are reranked, by their stages

    It takes the questions, their hits, and what the search reported.
    """
    try:
        estimator = ConfidenceEstimator.of(first, stages=tuple(rerankers))
    except InputError:
        return None

    def answered(topics: Sequence[Query], run: Run, notes: Notes) -> dict[str, float]:
        runs = runs_of_rankings(first, notes)
        probabilities = {}
        for topic in topics:
            rankings = {name: ranked[topic.qid] for name, ranked in runs.items()}
            ranking = run[topic.qid]
            relevances = None
            if rerankers:
                relevances = relevances_of(ranking, list(rerankers.values())[-1])
            docids = ranking.docids[:TOP]
            estimated = estimator.estimate(topic.text, docids, rankings, relevances)
            probabilities[topic.qid] = estimated.answered
        return probabilities

    return answered


def search_with_confidence(
    searcher: CollectionSearcher,
    query: str,
    k: int,
    rerankers: Mapping[str, Reranker] | None = None,
) -> list[Candidate]:
    """The k best documents for a question, with their passages and probabilities.

    `rerankers`, by their stages, read the best hits, one after the other.

    Raises InputError for a question without text, and if there is no model with reliable numbers.
    """
    check_question(query)
    rerankers = rerankers or {}
    estimator = ConfidenceEstimator.of(searcher, stages=tuple(rerankers))
    topic = Query('0', query)
    notes = Notes()
    pipeline = Pipeline([look_deeper(searcher, KNOWN_HITS), *rerankers.values()])
    ranking = pipeline.rank([topic], None, max(k, TOP), notes)[topic.qid]
    of_search = notes.parts[SEARCH]
    rankings = topic_rankings(searcher, of_search, topic.qid)
    relevances = None
    if rerankers:
        relevances = relevances_of(ranking, list(rerankers.values())[-1])
    confidence = estimator.estimate(query, ranking.docids, rankings, relevances)
    hits = []
    shown = searcher.with_shown_texts(query, ranking[:k])
    for hit, probability in zip(shown, confidence.relevant, strict=False):
        hits.append(
            HitWithProbability(
                hit.docid, hit.score, hit.text, hit.excerpts, probability=probability
            )
        )
    return answer_of(hits, searcher, topic, of_search)
