"""Topics and relevance judgments from the files that users have: TSV, TREC and JSON lines; plain or .gz."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote_plus

from pyserini_repbert.data.corpus_formats import QUERY, is_data_line, parse_data_line
from pyserini_repbert.data.trec_text import plain_text, read_documents, read_topic_fields, without_tags
from pyserini_repbert.data.values import (
    Choice,
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
_WEB_TOPIC = re.compile(r'<topic\s+number="([^"]*)"[^>]*>')
_ENTITY = re.compile(r'\[(?:START|END)_ENT\]')  # around KILT's entities

Qrels = dict[str, dict[str, int]]
Topics = Iterator[tuple[int, str, str]]  # line, qid as it is given, text


class TopicsFormat(Choice, what='topics format'):
    """How a topics file is read, under Pyserini's names.

    DEFAULT: recognised by its beginning; KILT: JSON lines whose query is `input`, without its entity markers;
    RAW_JSONL: JSON lines whose query is `query`, whatever other fields they have. Pyserini's further formats are for
    images.
    """

    DEFAULT = 'default'
    KILT = 'kilt'
    RAW_JSONL = 'raw_jsonl'


def read_topics(path: StrPath, topics_format: TopicsFormat = TopicsFormat.DEFAULT) -> list[Query]:
    """The topics of a file, in its order.

    TREC (`<top> <num> … <title> …`, or `<DOC> <DOCNO> … </DOCNO> text </DOC>` as for CACM) and JSON lines (`id`/`qid`,
    `text`/`title`/`query`) are recognised by how they start, and so are CEDR's data files (`query<TAB>qid<TAB>text`),
    the Web tracks' XML (`<topic number="151"> … <query>…</query>`), and TREC CAR's list of headings
    (`enwiki:Aftertaste/Cuisine`, each its own qid); everything else is TSV (`qid<TAB>text`). A topic may have an
    empty text.

    `topics_format` is for JSON lines whose query is in another field. Raises InputError for a malformed line (with file
    and line), text outside of the topics, a qid that occurs twice, or a file without topics.
    """
    lines = [(number, line) for number, line in numbered_lines(path, 'topics file') if line.strip()]
    if not lines:
        raise InputError(f"topics file {path} has no topics: expected lines 'qid<TAB>text' or TREC topics")
    first = lines[0][1].lstrip()
    parse: Callable[[StrPath, list[tuple[int, str]]], Topics]
    if topics_format is not TopicsFormat.DEFAULT:
        parse = partial(_parse_json, keys=('input' if topics_format is TopicsFormat.KILT else 'query',))
    elif first.upper().startswith('<DOC>'):
        parse = _parse_documents
    elif is_data_line(first):
        parse = _parse_data_file
    elif _WEB.match(first):
        parse = _parse_web
    elif first.startswith(_CAR) and '\t' not in first:
        parse = _parse_car
    else:
        parse = _parse_trec if first.startswith('<') else _parse_json if first.startswith('{') else _parse_tsv
    topics: list[Query] = []
    seen: dict[str, int] = {}
    for number, given, text in parse(path, lines):
        qid = given.strip()
        if problem := identifier_problem(qid):
            raise InputError.at(path, number, f'qid {qid[:60]!r} {problem}')
        if qid in seen:
            raise InputError.at(path, number, f"topic '{qid}' was given before, in line {seen[qid]}")
        seen[qid] = number
        topics.append(Query(qid, text))
    if not topics:
        raise InputError(f'topics file {path} has no <top> elements: expected TREC topics or TSV')
    return topics


def _parse_web(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    """The queries of the Web tracks; the files of several years may be concatenated."""
    *elements, rest = '\n'.join(line for _, line in lines).split('</topic>')
    outside, line, topics = [rest], 0, 0
    for element in elements:
        start = _WEB_TOPIC.search(element, 0, element.rfind('>') + 1)
        if start is not None:
            topics += 1
            number = lines[line + element.count('\n', 0, start.start())][0]
            query, end = element[start.end() :].partition('<query>')[2].partition('</query>')[:2]
            if not end:
                raise InputError.at(path, number, f"topic '{start[1].strip()}' has no <query>")
            yield number, start[1], plain_text(query)
        outside.append(element if start is None else element[: start.start()])
        line += element.count('\n')
    left = without_tags(''.join(outside)).strip()
    if left or not topics:
        raise InputError(f'topics file {path} has text outside <topic number="…"> … </topic>: {left[:40]!r}')


def _parse_car(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    """Percent-encoded headings, from the page to the section: the qid as it is written, the query decoded."""
    for number, line in lines:
        qid = line.strip()
        if not qid.startswith(_CAR):
            raise InputError.at(path, number, f"expected a heading that begins with '{_CAR}', found {line[:60]!r}")
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
            kind, qid, text = parse_data_line(line)
        except ValueError as error:
            raise InputError.at(path, number, str(error)) from error
        if kind == QUERY:
            yield number, qid, text
    if not any(line.startswith(f'{QUERY}\t') for _, line in lines):
        raise InputError(f"topics file {path} holds documents only: name the file with 'query<TAB>qid<TAB>text'")


def _parse_json(
    path: StrPath, lines: list[tuple[int, str]], keys: Sequence[str] = ('text', 'title', 'query')
) -> Topics:
    """JSON lines; the query is the value of the first of `keys` that a record has."""
    for number, line in lines:
        wanted = f"expected a JSON object with 'id' and '{keys[0]}', found {line[:60]!r}"
        try:
            record = parse_json(line)
            if not isinstance(record, dict):
                raise ValueError('not an object')
            qid = identifier_of(record, ('id', 'qid', 'query_id', '_id'))
        except ValueError as error:
            raise InputError.at(path, number, f'{wanted} ({error})') from error
        text = next((record[key] for key in keys if key in record), None)
        if not isinstance(text, str):
            raise InputError.at(path, number, f"{wanted} (no '{keys[0]}')")
        if 'input' in keys:
            text = _ENTITY.sub('', text)
        if has_surrogates(text):
            raise InputError.at(path, number, f"topic '{qid}' has half of a surrogate pair, which is no character")
        yield number, qid, text.strip()


def _parse_trec(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    """Each <top> holds <num> ('Number: ' allowed) and <title> ('Topic: ' allowed); closing tags are optional."""
    for start, topic in read_topic_fields(lines):
        if isinstance(topic, str):
            raise InputError.at(path, start, topic)
        qid = topic.get('num', '').strip().removeprefix('Number:').strip()
        if not qid or 'title' not in topic:
            raise InputError.at(path, start, 'a <top> without <num> or <title>')
        title = topic['title'].strip().removeprefix('Topic:')
        yield start, qid, ' '.join(title.split())


def _parse_documents(path: StrPath, lines: list[tuple[int, str]]) -> Topics:
    """Each <DOC> holds a <DOCNO>, the qid, and the text of the topic (SMART collections in TREC form: CACM)."""
    for start, document in read_documents((number, f'{line}\n'.encode()) for number, line in lines):
        if isinstance(document, str):
            raise InputError.at(path, start, document)
        yield start, document[0], document[1]


def read_qrels(path: StrPath) -> Qrels:
    """TREC relevance judgments, `qid iteration docid grade` a line: {qid: {docid: grade}} in the file's order.

    A grade is a whole number from -127 to 127. Where a document is judged more than once for a topic, the
    last grade counts, as for trec_eval; a warning says how often grades differ. Raises InputError for a malformed line
    (with file and line), or a file without judgments.
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
        message = '%s:%d: a document judged before gets another grade; the last one counts (%d such lines)'
        logger.warning(message, path, changed[0], len(changed))
    return qrels
