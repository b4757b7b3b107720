"""Topics and relevance judgments from the files that users have: TSV, TREC and JSON lines; plain
or .gz.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import unquote_plus

from pyserini_repbert.data.corpus_formats import QUERY, is_data_line, parse_data_line
from pyserini_repbert.data.trec_text import plain_text, read_documents, without_tags
from pyserini_repbert.data.values import (
    columns,
    has_surrogates,
    identifier_of,
    identifier_problem,
    integer,
    parse_json,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, numbered_lines
from pyserini_repbert.ranking import Query

logger = logging.getLogger(__name__)

MAX_GRADE = 127  # evaluators spend time and memory on each grade up to the greatest

_CAR = 'enwiki:'
_WEB = re.compile(r'<\?xml|<webtrack\d*>|<topic\s+number=')
_WEB_TOPIC = re.compile(r'<topic\s+number="([^"]*)"')
_FIELD = re.compile(r'<(/?)(\w+)[^<>\n]*>')
_KEPT_FIELDS = ('num', 'title')
_OTHER_FIELDS = (
    'desc',
    'narr',
)  # TREC's others; other tags are refused behind text of <num> or <title>
_ENTITY = re.compile(r'\[(?:START|END)_ENT\]')  # around KILT's entities
_QUERY_FIELDS = {'default': ('text', 'title', 'query'), 'kilt': ('input',), 'raw_jsonl': ('query',)}

TopicsFormat = Literal['default', 'kilt', 'raw_jsonl']  # Pyserini's names
Qrels = dict[str, dict[str, int]]
Topics = Iterator[tuple[int, str, str]]  # line, qid as it is given, text


def normal_form(text: str) -> str:
    """A topic's text in folded case, its words separated by single spaces.

    Topics with the same normal form are the same question.
    """
    return ' '.join(text.casefold().split())


def read_topics(path: StrPath, topics_format: TopicsFormat = 'default') -> list[Query]:
    """The topics of a file, in its order.

    TREC (`<top> <num> … <title> …`, or `<DOC> <DOCNO> … </DOCNO> text </DOC>` as for CACM) and JSON
    lines (`id`/`qid`, `text`/`title`/`query`) are recognised by how they start, and so are CEDR's
    data files (`query<TAB>qid<TAB>text`), the Web tracks' XML (`<topic number="151"> …
    <query>…</query>`), and TREC CAR's list of headings (`enwiki:Aftertaste/Cuisine`, each its own
    qid); everything else is TSV (`qid<TAB>text`). A topic may have an empty text.

    A `topics_format` other than the default says that the file is JSON lines, and where their query
    is: in `input` ('kilt', read without its entity markers) or in `query` ('raw_jsonl').

    Raises InputError for a malformed line (with file and line), text outside of the topics, a qid
    that occurs twice, or a file without topics.
    """
    lines = [(number, line) for number, line in numbered_lines(path, 'topics file') if line.strip()]
    first = lines[0][1].lstrip() if lines else ''
    parse: Callable[[StrPath, list[tuple[int, str]]], Topics]
    if topics_format != 'default':
        parse = partial(_parse_json, topics_format=topics_format)
    elif first.upper().startswith('<DOC>'):
        parse = _parse_documents
    elif is_data_line(first):
        parse = _parse_data_file
    elif _WEB.match(first):
        parse = _parse_web
    elif first.startswith(_CAR) and '\t' not in first:
        parse = _parse_car
    else:
        parse = (
            _parse_trec
            if first.startswith('<')
            else _parse_json
            if first.startswith('{')
            else _parse_tsv
        )
    topics: list[Query] = []
    seen: dict[str, int] = {}
    for number, given, text in parse(path, lines):
        qid = given.strip()
        if problem := identifier_problem(qid):
            raise InputError.at(path, number, f'qid {qid[:60]!r} {problem}')
        if qid in seen:
            raise InputError.at(
                path, number, f"topic '{qid}' was given before, in line {seen[qid]}"
            )
        seen[qid] = number
        topics.append(Query(qid, text))
    if not topics:
        raise InputError(
            f"topics file {path} has no topics: expected lines 'qid<TAB>text' or TREC topics"
        )
    return topics


def _parse_web(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    """The queries of the Web tracks; the files of several years may be concatenated."""
    before, *topics = _WEB_TOPIC.split('\n'.join(line for _, line in lines))
    line = before.count('\n')
    for qid, topic in zip(topics[::2], topics[1::2], strict=True):
        number = lines[line][0]
        if not topic.count('<query>') == topic.count('</query>') == 1:
            raise InputError.at(
                path, number, f"topic '{qid.strip()}' has no <query> … </query>, or several"
            )
        yield number, qid, plain_text(topic.partition('<query>')[2].partition('</query>')[0])
        line += topic.count('\n')


def _parse_car(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    """Percent-encoded headings, from the page to the section: the qid as it is written, the
    query decoded.
    """
    for number, line in lines:
        qid = line.strip()
        if not qid.startswith(_CAR):
            raise InputError.at(
                path, number, f"expected a heading that begins with '{_CAR}', found {line[:60]!r}"
            )
        yield number, qid, unquote_plus(qid.removeprefix(_CAR))


def _parse_tsv(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    for number, line in lines:
        qid, tab, text = line.partition('\t')
        if not tab or not qid.strip():
            raise InputError.at(path, number, f"expected 'qid<TAB>text', found {line[:60]!r}")
        yield number, qid, text.strip()


def _parse_data_file(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    """The queries of a data file of CEDR; documents in it are ignored."""
    for number, line in lines:
        try:
            found = parse_data_line(line)
        except ValueError as error:
            raise InputError.at(path, number, str(error)) from error
        if found.kind == QUERY:
            yield number, found.identifier, found.text


def _parse_json(
    path: StrPath, lines: list[tuple[int, str]], topics_format: TopicsFormat = 'default'
) -> Topics:
    """JSON lines; the query is the first of the format's fields that a record has."""
    fields = _QUERY_FIELDS[topics_format]
    for number, line in lines:
        wanted = f"expected a JSON object with 'id' and '{fields[0]}', found {line[:60]!r}"
        try:
            record = parse_json(line)
            if not isinstance(record, dict):
                raise ValueError('not an object')
            qid = identifier_of(record, ('id', 'qid', 'query_id', '_id'))
        except ValueError as error:
            raise InputError.at(path, number, f'{wanted} ({error})') from error
        text = next((record[key] for key in fields if key in record), None)
        if not isinstance(text, str):
            raise InputError.at(path, number, f"{wanted} (no '{fields[0]}')")
        if topics_format == 'kilt':
            text = _ENTITY.sub('', text)
        if has_surrogates(text):
            raise InputError.at(
                path, number, f"topic '{qid}' has half of a surrogate pair, which is no character"
            )
        yield number, qid, text.strip()


def _parse_trec(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    """Each <top> holds <num> ('Number: ' allowed) and <title> ('Topic: ' allowed).

    A field ends with its closing tag or with the next field; fields other than num and title are
    ignored.
    """
    markup = '\n'.join(line for _, line in lines)
    fields: dict[str, str] | None = None  # of the topic that is read
    field = ''
    start = 0
    line = 0
    position = 0
    for tag in [*_FIELD.finditer(markup), None]:
        text = markup[position : tag.start() if tag else len(markup)]
        if fields is not None and field in _KEPT_FIELDS:
            fields[field] = text
        elif (fields is None or not field) and (outside := without_tags(text).strip()):
            blank_lines = text[: -len(text.lstrip())].count('\n')
            where = '<top> … </top>' if fields is None else 'the fields of a <top>'
            raise InputError.at(
                path, lines[line + blank_lines][0], f'text outside {where}: {outside[:40]!r}'
            )
        if tag is None:
            break
        line += text.count('\n')
        position = tag.end()
        number = lines[line][0]
        closing = tag[1]
        name = tag[2].lower()
        if problem := _misplaced(closing, name, fields, field, bool(text.strip())):
            raise InputError.at(path, number, problem)
        if name == 'top':
            if fields is not None:
                yield _trec_topic(path, start, fields)
            fields = None if closing else {}
            field = ''
            start = number
        elif fields is not None:
            field = ('' if name in _KEPT_FIELDS else field) if closing else name
    if fields is not None:
        yield _trec_topic(path, start, fields)


def _misplaced(
    closing: str, name: str, fields: Collection[str] | None, field: str, after_text: bool
) -> str | None:
    """What is wrong with a tag at its place; None if nothing is."""
    if fields is None:
        outside = name in _KEPT_FIELDS or (closing and name == 'top')
        return f'<{closing}{name}> outside <top> … </top>' if outside else None
    if name in fields and not closing:
        return f'a <top> with two <{name}>: is </top> missing between them?'
    others = (field,) if closing else (*_KEPT_FIELDS, *_OTHER_FIELDS)
    if field in _KEPT_FIELDS and (closing or after_text) and name not in ('top', *others):
        return f'the tag <{closing}{name}> inside a <{field}>: leave it out'
    return None


def _trec_topic(path: StrPath, start: int, fields: Mapping[str, str]) -> tuple[int, str, str]:
    qid = fields.get('num', '').strip().removeprefix('Number:').strip()
    if not qid or 'title' not in fields:
        raise InputError.at(path, start, 'a <top> without <num> or <title>')
    return start, qid, ' '.join(fields['title'].strip().removeprefix('Topic:').split())


def _parse_documents(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    """Each <DOC> holds a <DOCNO>, the qid, and the text of the topic (SMART collections in TREC
    form: CACM).
    """
    encoded = ((number, f'{line}\n'.encode()) for number, line in lines)
    for document in read_documents(encoded):
        if document.problem:
            raise InputError.at(path, document.line, document.problem)
        yield document.line, document.docid, document.text


def read_qrels(path: StrPath) -> Qrels:
    """TREC relevance judgments, `qid iteration docid grade` a line: {qid: {docid: grade}} in the
    file's order.

    A grade is a whole number from -127 to 127. Where a document is judged more than once for a
    topic, the last grade counts, as for trec_eval; a warning says how often grades differ. Raises
    InputError for a malformed line (with file and line), or a file without judgments.
    """
    qrels: Qrels = {}
    changed: list[int] = []
    for number, line in numbered_lines(path, 'qrels file'):
        try:
            values = columns(line)
            if not values:
                continue
            qid, _, docid, grade_text = values
            grade = integer(grade_text, -MAX_GRADE, MAX_GRADE)
        except ValueError as error:
            wanted = f"expected 'qid 0 docid grade', found {line[:60]!r}"
            raise InputError.at(path, number, f'{wanted} ({error})') from error
        judged = qrels.setdefault(qid, {})
        if judged.get(docid, grade) != grade:
            changed.append(number)
        judged[docid] = grade
    if not qrels:
        raise InputError(f'qrels file {Path(path)} has no judgments')
    if changed:
        message = (
            '%s:%d: a document judged before gets another grade; the last one counts (%d '
            'such lines)'
        )
        logger.warning(message, path, changed[0], len(changed))
    return qrels
