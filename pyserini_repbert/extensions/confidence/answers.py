"""Confidence in answers of the service, over HTTP and MCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired

from pydantic import Field, FiniteFloat
from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.confidence.ordering import order_by_doubt
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.serve.added_fields import PoolOrder
from pyserini_repbert.serve.answer_parts import AnswerAddition, AnswerFollower, AnswerPart
from pyserini_repbert.trace import Notes

if TYPE_CHECKING:
    from pyserini_repbert.collection.search_description import SearchedRankings
    from pyserini_repbert.extensions.confidence.estimating import (
        AnswerConfidence,
        ConfidenceEstimator,
    )
    from pyserini_repbert.serve.indexes import ServedIndex
    from pyserini_repbert.serve.requests import Search
    from pyserini_repbert.serve.rerankers import Rerankers

_DIGITS = 6
_Confidence = Annotated[
    bool,
    Field(
        description='of a collection: how likely the question is answered and each hit is '
        'relevant; refused if that is unknown'
    ),
]
_MinConfidence = Annotated[
    FiniteFloat | None,
    Field(
        ge=0,
        le=1,
        description='of a collection: leave out hits with a lower probability; answers also have '
        "what 'confidence' adds",
    ),
]


class ConfidenceOfAnswer(TypedDict):
    """How far to trust an answer."""

    found: Annotated[
        Literal['likely', 'weak', 'nothing'],
        Field(description='in a word, whether the question is answered'),
    ]
    answered: Annotated[
        float, Field(description='probability that one of the ten best hits answers')
    ]
    source: Annotated[
        Literal['learned'], Field(description="learned from the collection's judgments")
    ]


class ConfidenceOfAnswers(AnswerPart):
    """Probabilities of answers and their hits."""

    parameters: ClassVar[Mapping[str, tuple[Any, Any]]] = {
        'confidence': (_Confidence, False),
        'min_confidence': (_MinConfidence, None),
    }
    pool_orders: ClassVar[Mapping[str, PoolOrder]] = {
        'unsure': PoolOrder(
            'documents whose probability is nearest to a half come first, and every third is drawn '
            'at random; refused if confidence is unknown',
            order_by_doubt,
        )
    }
    answer_fields: ClassVar[Mapping[str, Any]] = {
        'confidence': NotRequired[
            Annotated[
                ConfidenceOfAnswer | None,
                Field(description='with confidence=true: how far to trust the answer'),
            ]
        ]
    }
    hit_fields: ClassVar[Mapping[str, Any]] = {
        'probability': NotRequired[
            Annotated[
                float | None, Field(description='with confidence=true: that the hit is relevant')
            ]
        ]
    }
    index_fields: ClassVar[Mapping[str, Any]] = {
        'confidence': Annotated[
            bool,
            Field(description='whether a search that names no system can have confidence=true'),
        ],
        'lost_confidence': Annotated[
            str | None,
            Field(
                description='why it cannot, if another search of the collection could; null if it '
                'can, or if none could'
            ),
        ],
    }

    def follower(
        self, search: Search, index: ServedIndex, rerankers: Rerankers
    ) -> AnswerFollower | None:
        least = search.added.get('min_confidence')
        if not search.added.get('confidence') and least is None:
            return None
        if search.like is not None:
            raise InputError("'confidence' does not work with 'like': leave one out")
        estimator = _estimator(index, search.systems, search.spec)
        return _Probabilities(estimator, search, rerankers, least)

    def about(self, index: ServedIndex) -> dict[str, Any]:
        from pyserini_repbert.extensions.confidence.estimating import ConfidenceLostError

        error = _why_no_confidence(index)
        is_lost = isinstance(error, ConfidenceLostError)
        return {'confidence': error is None, 'lost_confidence': str(error) if is_lost else None}


class _Probabilities(AnswerFollower):
    """P(relevant) of each hit, P(answered) of the question.

    Parameters
    ----------
    estimator : of this search
    search : with the names of its systems
    rerankers : of the service
    least : the least P(relevant) of a hit; None: any
    """

    def __init__(
        self,
        estimator: ConfidenceEstimator,
        search: Search,
        rerankers: Rerankers,
        least: float | None,
    ) -> None:
        from pyserini_repbert.collection.noted_rankings import KNOWN_HITS
        from pyserini_repbert.extensions.confidence.models import TOP

        self.n_hits = TOP
        self.n_known = KNOWN_HITS
        self._estimator = estimator
        self._search = search
        self._rerankers = rerankers
        self._least = least

    def follow(self, ranking: Ranking, notes: Notes) -> AnswerAddition:
        confidence = self._estimate(ranking, notes)
        answer = ConfidenceOfAnswer(
            found=confidence.found,
            answered=round(confidence.answered, _DIGITS),
            source=confidence.source,
        )
        of_hits = [{'probability': round(relevant, _DIGITS)} for relevant in confidence.relevant]
        return AnswerAddition(
            fields={'confidence': answer},
            of_hits=of_hits,
            rows=confidence.believed_rows(self._least),
        )

    def _estimate(self, ranking: Ranking, notes: Notes) -> AnswerConfidence:
        from pyserini_repbert.serve.queues import PARTS

        estimator = self._estimator
        rankings = {}
        for leaf in notes.leaves():
            (run,) = leaf.run.values()
            of_parts = leaf.kept.get(PARTS)
            if of_parts is None:
                rankings[leaf.name] = run
            else:
                # Stages that score other rankings again are not part of these, and come after them.
                (parts,) = of_parts.values()
                runs = [*parts, run][: len(estimator.rankings)]
                rankings |= zip(estimator.rankings, runs, strict=True)
        relevances = None
        if estimator.reads_relevances:
            stage = self._search.spec.stages[-1]
            read = ranking[: stage.k]
            values = self._rerankers.relevances(stage.name, read.scores)
            relevances = dict(zip(read.docids, values, strict=True))
        return estimator.estimate(self._search.query, ranking.docids, rankings, relevances)


@dataclass(frozen=True)
class _EstimatedSearch:
    """The settings that decide to which search an estimator belongs.

    Attributes
    ----------
    systems : in the order of fusion
    fusion : of several systems
    prf : feedback of the dense one
    stages : that rerank, as NAME@K
    """

    systems: tuple[str, ...]
    fusion: FusionSettings | None
    prf: str | None
    stages: tuple[str, ...]


def _estimator(
    index: ServedIndex, systems: Sequence[str], spec: PipelineSpec
) -> ConfidenceEstimator:
    """What says how far the hits of these systems can be believed.

    Parameters
    ----------
    index : is searched
    systems : their names, in the order of fusion
    spec : their fusion, the dense ranking's feedback, and the stages that rerank

    Raises InputError if that is not known.
    """
    from pyserini_repbert.extensions.confidence.estimating import ConfidenceEstimator

    fusion = spec.fusion_settings if len(systems) > 1 else None
    key = _EstimatedSearch(tuple(systems), fusion, spec.prf, tuple(map(str, spec.stages)))
    estimator: ConfidenceEstimator | None = index.known_to_parts.get(key)
    if estimator is None:
        estimator = ConfidenceEstimator(_searched_rankings(index, key), stages=key.stages)
        index.known_to_parts[key] = estimator
    return estimator


def _searched_rankings(index: ServedIndex, search: _EstimatedSearch) -> SearchedRankings:
    """The rankings of a search whose hits may have probabilities."""
    from pyserini_repbert.collection.search_description import SearchedRankings
    from pyserini_repbert.serve.indexes import ADAPTED, BM25, DENSE

    systems = search.systems
    if systems == (ADAPTED,) and index.ranker(ADAPTED).keeps_parts:
        adapted: Any = index.ranker(ADAPTED).ranker
        return SearchedRankings.of(adapted)
    offered = index.index.offered
    known_rankings: set[str] = set()
    if index.index.kind.is_writable:
        known_rankings = set(offered.names) - set(offered.scanned)
    searched = systems
    if systems == (offered.usual,):
        searched = (*(offered.fused or (DENSE,)), offered.usual)
    if DENSE not in searched or not known_rankings.issuperset(systems):
        names = ', '.join(sorted(known_rankings))
        known = f'name some of {names}' if names else 'leave it out'
        raise InputError(
            f"'confidence' is of a collection's rankings, and {', '.join(systems)} was asked: "
            f'{known}'
        )
    dense: Any = index.ranker(DENSE, PipelineSpec(prf=search.prf)).ranker
    words: Any = index.ranker(BM25).ranker if BM25 in searched else None
    return SearchedRankings(dense, words, searched, search.fusion)


def _why_no_confidence(index: ServedIndex) -> InputError | None:
    """Why a search that names no systems cannot say how far it can be believed; None: it can."""
    try:
        usual = index.with_usual_fusion(PipelineSpec(stages=index.default_stages), index.default)
        _estimator(index, index.default, usual)
    except InputError as error:
        return error
    return None


IN_ANSWERS = ConfidenceOfAnswers()
