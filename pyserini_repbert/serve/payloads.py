"""Answers as JSON values, in the shape of Pyserini's and Anserini's servers with additions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.evaluate.overlap import overlap, rank_biased_overlap
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.serve.answers import Answer
from pyserini_repbert.serve.documents import document, marked, mended
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.service import Service

API = 'v1'
MEASURES = ('nDCG@10', 'MRR@10', 'R@100')
# Those that clients are told.
_LIMITS = {'query_characters', 'hits', 'rerank_depth', 'inferences', 'batch_queries'}
_SCORE_DIGITS = 6  # as Pyserini's server has them


class Shown(NamedTuple):
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


async def search_payload(index: ServedIndex, answer: Answer, shown: Shown) -> dict[str, Any]:
    """The body of the answer to a search. Raises OverloadedError where too many jobs wait."""
    docids = answer.ranking.docids
    raws = await index.raws(docids)
    candidates: list[dict[str, Any]] = []
    for rank, (docid, score, raw) in enumerate(zip(docids, answer.ranking.scores, raws, strict=True), 1):
        own = document(raw, shown.parse, shown.most)
        candidates.append({'docid': docid, 'score': round(float(score), _SCORE_DIGITS), 'rank': rank, 'doc': own})
    if shown.display:
        texts = await index.texts(docids)
        for candidate, text in zip(candidates, texts, strict=True):
            candidate['display'] = display_payload(answer.ask.query, text)
    payload: dict[str, Any] = {'api': API, 'index': index.alias, 'query': {'text': answer.ask.query}}
    payload['candidates'] = candidates
    payload['system'] = list(answer.ask.systems)
    payload['fusion'] = str(answer.ask.fusion) if len(answer.ask.systems) > 1 else None
    payload['rerank'] = [str(stage) for stage in answer.ask.stages]
    payload['steps'] = [step._asdict() for step in answer.steps]
    if shown.provenance:
        _add_provenance(index, answer, payload)
    return payload


def display_payload(query: str, text: str | None) -> list[dict[str, Any]]:
    """A passage mended for reading, in parts, the query's words marked."""
    return [{'text': part, 'match': match} for part, match in marked(query, mended(text or ''))]


def _add_provenance(index: ServedIndex, answer: Answer, payload: dict[str, Any]) -> None:
    places = [
        (name, {docid: place for place, docid in enumerate(own.docids)}, own.scores) for name, own in answer.rankings
    ]
    payload['rankings'] = [name for name, _ in answer.rankings]
    qid = index.judged(answer.ask.query)
    grades = index.qrels.get(qid, {}) if qid else {}
    payload['judged'] = None if qid is None else judged_payload(index, qid, {'': answer.ranking})
    for candidate in payload['candidates']:
        docid = candidate['docid']
        candidate['provenance'] = [
            {
                'ranking': name,
                'rank': own[docid] + 1 if docid in own else None,
                'score': round(float(scores[own[docid]]), _SCORE_DIGITS) if docid in own else None,
            }
            for name, own, scores in places
        ]
        candidate['grade'] = grades.get(docid)


def judged_payload(index: ServedIndex, qid: str, rankings: Mapping[str, Ranking]) -> dict[str, Any]:
    """A judged topic and its measures for each ranking, by the ranking's name; the name '' is for a single ranking."""
    grades = index.qrels[qid]
    measures = parse_measures(MEASURES)
    means = {name: evaluate({qid: own}, {qid: grades}, measures).means for name, own in rankings.items()}
    return {
        'qid': qid,
        'relevant': {docid: grade for docid, grade in grades.items() if grade > 0},
        'measures': means[''] if set(means) == {''} else means,
    }


async def comparison_payload(index: ServedIndex, first: Answer, second: Answer, shown: Shown) -> dict[str, Any]:
    """The body of the answer to a comparison: two answers to one question. Raises as `search_payload`."""
    own, other = first.ranking.docids, second.ranking.docids
    depth = max(len(own), len(other), 1)
    ranks = [{docid: place for place, docid in enumerate(docids, 1)} for docids in (own, other)]
    qid = index.judged(first.ask.query)
    return {
        'api': API,
        'index': index.alias,
        'query': {'text': first.ask.query},
        'a': await search_payload(index, first, shown),
        'b': await search_payload(index, second, shown),
        'overlap': overlap(own, other, depth),
        'rbo': rank_biased_overlap(own, other),
        'moves': [
            {'docid': docid, 'a': ranks[0].get(docid), 'b': ranks[1].get(docid)}
            for docid in dict.fromkeys((*own, *other))
        ],
        'judged': None if qid is None else judged_payload(index, qid, {'a': first.ranking, 'b': second.ranking}),
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
    found = [query for query in index.topics.values() if like.casefold() in query.text.casefold()]
    topics = [{'qid': query.qid, 'text': query.text, 'judged': query.qid in index.qrels} for query in found[:most]]
    return {'api': API, 'index': index.alias, 'topics': topics}
