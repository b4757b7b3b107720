"""Topics and relevance judgments from files: TSV, TREC and JSON lines, plain or .gz."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice
from typing import Any
from urllib.parse import unquote_plus

from pyserini_repbert.data.answered_topics import (
    is_answered_line,
    is_answered_record,
    parse_answered_lines,
    parse_answered_records,
    parse_question_list,
)
from pyserini_repbert.data.corpus_formats import QUERY, is_data_line, parse_data_line
from pyserini_repbert.data.topic_lines import topic_lines
from pyserini_repbert.data.trec_text import read_documents
from pyserini_repbert.data.trec_topics import FoundTopic, NumberedLines, Topics, parse_marked_up
from pyserini_repbert.data.values import (
    HALF_PAIR,
    Choice,
    has_surrogates,
    identifier_of,
    identifier_problem,
    parse_json,
)
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.ranking import Query

_CAR = 'enwiki:'
# As NIST gives the queries of its Web tracks; the Million Query track has a priority between.
_NUMBERED = re.compile(r'([0-9]+):(?:[0-9]+:)?(.*)')
# Topics of TREC CAR 1.5: percent-encoded headings, without a name of a wiki in front.
_HEADINGS = re.compile(r'[^\s/:]+(?:/[^\s/:]+)+')
# M-BEIR's question, null if it is an image
_IMAGE_OR_TEXT = 'query_txt'
_ENTITY = re.compile(r'\[(?:START|END)_ENT\]')  # around KILT's entities


class TopicsFormat(Choice, what='topics format'):
    """How a file's topics are written, by Pyserini's names.

    DEFAULT : as the file itself tells
    KILT : JSON lines, their query in `input`
    RAW_JSONL : JSON lines, their query in `query`
    """

    DEFAULT = 'default'
    KILT = 'kilt'
    RAW_JSONL = 'raw_jsonl'


# Where JSON lines have their query.
_QUERY_FIELDS = {
    TopicsFormat.DEFAULT: ('text', 'title', 'query', _IMAGE_OR_TEXT),
    TopicsFormat.KILT: ('input',),
    TopicsFormat.RAW_JSONL: ('query',),
}


def read_topics(path: StrPath, topics_format: str = TopicsFormat.DEFAULT) -> list[Query]:
    """The topics of a file, in its order.

    TREC (`<top> <num> … <title> …`, or `<DOC> <DOCNO> … </DOCNO> text </DOC>` as for CACM), the XML
    of its later tracks (`<topic number="151"> … <query>…</query>`) and JSON lines (`id`/`qid`,
    `text`/`title`/`query`) are recognised by how they start, and so are CEDR's data files
    (`query<TAB>qid<TAB>text`), lists as of the Web tracks (`151:text`), and TREC CAR's list of
    headings (`enwiki:Aftertaste/Cuisine`, each its own qid), DPR's questions with their answers
    (numbered from 0), EPIDEMIC-QA's list of JSON; everything else is TSV (`qid<TAB>text`). Some
    topics may have an empty text. Lines that are not in UTF-8 are in the encoding that is detected,
    with a warning; XML may say its encoding.

    A `topics_format` other than the default says that the file is JSON lines, and where their query
    is: in `input` ('kilt', read without its entity markers) or in `query` ('raw_jsonl').

    Raises InputError for a malformed line (with file and line), text outside of the topics, a qid
    that occurs twice, a file without topics or without any text, vectors of queries, or an unknown
    format.
    """
    chosen = TopicsFormat(topics_format)
    lines = topic_lines(path)
    if chosen is TopicsFormat.DEFAULT:
        first = list(islice(lines, 1))
        first_line = first[0][1].lstrip() if first else ''
        parsed = _parser_of(first_line)(path, chain(first, lines))
    else:
        parsed = _parse_json(path, lines, chosen)
    topics: list[Query] = []
    first_lines: dict[str, int] = {}
    for topic in parsed:
        qid = topic.qid.strip()
        problem = identifier_problem(qid)
        if problem:
            raise InputError.at(path, topic.line, f'qid {qid[:60]!r} {problem}')
        if qid in first_lines:
            problem = f"topic '{qid}' was given before, in line {first_lines[qid]}"
            raise InputError.at(path, topic.line, f'{problem}: give it another qid, or delete it')
        first_lines[qid] = topic.line
        topics.append(Query(qid, topic.text))
    if not topics:
        raise InputError(
            f"topics file {path} has no topics: expected lines 'qid<TAB>text' or TREC topics"
        )
    if not any(topic.text for topic in topics):
        raise InputError(f'topics file {path} has no text in any topic: give topics that have text')
    return topics


def _parser_of(first_line: str) -> Callable[[StrPath, NumberedLines], Topics]:
    """The parser of a file that begins so."""
    if first_line.upper().startswith('<DOC>'):
        return _parse_documents
    if is_data_line(first_line):
        return _parse_data_file
    if first_line.startswith(_CAR) and '\t' not in first_line:
        return _parse_car
    if first_line.startswith('<'):
        return parse_marked_up
    if first_line.startswith('[') and '\t' not in first_line:
        return parse_question_list
    if first_line.startswith('{'):
        return parse_answered_records if is_answered_record(first_line) else _parse_json
    if is_answered_line(first_line):
        return parse_answered_lines
    if _HEADINGS.fullmatch(first_line):
        return _parse_headings
    if '\t' not in first_line and _NUMBERED.match(first_line):
        return _parse_numbered
    return _parse_tsv


def _parse_car(path: StrPath, lines: NumberedLines) -> Topics:
    """Percent-encoded headings, from the page to the section.

    The qid is a heading as written; the query is decoded.
    """
    for number, line in lines:
        qid = line.strip()
        if not qid.startswith(_CAR):
            raise InputError.at(
                path, number, f"expected a heading that begins with '{_CAR}', found {line[:60]!r}"
            )
        yield FoundTopic(number, qid, unquote_plus(qid.removeprefix(_CAR)))


def _parse_headings(path: StrPath, lines: NumberedLines) -> Topics:
    """Percent-encoded headings without a name of a wiki, as TREC CAR 1.5 has them."""
    for number, line in lines:
        qid = line.strip()
        if '\t' in qid:
            problem = f'expected headings of TREC CAR, as in the first line, found {line[:60]!r}'
            raise InputError.at(path, number, problem)
        yield FoundTopic(number, qid, unquote_plus(qid))


def _parse_tsv(path: StrPath, lines: NumberedLines) -> Topics:
    for number, line in lines:
        qid, tab, text = line.partition('\t')
        if not tab or not qid.strip():
            raise InputError.at(path, number, f"expected 'qid<TAB>text', found {line[:60]!r}")
        yield FoundTopic(number, qid, text.strip())


def _parse_numbered(path: StrPath, lines: NumberedLines) -> Topics:
    """Lines `qid:text`, or `qid:priority:text`."""
    for number, line in lines:
        topic = _NUMBERED.match(line)
        if topic is None:
            raise InputError.at(path, number, f"expected 'qid:text', found {line[:60]!r}")
        yield FoundTopic(number, topic[1], topic[2].strip())


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
    path: StrPath, lines: NumberedLines, topics_format: TopicsFormat = TopicsFormat.DEFAULT
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
        if text is None and 'vector' in record:
            problem = (
                'vectors of queries, without text: give the file that has their text, without an '
                "encoder's name in its name"
            )
            raise InputError.at(path, number, problem)
        if text is None and _IMAGE_OR_TEXT in record:
            text = ''
        if not isinstance(text, str):
            raise InputError.at(path, number, f"{wanted} (no '{fields[0]}')")
        if topics_format is TopicsFormat.KILT:
            text = _ENTITY.sub('', text)
        if has_surrogates(text):
            raise InputError.at(path, number, f"topic '{qid}' has {HALF_PAIR}")
        yield FoundTopic(number, qid, text.strip())


def _first_value(record: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The value of the first of `keys` that the record has; None if it has none."""
    for key in keys:
        if key in record:
            return record[key]
    return None


def _parse_documents(path: StrPath, lines: NumberedLines) -> Topics:
    """Each <DOC> holds a <DOCNO>, the qid, and the text of the topic.

    SMART collections in TREC form have such topics: CACM.
    """
    encoded = ((number, f'{line}\n'.encode()) for number, line in lines)
    for document in read_documents(encoded):
        if document.problem:
            raise InputError.at(path, document.line, document.problem)
        yield FoundTopic(document.line, document.docid, document.text)
