"""Makes the answers of a service, in the forms of `answer_models`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, cast

from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.evaluate.overlap import overlap, rank_biased_overlap
from pyserini_repbert.extension import loaded
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.indexes.stores import ALL_FIELDS
from pyserini_repbert.ranking import Candidate, Excerpt, Excerpts, Ranking
from pyserini_repbert.serve.answer_models import (
    API,
    CandidateResponse,
    CompareResponse,
    DocumentResponse,
    IndexInfo,
    Judged,
    Part,
    PassageSpan,
    Place,
    SearchResponse,
)
from pyserini_repbert.serve.document_forms import (
    display_parts,
    document,
    parsed_document,
    snippet_parts,
)
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.reading import is_code
from pyserini_repbert.serve.refusals import too_long_answer
from pyserini_repbert.serve.requests import Search
from pyserini_repbert.serve.searching import Answer, RankedPart
from pyserini_repbert.serve.service import Service

MEASURES = ('nDCG@10', 'MRR@10', 'R@100')
_SCORE_DIGITS = 6  # as Pyserini's server has them
# The limits that clients are told.
_LIMITS = {
    'query_characters',
    'hits',
    'rerank_depth',
    'inferences',
    'batch_queries',
    'answer_bytes',
}
# Hits whose documents are read together, before their bytes are counted.
_HITS_AT_ONCE = 20
LESS_OF_HITS = (
    "ask for fewer 'hits', for fewer of their 'fields' (fields= for none), or for less of each "
    "text ('max_doc_length')"
)
LESS_OF_A_TEXT = "ask for less of the text ('max_doc_length')"


class AnswerSize:
    """Counts the bytes of an answer while it grows, so that a long one is refused early.

    Parameters
    ----------
    most : bytes that it may have
    less : how to ask for a shorter one
    """

    def __init__(self, most: int, less: str = LESS_OF_HITS) -> None:
        self._most = most
        self._less = less
        self._n_bytes = 0

    def add(self, values: Any) -> None:
        """Count values of JSON. Raises InputError if the answer is too long with them."""
        text = json.dumps(values, ensure_ascii=False)
        self._n_bytes += len(text.encode('utf-8', 'replace'))
        if self._n_bytes > self._most:
            raise too_long_answer(self._most, self._less)


@dataclass(frozen=True)
class AnswerOptions:
    """What an answer shows of each document.

    Attributes
    ----------
    parse, max_length : as in `document`
    provenance : also the hit's rank and score in every ranking, and its grade if the query is a
        judged topic
    display : also the passage, cleaned up for reading, in parts, the query's words marked
    fields : names of a collection's fields that come with hits; `ALL_FIELDS`: all
    size : counts the bytes of all hits of the request; None: they are not counted
    """

    parse: bool = True
    max_length: int | None = None
    provenance: bool = False
    display: bool = False
    fields: Sequence[str] = (ALL_FIELDS,)
    size: AnswerSize | None = None

    def __post_init__(self) -> None:
        if self.max_length is not None and not self.parse:
            raise InputError("'max_doc_length' requires parse=true")


class ShownDocument(TypedDict):
    """The fields of a `CandidateResponse` that show its document."""

    doc: Any
    title: NotRequired[str]
    passage: NotRequired[PassageSpan | None]
    url: NotRequired[str]
    fields: NotRequired[dict[str, Any]]
    display: NotRequired[list[Part]]


def document_fields(
    index: ServedIndex, docids: Sequence[str], options: AnswerOptions, query: str = ''
) -> list[ShownDocument]:
    """For each docid the field `doc`, None if the index lacks it, and `display`, if the options
    have it.

    Parameters
    ----------
    index : what holds the documents
    docids : of the documents
    options : how they are shown
    query : whose words `display` marks
    """
    fields = [ShownDocument(doc=doc) for doc in _documents(index, docids, options)]
    if options.display:
        for shown, text in zip(fields, _shown_texts(index, docids), strict=True):
            shown['display'] = display_parts(query, text, index.find_words)
    return fields


def _documents(index: ServedIndex, docids: Sequence[str], options: AnswerOptions) -> list[Any]:
    """Documents as the options have them, None for each that the index lacks."""
    if index.store.keeps_raws or not options.parse:
        raws = index.store.raws(docids)
        return [document(raw, options.parse, options.max_length) for raw in raws]
    return [
        stored and parsed_document(stored, options.max_length)
        for stored in index.store.documents(docids)
    ]


def _shown_texts(index: ServedIndex, docids: Sequence[str]) -> list[str | None]:
    """The displayed text of documents, without the title if they are from a collection."""
    documents = index.store.documents(docids)
    return [None if document is None else document.text for document in documents]


def excerpt_fields(
    index: ServedIndex, hits: Ranking, options: AnswerOptions, query: str
) -> list[ShownDocument]:
    """For each hit of a collection its title, its best passage as `doc`, the passage's position,
    and the document's fields.

    Parameters
    ----------
    index : what holds the documents
    hits : with their passages
    options : how they are shown; documents that are not parsed are complete
    query : whose words `display` marks
    """
    fields = []
    stored_fields = index.store.fields(hits.docids, options.fields)
    for hit, own_fields in zip(hits, stored_fields, strict=True):
        shown: ShownDocument = {'title': '', 'doc': '', 'passage': None, 'url': ''}
        if hit.excerpts:
            passage = hit.excerpts[0]
            shown = {
                'title': passage.title,
                'doc': passage.text[: options.max_length],
                'passage': _excerpt_span(passage),
                'url': index.shown_address(passage.url),
            }
        shown['fields'] = own_fields
        if options.display:
            shown['display'] = _snippet(index, hit.excerpts, query)
        fields.append(shown)
    if not options.parse:
        for shown, raw in zip(fields, index.store.raws(hits.docids), strict=True):
            shown['doc'] = raw
    return fields


def _snippet(index: ServedIndex, excerpts: Excerpts, query: str) -> list[Part]:
    """The shown text of the best passage, in parts; nothing for a document without text."""
    if not excerpts:
        return snippet_parts(query, '')
    passage = excerpts[0]
    of_code = is_code(passage.file)
    return snippet_parts(query, passage.shown_text, index.find_words, of_code)


def _hit_documents(
    index: ServedIndex, hits: Ranking, options: AnswerOptions, query: str
) -> list[ShownDocument]:
    """For each hit the fields of its document. Raises InputError if they are too long."""
    documents: list[ShownDocument] = []
    for first in range(0, len(hits), _HITS_AT_ONCE):
        some = hits[first : first + _HITS_AT_ONCE]
        if index.passage_finder is None:
            shown = document_fields(index, some.docids, options, query)
        else:
            shown = excerpt_fields(index, some, options, query)
        if options.size is not None:
            options.size.add(shown)
        documents += shown
    return documents


def _excerpt_span(passage: Excerpt) -> PassageSpan:
    return {
        'number': passage.number,
        'start': passage.start,
        'end': passage.end,
        'shown': list(passage.shown_span),
        'headings': list(passage.headings),
        'anchor': passage.anchor,
        'file': passage.file,
        'line': passage.line,
        'row': passage.row,
        'last_page': passage.last_page,
        'is_code': is_code(passage.file),
    }


def document_answer(
    index: ServedIndex, docid: str, options: AnswerOptions, query: str = ''
) -> DocumentResponse:
    """The answer to a request for a document.

    Raises MissingResourceError for a docid that the index lacks.

    Parameters
    ----------
    index : what holds the document
    docid : of the document, as stored or as a person reads it
    options : how it is shown
    query : whose words are marked, if it is also shown in parts
    """
    docid = index.store.stored_docid(docid)
    (shown,) = document_fields(index, [docid], options, query)
    if shown['doc'] is None:
        raise MissingResourceError(f"index '{index.alias}' has no document '{docid[:200]}'")
    answer = DocumentResponse(api=API, index=index.alias, docid=docid, doc=shown['doc'])
    if 'display' in shown:
        answer['display'] = shown['display']
    return answer


def search_answer(
    index: ServedIndex,
    answer: Answer,
    options: AnswerOptions,
    qid: str | None = None,
    explanations: list[dict[str, Any]] | None = None,
) -> SearchResponse:
    """The answer to a search.

    Parameters
    ----------
    index : the searched index
    answer : what was found
    options : how its documents are shown
    qid : of a query of a batch
    explanations : of its best hits, if they were asked for
    """
    search = answer.search
    hits = answer.hits
    documents = _hit_documents(index, hits, options, search.query)
    candidates = _candidates(hits, documents, answer.copies)
    response: SearchResponse = {
        'api': API,
        'index': index.alias,
        'query': _query_fields(search),
        'candidates': candidates,
        'system': list(search.systems),
        'fusion': search.spec.fusion if len(search.systems) > 1 else None,
        'rerank': [str(stage) for stage in search.spec.stages],
        'steps': [part.step for part in answer.parts],
    }
    response.update(cast(SearchResponse, answer.added))
    for candidate, fields in zip(candidates, answer.of_hits, strict=False):
        candidate.update(cast(CandidateResponse, fields))
    if qid is not None:
        response['qid'] = qid
    if explanations is not None:
        response['explanations'] = explanations
    if options.provenance:
        judged = _judged_topic(index, answer)
        grades = index.topics.qrels[judged['qid']] if judged else {}
        _add_provenance(candidates, answer.parts, grades)
        response['rankings'] = [part.name for part in answer.parts]
        response['judged'] = judged
    if index.index.generation_number is not None:
        response['generation'] = index.index.generation_number
    if answer.warnings:
        response['warnings'] = list(answer.warnings)
    return response


def _candidates(
    hits: Iterable[Candidate],
    documents: Iterable[ShownDocument],
    copies: Mapping[str, Sequence[str]],
) -> list[CandidateResponse]:
    """The hits with their ranks, scores and documents, best first; `copies` as in `Answer`."""
    candidates: list[CandidateResponse] = []
    for hit, fields in zip(hits, documents, strict=True):
        candidate: CandidateResponse = {
            'docid': hit.docid,
            'score': _rounded(hit.score),
            'rank': len(candidates) + 1,
            # mypy does not know that these lack what `_add_provenance` adds.
            **fields,  # type: ignore[typeddict-item]
        }
        if hit.docid in copies:
            candidate['also_in'] = list(copies[hit.docid])
        candidates.append(candidate)
    return candidates


def _query_fields(search: Search) -> dict[str, str]:
    fields = {'text': search.query}
    if search.like is not None:
        fields['like'] = search.like
    return fields


def _add_provenance(
    candidates: list[CandidateResponse], parts: Sequence[RankedPart], grades: Mapping[str, int]
) -> None:
    """Add to each hit its rank and score in each part, and its grade."""
    ranks_in_parts = [_ranks(part.ranking) for part in parts]
    for hit in candidates:
        places = []
        for part, ranks in zip(parts, ranks_in_parts, strict=True):
            places.append(_place(part, ranks.get(hit['docid'])))
        hit['provenance'] = places
        hit['grade'] = grades.get(hit['docid'])


def _place(part: RankedPart, rank: int | None) -> Place:
    """A hit's rank and score in a ranking."""
    if rank is None:
        return {'ranking': part.name, 'rank': None, 'score': None, 'below': part.below}
    score = _rounded(part.ranking.scores[rank - 1])
    return {'ranking': part.name, 'rank': rank, 'score': score, 'below': None}


def _rounded(score: float) -> float:
    return round(float(score), _SCORE_DIGITS)


def _ranks(ranking: Ranking) -> dict[str, int]:
    """The rank of each docid, from 1."""
    return {docid: rank for rank, docid in enumerate(ranking.docids, 1)}


def _judged_topic(index: ServedIndex, answer: Answer) -> Judged | None:
    """The judged topic that the query is, measured on the whole ranking: no measure depends on
    the hits shown.
    """
    qid = index.topics.judged_qid(answer.search.query)
    if qid is None or answer.search.like is not None:
        return None
    grades = index.topics.qrels[qid]
    evaluation = evaluate({qid: answer.ranking}, {qid: grades}, parse_measures(MEASURES))
    relevant = {docid: grade for docid, grade in grades.items() if grade > 0}
    return {'qid': qid, 'relevant': relevant, 'measures': evaluation.means}


def comparison_answer(
    index: ServedIndex, left: Answer, right: Answer, options: AnswerOptions
) -> CompareResponse:
    """The answer to a comparison: two answers to one question, `a` and `b`.

    Parameters
    ----------
    index : what both searched
    left, right : the answers
    options : with `provenance`
    """
    a = search_answer(index, left, options)
    b = search_answer(index, right, options)
    docids_a = left.hits.docids
    docids_b = right.hits.docids
    ranks_a = _ranks(left.ranking)
    ranks_b = _ranks(right.ranking)
    moves = [
        {'docid': docid, 'a': ranks_a.get(docid), 'b': ranks_b.get(docid)}
        for docid in dict.fromkeys((*docids_a, *docids_b))
    ]
    judged = a['judged']
    other_judged = b['judged']
    if judged and other_judged:
        measures = {'a': judged['measures'], 'b': other_judged['measures']}
        judged = {**judged, 'measures': measures}
    return {
        'api': API,
        'index': index.alias,
        'query': a['query'],
        'a': a,
        'b': b,
        'overlap': overlap(docids_a, docids_b, max(len(docids_a), len(docids_b), 1)),
        'rbo': rank_biased_overlap(docids_a, docids_b),
        'moves': moves,
        'depths': {'a': left.below, 'b': right.below},
        'judged': judged,
    }


def index_answer(service: Service, index: ServedIndex) -> IndexInfo:
    """What a client may ask of an index."""
    systems = service.rerankers.systems
    info: IndexInfo = {
        'name': index.alias,
        'index_type': index.index_type,
        'passages': index.passages,
        'encoder': index.encoder,
        'language': index.language,
        'base_index': index.settings.base_index,
        'systems': list(index.systems),
        'default': list(index.default),
        'like': list(index.document_systems),
        'fusions': [str(method) for method in FusionMethod],
        'rerankers': [{'name': name, 'system': system} for name, system in systems.items()],
        'topics': len(index.topics.by_qid),
        'judging': index.alias in service.judgment_stores,
        'learning': index.alias in service.learners,
        'judged_topics': len(index.topics.qrels),
        'limits': service.settings.limits.model_dump(include=_LIMITS),
    }
    for part in loaded('in_answers'):
        info.update(cast(IndexInfo, part.about(index)))
    info.update(cast(IndexInfo, index.index.about()))
    return info
