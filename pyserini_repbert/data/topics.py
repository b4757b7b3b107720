"""Topics and relevance judgments from files: TSV, TREC and JSON lines, plain or .gz."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote_plus

from pyserini_repbert.data.corpus_formats import QUERY, is_data_line, parse_data_line
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.data.trec_text import read_documents
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
# TREC's others; any other tag is refused behind text of <num> or <title>.
_OTHER_FIELDS = ('desc', 'narr')
_ENTITY = re.compile(r'\[(?:START|END)_ENT\]')  # around KILT's entities
_QUERY_FIELDS = {'default': ('text', 'title', 'query'), 'kilt': ('input',), 'raw_jsonl': ('query',)}

TopicsFormat = Literal['default', 'kilt', 'raw_jsonl']  # Pyserini's names
Qrels = dict[str, dict[str, int]]
NumberedLines = list[tuple[int, str]]


class FoundTopic(NamedTuple):
    """A topic of a file."""

    line: int  # its first, from 1
    qid: str  # as it is given
    text: str


Topics = Iterator[FoundTopic]


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
    if topics_format == 'default':
        first_line = lines[0][1].lstrip() if lines else ''
        parsed = _parser_of(first_line)(path, lines)
    else:
        parsed = _parse_json(path, lines, topics_format)
    topics: list[Query] = []
    first_lines: dict[str, int] = {}
    for topic in parsed:
        qid = topic.qid.strip()
        problem = identifier_problem(qid)
        if problem:
            raise InputError.at(path, topic.line, f'qid {qid[:60]!r} {problem}')
        if qid in first_lines:
            raise InputError.at(
                path, topic.line, f"topic '{qid}' was given before, in line {first_lines[qid]}"
            )
        first_lines[qid] = topic.line
        topics.append(Query(qid, topic.text))
    if not topics:
        raise InputError(
            f"topics file {path} has no topics: expected lines 'qid<TAB>text' or TREC topics"
        )
    return topics


def _parser_of(first_line: str) -> Callable[[StrPath, NumberedLines], Topics]:
    """The parser of a file that begins so."""
    if first_line.upper().startswith('<DOC>'):
        return _parse_documents
    if is_data_line(first_line):
        return _parse_data_file
    if _WEB.match(first_line):
        return _parse_web
    if first_line.startswith(_CAR) and '\t' not in first_line:
        return _parse_car
    if first_line.startswith('<'):
        return _parse_trec
    if first_line.startswith('{'):
        return _parse_json
    return _parse_tsv


def _parse_web(path: StrPath, lines: NumberedLines) -> Topics:
    """The queries of the Web tracks; the files of several years may be concatenated."""
    before, *topics = _WEB_TOPIC.split('\n'.join(line for _, line in lines))
    line = before.count('\n')
    for qid, topic in zip(topics[::2], topics[1::2], strict=True):
        number = lines[line][0]
        if not topic.count('<query>') == topic.count('</query>') == 1:
            raise InputError.at(
                path, number, f"topic '{qid.strip()}' has no <query> … </query>, or several"
            )
        _, _, rest = topic.partition('<query>')
        query, _, _ = rest.partition('</query>')
        yield FoundTopic(number, qid, visible_text(query))
        line += topic.count('\n')


def _parse_car(path: StrPath, lines: NumberedLines) -> Topics:
    """Percent-encoded headings, from the page to the section.

    The qid is a heading as it is written, the query is decoded.
    """
    for number, line in lines:
        qid = line.strip()
        if not qid.startswith(_CAR):
            raise InputError.at(
                path, number, f"expected a heading that begins with '{_CAR}', found {line[:60]!r}"
            )
        yield FoundTopic(number, qid, unquote_plus(qid.removeprefix(_CAR)))


def _parse_tsv(path: StrPath, lines: NumberedLines) -> Topics:
    for number, line in lines:
        qid, tab, text = line.partition('\t')
        if not tab or not qid.strip():
            raise InputError.at(path, number, f"expected 'qid<TAB>text', found {line[:60]!r}")
        yield FoundTopic(number, qid, text.strip())


def _parse_data_file(path: StrPath, lines: NumberedLines) -> Topics:
    """The queries of a data file of CEDR; documents in it are ignored."""
    for number, line in lines:
        try:
            data_line = parse_data_line(line)
        except ValueError as error:
            raise InputError.at(path, number, str(error)) from error
        if data_line.kind == QUERY:
            yield FoundTopic(number, data_line.identifier, data_line.text)


def _parse_json(
    path: StrPath, lines: NumberedLines, topics_format: TopicsFormat = 'default'
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
        text = _first_value(record, fields)
        if not isinstance(text, str):
            raise InputError.at(path, number, f"{wanted} (no '{fields[0]}')")
        if topics_format == 'kilt':
            text = _ENTITY.sub('', text)
        if has_surrogates(text):
            raise InputError.at(
                path, number, f"topic '{qid}' has half of a surrogate pair, which is no character"
            )
        yield FoundTopic(number, qid, text.strip())


def _first_value(record: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The value of the first of `keys` that the record has; None if it has none."""
    for key in keys:
        if key in record:
            return record[key]
    return None


def _parse_trec(path: StrPath, lines: NumberedLines) -> Topics:
    """Each <top> holds <num> ('Number: ' allowed) and <title> ('Topic: ' allowed).

    A field ends with its closing tag or with the next field; fields other than num and title are
    ignored.
    """
    markup = '\n'.join(line for _, line in lines)
    reader = _TrecReader(path, lines)
    position = 0
    for tag in _FIELD.finditer(markup):
        text = markup[position : tag.start()]
        position = tag.end()
        reader.read_text(text)
        yield from reader.read_tag(tag[1], tag[2].lower(), after_text=bool(text.strip()))
    reader.read_text(markup[position:])
    yield from reader.finish()


class _TrecReader:
    """What has been read of a file of TREC topics.

    `_fields` has the fields of the <top> that is open, None outside of one; `_field` is the field
    that is open, '' between fields.
    """

    def __init__(self, path: StrPath, lines: NumberedLines) -> None:
        self._path = path
        self._lines = lines
        self._row = 0  # in `lines`, of what is read
        self._start = 0
        self._fields: dict[str, str] | None = None
        self._field = ''

    def read_text(self, text: str) -> None:
        """Take the text between two tags. Raises InputError for text outside the fields."""
        if self._fields is not None and self._field in _KEPT_FIELDS:
            self._fields[self._field] = text
        elif self._fields is None or not self._field:
            self._refuse_text(text)
        self._row += text.count('\n')

    def _refuse_text(self, text: str) -> None:
        outside = visible_text(text)
        if not outside:
            return
        where = '<top> … </top>' if self._fields is None else 'the fields of a <top>'
        blank_lines = text[: -len(text.lstrip())].count('\n')
        number, _ = self._lines[self._row + blank_lines]
        raise InputError.at(self._path, number, f'text outside {where}: {outside[:40]!r}')

    def read_tag(self, closing: str, name: str, after_text: bool) -> Topics:
        """Take a tag, whose `closing` is '/' or ''. Yields the topic that it ends, if it does."""
        number, _ = self._lines[self._row]
        problem = _misplaced(closing, name, self._fields, self._field, after_text)
        if problem:
            raise InputError.at(self._path, number, problem)
        if name == 'top':
            yield from self.finish()
            self._fields = None if closing else {}
            self._field = ''
            self._start = number
        elif self._fields is not None and not closing:
            self._field = name
        elif name in _KEPT_FIELDS:
            self._field = ''

    def finish(self) -> Topics:
        """Yield the topic that is open, if one is."""
        if self._fields is not None:
            yield _trec_topic(self._path, self._start, self._fields)


def _misplaced(
    closing: str, name: str, fields: Collection[str] | None, field: str, after_text: bool
) -> str | None:
    """What is wrong with a tag where it stands; None if nothing is.

    Parameters
    ----------
    closing : '/' of a closing tag, else ''
    name : of the tag
    fields : those that the open <top> has so far; None outside of one
    field : the one that is open; '' if none is
    after_text : whether text stands between the tag before and this one
    """
    if fields is None:
        if name in _KEPT_FIELDS or (closing and name == 'top'):
            return f'<{closing}{name}> outside <top> … </top>'
        return None
    if name in fields and not closing:
        return f'a <top> with two <{name}>: is </top> missing between them?'
    others = (field,) if closing else (*_KEPT_FIELDS, *_OTHER_FIELDS)
    is_inside = field in _KEPT_FIELDS and (closing or after_text)
    if is_inside and name not in ('top', *others):
        return f'the tag <{closing}{name}> inside a <{field}>: leave it out'
    return None


def _trec_topic(path: StrPath, start: int, fields: Mapping[str, str]) -> FoundTopic:
    qid = fields.get('num', '').strip().removeprefix('Number:').strip()
    if not qid or 'title' not in fields:
        raise InputError.at(path, start, 'a <top> without <num> or <title>')
    words = fields['title'].strip().removeprefix('Topic:').split()
    return FoundTopic(start, qid, ' '.join(words))


def _parse_documents(path: StrPath, lines: NumberedLines) -> Topics:
    """Each <DOC> holds a <DOCNO>, the qid, and the text of the topic.

    SMART collections in TREC form have such topics: CACM.
    """
    encoded = ((number, f'{line}\n'.encode()) for number, line in lines)
    for document in read_documents(encoded):
        if document.problem:
            raise InputError.at(path, document.line, document.problem)
        yield FoundTopic(document.line, document.docid, document.text)


def read_qrels(path: StrPath) -> Qrels:
    """TREC relevance judgments, `qid iteration docid grade` a line.

    Returns {qid: {docid: grade}} in the file's order. A grade is a whole number from -127 to 127.
    Where a document is judged more than once for a topic, the last grade counts, as for trec_eval;
    a warning says how often grades differ. Raises InputError for a malformed line (with file and
    line), or a file without judgments.
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
            '%s:%d: a document judged before gets another grade; the last one counts (%d such '
            'lines)'
        )
        logger.warning(message, path, changed[0], len(changed))
    return qrels
