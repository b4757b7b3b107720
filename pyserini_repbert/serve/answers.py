"""The answers of a service, in the shape of Pyserini's and Anserini's servers with additions.

Each is a model, from which both its JSON and its description in the OpenAPI document are made. A field that is not set
is not in the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.evaluate.overlap import overlap, rank_biased_overlap
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.serve.documents import document, shown_parts
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.searching import Answer, PartRanking, Step

API: Literal['v1'] = 'v1'
MEASURES = ('nDCG@10', 'MRR@10', 'R@100')
_SCORE_DIGITS = 6  # as Pyserini's server has them


class Answered(BaseModel):
    """An answer of this version of the API."""

    api: Literal['v1'] = Field(description='the version of the API')


class OfIndex(Answered):
    """An answer of an index."""

    index: str = Field(description='name of the index')


class Place(BaseModel):
    """A hit's rank and score in a ranking; null if the ranking lacks the hit, or has it below rank `below`."""

    ranking: str = Field(description='its name')
    rank: int | None = Field(description='from 1')
    score: float | None = Field(description='in this ranking')
    below: int | None = Field(description='ranks known, if the hit is below them; null: the ranking lacks the hit')


class Part(BaseModel):
    """A part of a passage, of which the first 20,000 characters are shown."""

    text: str = Field(description='a word, or what is between words')
    match: bool = Field(description='whether the query has this word')


class CandidateResponse(BaseModel):
    """A hit."""

    docid: str = Field(description='of the passage')
    score: float = Field(description='of the last step')
    rank: int = Field(description='from 1')
    doc: Any = Field(description='as in Pyserini: text, or an object where several fields are stored')
    display: list[Part] | None = Field(None, description='with display=true: the passage, cleaned up for reading')
    provenance: list[Place] | None = Field(None, description='with provenance=true: its rank in each ranking')
    grade: int | None = Field(None, description='with provenance=true, where the query is a judged topic')


class Judged(BaseModel):
    """The judged topic whose text the query is."""

    qid: str = Field(description='of the topic')
    relevant: dict[str, int] = Field(description='the grade of each relevant passage')
    measures: dict[str, Any] = Field(description='nDCG@10, MRR@10 and R@100; of a comparison, those of each side')


class SearchResponse(OfIndex):
    """Hits, in the form of Pyserini's server with additions."""

    query: dict[str, str] = Field(description='the question, as `text`')
    candidates: list[CandidateResponse] = Field(description='the hits, best first')
    system: list[str] = Field(description='the rankings that were asked')
    fusion: str | None = Field(description='how they were fused; null for one ranking')
    rerank: list[str] = Field(description='the rerankers, in order')
    steps: list[Step] = Field(description='what each step cost')
    rankings: list[str] | None = Field(None, description='with provenance=true: the names of the rankings, in order')
    judged: Judged | None = Field(None, description='with provenance=true, if the query is a judged topic')
    explanations: list[dict[str, Any]] | None = Field(
        None, description='with explain=MODEL: why the best hits rank where they do'
    )


class BatchResult(SearchResponse):
    """One query's hits."""

    qid: str = Field(description='as given, or its place')


class BatchResponse(OfIndex):
    """The answers, in the order of the queries."""

    results: list[BatchResult] = Field(description='one for each query')


class CompareResponse(OfIndex):
    """Two answers side by side."""

    query: dict[str, str] = Field(description='the question, as `text`')
    a: SearchResponse = Field(description='the left side')
    b: SearchResponse = Field(description='the right side')
    overlap: float = Field(description='share of common hits')
    rbo: float = Field(description='rank-biased overlap, p=0.9')
    moves: list[dict[str, str | int | None]] = Field(
        description='the docid and rank of each hit on both sides; null where it is absent, or below `depths`'
    )
    depths: dict[str, int | None] = Field(description='ranks known of each side; null: all')
    judged: Judged | None = Field(description='if the query is a judged topic')


class ProgressResponse(Answered):
    """The progress of a stage of a request."""

    stage: str = Field(description='the reranker that is at work')
    done: int = Field(description='model inputs so far')
    total: int | None = Field(description='model inputs in all, if known')


class ExplainResponse(OfIndex):
    """Why hits rank where they do; more fields depend on the system."""

    model_config = ConfigDict(extra='allow')

    model: str = Field(description="the reranker's name")
    system: str = Field(description='epic, cedr, duobert or monobert')
    query: str = Field(description='the question')
    passages: list[dict[str, Any]] | None = Field(None, description='of EPIC and CEDR, one entry a passage')
    docids: list[str] | None = Field(None, description='of monoBERT and duoBERT')


@dataclass(frozen=True)
class Shown:
    """What an answer shows of each hit.

    Attributes
    ----------
    parse, most : as in `documents.document`
    provenance : also the hit's rank and score in every ranking, and its grade if the query is judged
    display : also the passage, cleaned up for reading, in parts, the query's words marked
    """

    parse: bool = True
    most: int | None = None
    provenance: bool = False
    display: bool = False

    def __post_init__(self) -> None:
        if self.most is not None and not self.parse:
            raise InputError("'max_doc_length' requires parse=true")

    def document(self, query: str, raw: str | None, text: str | None) -> dict[str, Any]:
        """The fields `doc`, a document as it is stored, and `display`, its text."""
        display = {'display': shown_parts(query, text)} if self.display else {}
        return {'doc': document(raw, self.parse, self.most), **display}


def searched(index: ServedIndex, answer: Answer, shown: Shown, **more: Any) -> SearchResponse:
    """The answer to a search; with a qid, that to a query of a batch."""
    ask, ranking = answer.ask, answer.ranking
    raws = index.raws(ranking.docids)
    texts = index.texts(ranking.docids) if shown.display else [None] * len(raws)
    qid = index.judged(ask.query) if shown.provenance else None
    grades = index.qrels.get(qid, {}) if qid else {}
    ranks = [(part, _ranks(part.ranking)) for part in answer.parts]
    if shown.provenance:
        judged = _judged(index, qid, measures_of(index, qid, answer)) if qid else None
        more |= {'rankings': [part.name for part in answer.parts], 'judged': judged}

    def of_hit(docid: str) -> dict[str, Any]:
        places = [_place(docid, part, of_part) for part, of_part in ranks]
        return {'provenance': places, 'grade': grades.get(docid)} if shown.provenance else {}

    return (BatchResult if 'qid' in more else SearchResponse)(
        api=API,
        index=index.alias,
        query={'text': ask.query},
        candidates=[
            CandidateResponse(
                docid=hit.docid,
                score=_rounded(hit.score),
                rank=rank,
                **shown.document(ask.query, raw, text),
                **of_hit(hit.docid),
            )
            for rank, (hit, raw, text) in enumerate(zip(ranking, raws, texts, strict=True), 1)
        ],
        system=list(ask.systems),
        fusion=ask.spec.fusion if len(ask.systems) > 1 else None,
        rerank=[str(stage) for stage in ask.spec.stages],
        steps=list(answer.steps),
        **more,
    )


def _place(docid: str, part: PartRanking, ranks: Mapping[str, int]) -> Place:
    rank = ranks.get(docid)
    if rank is None:
        return Place(ranking=part.name, rank=None, score=None, below=part.below)
    return Place(ranking=part.name, rank=rank, score=_rounded(part.ranking.scores[rank - 1]), below=None)


def _rounded(score: float) -> float:
    return round(float(score), _SCORE_DIGITS)


def _ranks(ranking: Ranking) -> dict[str, int]:
    return {docid: rank for rank, docid in enumerate(ranking.docids, 1)}


def measures_of(index: ServedIndex, qid: str, answer: Answer) -> dict[str, float]:
    """The measures of a judged topic, on the whole ranking: their cut-offs do not depend on the hits that are shown."""
    return evaluate({qid: answer.whole.ranking}, {qid: index.qrels[qid]}, parse_measures(MEASURES)).means


def _judged(index: ServedIndex, qid: str, measures: dict[str, Any]) -> Judged:
    relevant = {docid: grade for docid, grade in index.qrels[qid].items() if grade > 0}
    return Judged(qid=qid, relevant=relevant, measures=measures)


def compared(index: ServedIndex, answers: Mapping[str, Answer], shown: Shown) -> CompareResponse:
    """The answer to a comparison: two answers, 'a' and 'b', to one question."""
    a, b = (answers[side].ranking.docids for side in 'ab')
    query = answers['a'].ask.query
    ranks = {side: _ranks(of_side.whole.ranking) for side, of_side in answers.items()}
    qid = index.judged(query)
    measures = {side: measures_of(index, qid, of_side) for side, of_side in answers.items()} if qid else {}
    return CompareResponse(
        api=API,
        index=index.alias,
        query={'text': query},
        a=searched(index, answers['a'], shown),
        b=searched(index, answers['b'], shown),
        overlap=overlap(a, b, max(len(a), len(b), 1)),
        rbo=rank_biased_overlap(a, b),
        moves=[
            {'docid': docid, **{side: of_side.get(docid) for side, of_side in ranks.items()}}
            for docid in dict.fromkeys((*a, *b))
        ],
        depths={side: of_side.whole.below for side, of_side in answers.items()},
        judged=_judged(index, qid, measures) if qid else None,
    )
