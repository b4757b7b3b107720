"""The answers of a service as values of JSON, in the shape of Pyserini's and Anserini's servers
with additions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.data.spelling import mended
from pyserini_repbert.errors import InputError, MissingResourceError
from pyserini_repbert.evaluate.measures import evaluate, parse_measures
from pyserini_repbert.evaluate.overlap import overlap, rank_biased_overlap
from pyserini_repbert.ranking import Ranking
from pyserini_repbert.serve.indexes import ServedIndex
from pyserini_repbert.serve.searching import Answer, PartRanking

API = 'v1'
MEASURES = ('nDCG@10', 'MRR@10', 'R@100')
_SCORE_DIGITS = 6  # as Pyserini's server has them
_IDENTIFIERS = frozenset({'id', '_id', 'docid'})
_CUT = frozenset({'body', 'content', 'contents', 'text'})
SHOWN_CHARACTERS = (
    20_000  # of a passage that is mended and marked; a pattern's call holds all threads up
)

_WORD = re.compile(r'\w+')
_STOPWORDS = frozenset(
    'a an and are as at be but by did do does for had has have how if in into is it its no not of '
    'on or such that the '
    'their then there these they this to was were what when where which who why will with'.split()
)


@dataclass(frozen=True)
class Shown:
    """What an answer shows of each hit."""

    parse: bool = True  # as in `document`, and so is `most`
    most: int | None = None
    # also the hit's rank and score in every ranking, and its grade if the query is judged
    provenance: bool = False
    display: bool = (
        False  # also the passage, cleaned up for reading, in parts, the query's words marked
    )

    def __post_init__(self) -> None:
        if self.most is not None and not self.parse:
            raise InputError("'max_doc_length' requires parse=true")

    def documents(
        self, index: ServedIndex, docids: Sequence[str], query: str
    ) -> list[dict[str, Any]]:
        """For each docid the field `doc`, None where the index lacks it, and `display`, its
        text.
        """
        if self.parse and not index.keeps_raws:
            shown = [{'doc': text and text[: self.most]} for text in index.texts(docids)]
        else:
            shown = [{'doc': document(raw, self.parse, self.most)} for raw in index.raws(docids)]
        if not self.display:
            return shown
        texts = index.texts(docids)
        return [
            one | {'display': shown_parts(query, text)}
            for one, text in zip(shown, texts, strict=True)
        ]


def stored(index: ServedIndex, docid: str, shown: Shown, query: str = '') -> dict[str, Any]:
    """A document in the fields of `Shown.documents`.

    Raises MissingResourceError for a docid that the index lacks.
    """
    (fields,) = shown.documents(index, [docid], query)
    if fields['doc'] is None:
        raise MissingResourceError(f"index '{index.alias}' has no document '{docid[:200]}'")
    return fields


def searched(index: ServedIndex, answer: Answer, shown: Shown, **more: Any) -> dict[str, Any]:
    """The answer to a search; with a qid, that to a query of a batch."""
    ask = answer.ask
    ranking = answer.ranking
    documents = shown.documents(index, ranking.docids, ask.query)
    candidates = [
        {'docid': docid, 'score': round(float(score), _SCORE_DIGITS), 'rank': rank, **fields}
        for rank, (docid, score, fields) in enumerate(
            zip(ranking.docids, ranking.scores, documents, strict=True), 1
        )
    ]
    if shown.provenance:
        judged = _judged(index, answer)
        grades = index.qrels[judged['qid']] if judged else {}
        ranks = [(part, _ranks(part.ranking)) for part in answer.parts]
        for hit in candidates:
            hit['provenance'] = [_place(part, of_part.get(hit['docid'])) for part, of_part in ranks]
            hit['grade'] = grades.get(hit['docid'])
        more |= {'rankings': [part.name for part in answer.parts], 'judged': judged}
    return {
        'api': API,
        'index': index.alias,
        'query': {'text': ask.query},
        'candidates': candidates,
        'system': list(ask.systems),
        'fusion': ask.spec.fusion if len(ask.systems) > 1 else None,
        'rerank': [str(stage) for stage in ask.spec.stages],
        'steps': [dict(step) for step in answer.steps],
        **more,
    }


def _place(part: PartRanking, rank: int | None) -> dict[str, Any]:
    score = None if rank is None else round(float(part.ranking.scores[rank - 1]), _SCORE_DIGITS)
    return {
        'ranking': part.name,
        'rank': rank,
        'score': score,
        'below': part.below if rank is None else None,
    }


def _ranks(ranking: Ranking) -> dict[str, int]:
    return {docid: rank for rank, docid in enumerate(ranking.docids, 1)}


def _judged(index: ServedIndex, answer: Answer) -> dict[str, Any] | None:
    """The judged topic that the query is, measured on the whole ranking: no measure depends on
    the hits shown.
    """
    qid = index.judged(answer.ask.query)
    if qid is None:
        return None
    grades = index.qrels[qid]
    measures = evaluate({qid: answer.whole.ranking}, {qid: grades}, parse_measures(MEASURES)).means
    relevant = {docid: grade for docid, grade in grades.items() if grade > 0}
    return {'qid': qid, 'relevant': relevant, 'measures': measures}


def compared(index: ServedIndex, answers: Mapping[str, Answer], shown: Shown) -> dict[str, Any]:
    """The answer to a comparison: two answers, 'a' and 'b', to one question."""
    sides = {side: searched(index, answer, shown) for side, answer in answers.items()}
    a, b = (answer.ranking.docids for answer in answers.values())
    ranks = {side: _ranks(answer.whole.ranking) for side, answer in answers.items()}
    docids = dict.fromkeys((*a, *b))
    judged = sides['a']['judged']
    return {
        'api': API,
        'index': index.alias,
        'query': sides['a']['query'],
        **sides,
        'overlap': overlap(a, b, max(len(a), len(b), 1)),
        'rbo': rank_biased_overlap(a, b),
        'moves': [
            {'docid': docid, 'a': ranks['a'].get(docid), 'b': ranks['b'].get(docid)}
            for docid in docids
        ],
        'depths': {side: answer.whole.below for side, answer in answers.items()},
        'judged': judged
        and judged | {'measures': {side: one['judged']['measures'] for side, one in sides.items()}},
    }


def document(raw: str | None, parse: bool = True, most: int | None = None) -> Any:
    """A stored document for a client, as Pyserini 2.4's server forms it; of a parsed text, at most
    `most` characters.

    `parse` reads JSON: an object loses its identifier, and gives way to its value if one field is
    left.
    """
    if raw is None or not parse:
        return raw
    try:
        value = json.loads(raw)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        value = raw
    if isinstance(value, dict):
        fields = {key: item for key, item in value.items() if key not in _IDENTIFIERS}
        fields = {
            key: item if isinstance(item, (dict, list)) else str(item)
            for key, item in fields.items()
        }
        value = next(iter(fields.values())) if len(fields) == 1 else fields
    if isinstance(value, dict):
        cut = [key for key, item in value.items() if isinstance(item, str) and key.lower() in _CUT]
        return value | {key: value[key][:most] for key in cut}
    return value[:most] if isinstance(value, str) else value


def marked(query: str, text: str) -> list[tuple[str, bool]]:
    """(part, whether it is a word of the query) of a text; the parts, joined, are the text.

    Words match regardless of case and a plural ending; frequent words do not count.
    """
    wanted = {_stem(word) for word in _WORD.findall(query)} - _STOPWORDS
    parts: list[tuple[str, bool]] = []
    end = 0
    for match in _WORD.finditer(text):
        if _stem(match.group()) in wanted:
            parts += [(text[end : match.start()], False), (match.group(), True)]
            end = match.end()
    return [part for part in (*parts, (text[end:], False)) if part[0]] or [('', False)]


def shown_parts(query: str, text: str | None) -> list[dict[str, Any]]:
    """A passage mended for reading, in parts, the query's words marked; at most
    `SHOWN_CHARACTERS` of it.
    """
    whole = text or ''
    parts = [
        {'text': part, 'match': match}
        for part, match in marked(query, mended(whole[:SHOWN_CHARACTERS]))
    ]
    return parts if len(whole) <= SHOWN_CHARACTERS else [*parts, {'text': ' …', 'match': False}]


def _stem(word: str) -> str:
    folded = word.casefold()
    if len(folded) > 4 and folded.endswith('ies'):
        return folded[:-3] + 'y'
    return (
        folded[:-1]
        if len(folded) > 3 and folded.endswith('s') and not folded.endswith('ss')
        else folded
    )
