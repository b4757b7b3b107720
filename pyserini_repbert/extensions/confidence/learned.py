"""The reliability of two searches of a collection, learned from its judgments: the present search,
and the one offered instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.adapt.adaptation import Adaptation
from pyserini_repbert.collection.adaptation import adaptation_in_use, judgments_of
from pyserini_repbert.collection.collection import Collection
from pyserini_repbert.collection.judgments import JudgmentStore
from pyserini_repbert.collection.parts import LearnedSearches
from pyserini_repbert.collection.search_description import SearchedRankings
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import counts_unjudged
from pyserini_repbert.extensions.confidence.estimating import (
    MODEL,
    OFFERED_MODEL,
    OFFERED_PLAIN_MODEL,
    PLAIN_MODEL,
    ConfidenceLostError,
    model_for,
)
from pyserini_repbert.extensions.confidence.learning import (
    LearnedConfidence,
    SearchedTopics,
    ask_all,
    features_elsewhere,
    judged_topics,
    learn_confidence,
    search_topics,
)
from pyserini_repbert.extensions.confidence.models import ConfidenceModel, dump_model
from pyserini_repbert.names.topics import load_topics
from pyserini_repbert.ranking import Query, normal_form
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.search.adapted_folder import read_description

# Questions of another collection.
_N_ELSEWHERE = 100
# Where a report's confidence says why searches as it learned show none.
LOST = 'why_not_of_offered'


@dataclass(frozen=True)
class SearchedQuestions:
    """What a search finds for the judged questions.

    Attributes
    ----------
    searcher : the search
    own : the questions, perhaps in several parts
    elsewhere : questions of another collection; None for none
    """

    searcher: CollectionSearcher
    own: Sequence[SearchedTopics]
    elsewhere: SearchedTopics | None


@dataclass(frozen=True)
class SearchConfidence:
    """What was learned about a search, and the stored model."""

    learned: LearnedConfidence
    model: ConfidenceModel

    def values(self) -> Any:
        """The model, as the report has it."""
        return json.loads(dump_model(self.model))


class ConfidenceLearner:
    """Learns how far searches of a collection can be believed.

    Parameters
    ----------
    adaptation : has a query map for each fold of questions, which these did not teach
    store : has the judgments
    seed : draws the folds
    """

    def __init__(self, adaptation: Adaptation, store: JudgmentStore, seed: int) -> None:
        self._adaptation = adaptation
        self._seed = seed
        self._qrels = store.qrels()
        self._topics = judged_topics(store.topics(), self._qrels)
        self._others = _questions_elsewhere(store.topics())

    def search(self, searcher: CollectionSearcher) -> SearchedQuestions:
        """All questions, searched for once. With a query map, each is searched for with the map
        that it did not teach; `searcher` has the one that all taught.
        """
        own = [search_topics(searcher, self._topics)]
        if searcher.dense.query_map is not None:
            own = []
            for fold, query_map in enumerate(self._adaptation.fold_maps):
                topics = [t for t in self._topics if self._adaptation.fold_of(t.text) == fold]
                own.append(search_topics(searcher.with_query_map(query_map), topics))
        elsewhere = search_topics(searcher, self._others) if self._others else None
        return SearchedQuestions(searcher, own, elsewhere)

    def learn(
        self, questions: SearchedQuestions, rerankers: Mapping[str, Reranker]
    ) -> SearchConfidence:
        """The confidence of a search with these rerankers, by their stages."""
        stages = tuple(rerankers)
        read_by = list(rerankers.values())
        asked = ask_all(questions.own, self._qrels, read_by)
        searcher = questions.searcher
        search = SearchedRankings.of(searcher)
        features = None
        if questions.elsewhere is not None:
            features = features_elsewhere(questions.elsewhere, read_by)
        learned = learn_confidence(asked, self._seed, counts_unjudged(self._qrels), features)
        weights = searcher.generation.settings.weights_sha256
        return SearchConfidence(learned, learned.model(weights, search.description(), stages))


def learn_both_confidences(learned: LearnedSearches) -> dict[str, Any]:
    """What the report says about confidence in the present search, and in the offered one.

    It says nothing about the present search if that has a query map, which was learned from earlier
    judgments of the same questions. The confidence of that search was learned with the map.
    """
    learner = ConfidenceLearner(learned.adaptation, learned.store, learned.seed)
    now = learned.now
    offered = learned.offered
    rerankers = learned.rerankers
    confidence: dict[str, Any] = {}
    if now.dense.query_map is None:
        questions = learner.search(now)
        of_now = learner.learn(questions, rerankers)
        confidence = {
            MODEL: of_now.values(),
            'hits': asdict(of_now.learned.hits),
            'questions': asdict(of_now.learned.questions),
            'counts_unjudged': of_now.learned.counts_unjudged,
            'elsewhere_auc': of_now.learned.elsewhere_auc,
        }
        if rerankers:
            # For those who search without.
            confidence[PLAIN_MODEL] = learner.learn(questions, {}).values()
    if SearchedRankings.of(offered).description() != SearchedRankings.of(now).description():
        questions = learner.search(offered)
        of_offered = learner.learn(questions, rerankers)
        confidence[OFFERED_MODEL] = of_offered.values()
        confidence[LOST] = of_offered.model.why_not_shown()
        if rerankers:
            confidence[OFFERED_PLAIN_MODEL] = learner.learn(questions, {}).values()
    return confidence


def _questions_elsewhere(topics: Sequence[Query]) -> list[Query]:
    """Questions of the demo collection: natural questions about anything.

    None for topics of the demo collection itself.
    """
    own = {normal_form(topic.text) for topic in topics}
    questions = load_topics('demo')
    if any(normal_form(question.text) in own for question in questions):
        return []
    return questions[:_N_ELSEWHERE]


def why_confidence_is_lost(folder: Path) -> str | None:
    """Why searches of a collection show no probabilities, where another search of it had some; None
    if they show some, and where the collection never learned them.
    """
    if not any(learning.report.get('confidence') for learning in judgments_of(folder).learned()):
        return None
    with Collection.open(folder) as collection, closing(collection.searcher()) as searcher:
        own = adaptation_in_use(folder, collection.generation.settings)
        stages = () if own is None else read_description(own).stages
        try:
            model_for(SearchedRankings.of(searcher), stages)
        except ConfidenceLostError as error:
            return str(error)
        except InputError:
            return None
    return None
