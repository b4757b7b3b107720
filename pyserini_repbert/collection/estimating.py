"""How likely the hits of a collection are relevant, and its questions answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pyserini_repbert.catalog import RESOURCES
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.bm25_search import Bm25DocumentSearcher
from pyserini_repbert.collection.confidence import (
    KNOWN_HITS,
    HitFeatures,
    question_features,
    ranking_names,
    relevances_of,
    topic_rankings,
)
from pyserini_repbert.collection.dense_search import DenseDocumentSearcher
from pyserini_repbert.collection.rankings import CollectionRanking
from pyserini_repbert.collection.reranking import SEARCH, RerankedCollectionSearcher
from pyserini_repbert.collection.searching import CollectionSearcher
from pyserini_repbert.errors import InputError
from pyserini_repbert.fusion.fused import look_deeper
from pyserini_repbert.ranking import Candidate, Query, Ranking, check_question
from pyserini_repbert.search.confidence import (
    LEAST_AUC,
    TOP,
    ConfidenceModel,
    Source,
    Verdict,
    parse_model,
    read_model,
    verdict,
)
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.rerank.base import Reranker

# Where a learning's report has its models: of its search, and of the same without rerankers.
MODEL = 'model'
PLAIN_MODEL = 'model_without_rerankers'
MODELS = (MODEL, PLAIN_MODEL)
PRIORS = RESOURCES / 'confidence'
# The rankings of the searches that a prior was fitted to.
_RANKINGS_OF_PRIORS = {str(CollectionRanking.DENSE), str(CollectionRanking.BM25)}


@dataclass(frozen=True)
class AnswerConfidence:
    """How far the answer to a question can be believed.

    Attributes
    ----------
    found : 'likely', 'weak' or 'nothing'
    answered : the probability that a document among the best hits answers the question
    relevant : the probability of each hit that it is relevant, in the order of the hits
    source : 'learned' from the collection's judgments, or a 'prior' of other collections
    """

    found: Verdict
    answered: float
    relevant: tuple[float, ...]
    source: Source

    def believed_rows(self, least: float | None) -> list[int]:
        """The rows of the hits of at least this P(relevant), in their order; None: of all."""
        relevant = enumerate(self.relevant)
        return [row for row, probability in relevant if least is None or probability >= least]

    def of_rows(self, rows: Sequence[int]) -> Self:
        """The same of some of the hits, by their rows."""
        return replace(self, relevant=tuple(self.relevant[row] for row in rows))


class ConfidenceEstimator:
    """Estimates probabilities for one search of a collection.

    Parameters
    ----------
    dense : the search of its vectors
    words : its BM25; None without one
    rankings : those that are searched, by `CollectionRanking`
    model : default: what the collection learned, else the prior for its encoder
    stages : the rerankers of the search, as NAME@K

    Raises InputError where there is no model whose numbers can be believed.
    """

    def __init__(
        self,
        dense: DenseDocumentSearcher,
        words: Bm25DocumentSearcher | None,
        rankings: Sequence[str],
        model: ConfidenceModel | None = None,
        stages: Sequence[str] = (),
    ) -> None:
        self.rankings = tuple(rankings)
        self.model = model or model_for(dense, rankings, stages)
        self._features = HitFeatures(dense, words)

    @classmethod
    def of(
        cls,
        searcher: CollectionSearcher,
        model: ConfidenceModel | None = None,
        stages: Sequence[str] = (),
    ) -> Self:
        """The estimator for the search of a collection; parameters and errors as of the class."""
        return cls(searcher.dense, searcher.words, ranking_names(searcher), model, stages)

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
        docids : of its hits, best first, at least `TOP` where there are so many: these decide
            whether it is answered; a reranker may have ordered them
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
        relevant = self.model.hits.probabilities(rows).tolist()
        return AnswerConfidence(verdict(answered), answered, tuple(relevant), self.model.source)


def model_for(
    dense: DenseDocumentSearcher, rankings: Sequence[str], stages: Sequence[str] = ()
) -> ConfidenceModel:
    """What the collection learned for its search as it is, else the prior for its encoder.

    A model that was learned without rerankers also holds for hits that one has put in order.

    Raises InputError where there is none, and where it cannot tell questions apart.
    """
    settings = dense.generation.settings
    if dense.query_map is not None:
        raise InputError(
            'confidence is not known for a search with a learned query map, which has seen the '
            'questions that would judge it: search without what was learned',
            parameters=('adapted=none',),
        )
    model = _learned_model(dense.generation.folder, settings.models_sha256, rankings, stages)
    if model is None:
        model = find_prior(dense, rankings)
    if model is None:
        reranked = f' with {" ".join(stages)}' if stages else ''
        raise InputError(
            f"confidence is not known for encoder '{settings.encoder}' and the rankings "
            f'{" ".join(rankings)}{reranked}: judge questions, and let the collection learn'
        )
    if not model.is_shown:
        raise InputError(
            f'confidence cannot be told here: of two questions, one with its answers and one '
            f'without, it knows which is which in {model.hard_auc:.0%} of cases, and at least '
            f'{LEAST_AUC:.0%} are asked for: judge more questions, and let the collection learn'
        )
    return model


def _learned_model(
    folder: Path, models_sha256: str, rankings: Sequence[str], stages: Sequence[str]
) -> ConfidenceModel | None:
    """The model that a collection learned, if it is of its models, its search as it is, these
    rankings, and these rerankers or none.
    """
    store = judgments_of(folder)
    learnings = store.learnings()
    in_use = [learning.number for learning in learnings if learning.in_use]
    now = in_use[-1] if in_use else None
    models = []
    for learning in reversed(learnings):
        if learning.is_settings:
            continue
        stored = learning.report.get('confidence')
        if learning.encoder_weights != models_sha256 or not isinstance(stored, dict):
            continue
        if stored.get('of') != now or stored.get('rankings') != sorted(rankings):
            continue
        for name in MODELS:
            if name == MODEL or name in stored:
                models.append(parse_model(stored.get(name), store.path))
    for wanted in (tuple(stages), ()):
        for model in models:
            if model.stages == wanted:
                return model
    return None


def find_prior(dense: DenseDocumentSearcher, rankings: Sequence[str]) -> ConfidenceModel | None:
    """The prior for a search by vectors and words; None where there is none for its encoder."""
    settings = dense.generation.settings
    path = PRIORS / f'{settings.weights_sha256[:8]}.json'
    if not path.is_file() or set(rankings) != _RANKINGS_OF_PRIORS:
        return None
    model = read_model(path)
    return model if model.encoder_weights == settings.weights_sha256 else None


def search_with_confidence(
    searcher: CollectionSearcher,
    query: str,
    k: int,
    rerankers: Mapping[str, Reranker] | None = None,
) -> list[Candidate]:
    """The k best documents for a question, with their passages and probabilities.

    `rerankers`, by their stages, read the best hits, one after the other.

    Raises InputError for a question without text, and where there is no model whose numbers can be
    believed.
    """
    check_question(query)
    rerankers = rerankers or {}
    estimator = ConfidenceEstimator.of(searcher, stages=tuple(rerankers))
    topic = Query('0', query)
    notes = Notes()
    reranked = RerankedCollectionSearcher(
        look_deeper(searcher, KNOWN_HITS), list(rerankers.values())
    )
    ranking = reranked.rank([topic], None, max(k, TOP), notes)[topic.qid]
    rankings = topic_rankings(searcher, notes.parts[SEARCH], topic.qid)
    relevances = None
    if reranked.rerankers:
        relevances = relevances_of(ranking, reranked.rerankers[-1])
    confidence = estimator.estimate(query, ranking.docids, rankings, relevances)
    hits = []
    shown = searcher.with_stored_texts(query, ranking[:k])
    for hit, probability in zip(shown, confidence.relevant, strict=False):
        hits.append(replace(hit, probability=probability))
    return hits
