"""Answers as JSON values, in the shape of Pyserini's and Anserini's servers with additions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.evaluate.overlap import overlap, rank_biased_overlap
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.serve.documents import document, shown_parts
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.searching import Answer
from pyserini_repbert.serve.service import Service

API = 'v1'
MEASURES = ('nDCG@10', 'MRR@10', 'R@100')
# Those that clients are told.
_LIMITS = {'query_characters', 'hits', 'rerank_depth', 'inferences', 'batch_queries'}
_SCORE_DIGITS = 6  # as Pyserini's server has them


@dataclass(frozen=True)
class Shown:
    """What an answer shows of each hit.

    Attributes
    ----------
    parse, most : as in `documents.document`
    provenance : also the hit's rank and score in every ranking, and its grade if the query is judged
    display : also the passage mended for reading, in parts, the query's words marked
    """

    parse: bool = True
    most: int | None = None
    provenance: bool = False
    display: bool = False

    def __post_init__(self) -> None:
        if self.most is not None and not self.parse:
            raise InputError("'max_doc_length' requires parse=true")


def document_payload(query: str, raw: str | None, text: str | None, shown: Shown) -> dict[str, Any]:
    """A document as it is stored, and its text where it is displayed."""
    payload = {'doc': document(raw, shown.parse, shown.most)}
    return payload | ({'display': shown_parts(query, text)} if shown.display else {})


def search_payload(index: ServedIndex, answer: Answer, shown: Shown) -> dict[str, Any]:
    """The body of the answer to a search."""
    ask, ranking = answer.ask, answer.ranking
    raws = index.raws(ranking.docids)
    texts = index.texts(ranking.docids) if shown.display else [None] * len(raws)
    payload: dict[str, Any] = {
        'api': API,
        'index': index.alias,
        'query': {'text': ask.query},
        'candidates': [
            {'docid': hit.docid, 'score': round(float(hit.score), _SCORE_DIGITS), 'rank': rank}
            | document_payload(ask.query, raw, text, shown)
            for rank, (hit, raw, text) in enumerate(zip(ranking, raws, texts, strict=True), 1)
        ],
        'system': list(ask.systems),
        'fusion': ask.spec.fusion if len(ask.systems) > 1 else None,
        'rerank': [str(stage) for stage in ask.spec.stages],
        'steps': [step.model_dump() for step in answer.steps],
    }
    if shown.provenance:
        _add_provenance(index, answer, payload)
    return payload


def _add_provenance(index: ServedIndex, answer: Answer, payload: dict[str, Any]) -> None:
    payload['rankings'] = [part.name for part in answer.parts]
    qid = index.judged(answer.ask.query)
    grades = index.qrels.get(qid, {}) if qid else {}
    payload['judged'] = None if qid is None else _judged(index, qid, measures_of(index, qid, answer))
    ranks = [_ranks(part.ranking) for part in answer.parts]
    for candidate in payload['candidates']:
        docid = candidate['docid']
        candidate['provenance'] = [
            {
                'ranking': part.name,
                'rank': ranks_in_part.get(docid),
                'score': round(float(part.ranking.scores[ranks_in_part[docid] - 1]), _SCORE_DIGITS)
                if docid in ranks_in_part
                else None,
                'below': None if docid in ranks_in_part else part.below,
            }
            for part, ranks_in_part in zip(answer.parts, ranks, strict=True)
        ]
        candidate['grade'] = grades.get(docid)


def _ranks(ranking: Ranking) -> dict[str, int]:
    return {docid: rank for rank, docid in enumerate(ranking.docids, 1)}


def measures_of(index: ServedIndex, qid: str, answer: Answer) -> dict[str, float]:
    """The measures of a judged topic, on the whole ranking: their cut-offs do not depend on the hits that are shown."""
    return evaluate({qid: answer.whole.ranking}, {qid: index.qrels[qid]}, parse_measures(MEASURES)).means


def _judged(index: ServedIndex, qid: str, measures: dict[str, Any]) -> dict[str, Any]:
    relevant = {docid: grade for docid, grade in index.qrels[qid].items() if grade > 0}
    return {'qid': qid, 'relevant': relevant, 'measures': measures}


def comparison_payload(index: ServedIndex, answers: Mapping[str, Answer], shown: Shown) -> dict[str, Any]:
    """The body of the answer to a comparison: two answers, 'a' and 'b', to one question."""
    a, b = (answers[side].ranking.docids for side in 'ab')
    query = answers['a'].ask.query
    ranks = {side: _ranks(of_side.whole.ranking) for side, of_side in answers.items()}
    qid = index.judged(query)
    measures = {} if qid is None else {side: measures_of(index, qid, of_side) for side, of_side in answers.items()}
    return {
        'api': API,
        'index': index.alias,
        'query': {'text': query},
        **{side: search_payload(index, of_side, shown) for side, of_side in answers.items()},
        'overlap': overlap(a, b, max(len(a), len(b), 1)),
        'rbo': rank_biased_overlap(a, b),
        'moves': [
            {'docid': docid, **{side: of_side.get(docid) for side, of_side in ranks.items()}}
            for docid in dict.fromkeys((*a, *b))
        ],
        'depths': {side: of_side.whole.below for side, of_side in answers.items()},
        'judged': None if qid is None else _judged(index, qid, measures),
    }


def index_payload(service: Service, index: ServedIndex) -> dict[str, Any]:
    """What a client may ask of an index."""
    return {
        'name': index.alias,
        'index_type': index.index_type,
        'passages': index.passages,
        'encoder': index.encoder,
        'base_index': index.settings.base_index,
        'systems': list(index.systems),
        'fusions': ['interleave', 'rrf', 'interpolation'],
        'rerankers': [{'name': name, 'system': system} for name, system in service.rerankers.systems.items()],
        'topics': len(index.topics),
        'judged_topics': len(index.qrels),
        'limits': service.settings.limits.model_dump(include=_LIMITS),
    }


def topics_payload(index: ServedIndex, like: str, most: int) -> dict[str, Any]:
    """The first `most` topics of the index whose text contains `like`, regardless of case."""
    matching = [query for query in index.topics.values() if like.casefold() in query.text.casefold()]
    topics = [{'qid': query.qid, 'text': query.text, 'judged': query.qid in index.qrels} for query in matching[:most]]
    return {'api': API, 'index': index.alias, 'topics': topics}
