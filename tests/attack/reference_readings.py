"""What files say, read a second time: slowly, by the formats' rules, without a line of the package's code.

Each function takes a file's bytes and gives what they say; it raises `Refused` for what no reader should take.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

ASCII_SPACE = b' \t\n\r\x0b\x0c'
WHOLE = re.compile('[+-]?[0-9]+')
DECIMAL = re.compile(r'[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?')


class Refused(Exception):
    """`lines` are those that may be named; none where it is about the file."""

    def __init__(self, *lines: int) -> None:
        super().__init__(*lines)
        self.lines = lines


def raw_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, line with its end), without a byte order mark at the beginning."""
    if data[:3] == b'\xef\xbb\xbf':
        data = data[3:]
    number = 0
    while data:
        number += 1
        end = data.find(b'\n')
        line, data = (data, b'') if end < 0 else (data[: end + 1], data[end + 1 :])
        yield number, line


def text_of(number: int, line: bytes) -> str:
    while line[-1:] in (b'\n', b'\r'):
        line = line[:-1]
    if b'\r' in line:
        raise Refused(number)
    try:
        return line.decode('utf-8')
    except UnicodeDecodeError as error:
        raise Refused(number) from error


def text_lines(data: bytes) -> list[tuple[int, str]]:
    return [(number, text_of(number, line)) for number, line in raw_lines(data)]


def values_of(number: int, line: str) -> list[str]:
    """Split at ASCII white space."""
    if '\0' in line or '\ufeff' in line:
        raise Refused(number)
    found, value = [], ''
    for character in line + ' ':
        if character.encode() not in ASCII_SPACE if character.isascii() else True:
            value += character
        elif value:
            found.append(value)
            value = ''
    return found


def whole(number: int, text: str, least: int, most: int) -> int:
    if not WHOLE.fullmatch(text) or len(text) > 600 or not least <= int(text) <= most:
        raise Refused(number)
    return int(text)


def run(data: bytes) -> dict[str, tuple[list[str], list[float]]]:
    """A run in either format: {qid: (docids, scores)}, best first."""
    columns = 0
    keys: dict[str, dict[str, float]] = {}
    repeated: list[int] = []
    for number, line in raw_lines(data):
        try:
            values = values_of(number, text_of(number, line))
            if not values:
                continue
            columns = columns or len(values)
            if columns not in (3, 6) or len(values) != columns:
                raise Refused(number)
            if columns == 3:
                qid, docid, rank = values
                key = float(whole(number, rank, 0, 2**53))
            else:
                qid, _, docid, rank, score, _ = values
                whole(number, rank, -(2**53), 2**53)
                if not DECIMAL.fullmatch(score) or abs(float(score)) == float('inf'):
                    raise Refused(number)
                key = -float(score)
        except Refused as error:
            raise Refused(number, *repeated) from error
        if docid in keys.setdefault(qid, {}):
            repeated.append(number)
        keys[qid][docid] = key
    if repeated:
        raise Refused(*repeated)
    found = {}
    for qid, own in keys.items():
        docids = [docid for _, docid in sorted((key, docid) for docid, key in own.items())]
        reciprocal = [1 / (place + 1) for place in range(len(docids))]
        found[qid] = (docids, reciprocal if columns == 3 else [-own[docid] for docid in docids])
    return found


def qrels(data: bytes) -> dict[str, dict[str, int]]:
    """TREC judgments; the last grade of a pair counts."""
    found: dict[str, dict[str, int]] = {}
    for number, line in text_lines_one_by_one(data):
        values = values_of(number, line)
        if not values:
            continue
        if len(values) != 4:
            raise Refused(number)
        found.setdefault(values[0], {})[values[2]] = whole(number, values[3], -127, 127)
    if not found:
        raise Refused
    return found


def text_lines_one_by_one(data: bytes) -> Iterator[tuple[int, str]]:
    for number, line in raw_lines(data):
        yield number, text_of(number, line)


def identifier(number: int, name: str) -> str:
    """A qid or docid: something, without white space of any script, NUL, byte order marks, halves of characters."""
    if not name or any(character.isspace() or character in '\0\ufeff' for character in name):
        raise Refused(number)
    return whole_characters(number, name)


def whole_characters(number: int, text: str) -> str:
    if any('\ud800' <= character <= '\udfff' for character in text):
        raise Refused(number)
    return text


def topics_tsv(data: bytes) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    text = text_lines(data)  # the whole file is decoded before the first topic is looked at
    for number, line in text:
        if not line.strip():
            continue
        qid, tab, rest = line.partition('\t')
        if not tab:
            raise Refused(number)
        qid = identifier(number, qid.strip())
        if qid in found:
            raise Refused(number)
        found[qid] = rest.strip()
    if not found:
        raise Refused
    return list(found.items())


def json_object(number: int, line: str) -> dict[str, object]:
    seen: list[list[tuple[str, object]]] = []
    try:
        found = json.loads(line, object_pairs_hook=lambda pairs: seen.append(pairs) or dict(pairs))
    except (ValueError, RecursionError) as error:
        raise Refused(number) from error
    if not isinstance(found, dict) or any(len(dict(pairs)) < len(pairs) for pairs in seen):
        raise Refused(number)
    return found


def json_identifier(number: int, record: dict[str, object], *keys: str) -> str:
    for key in keys:
        if key in record:
            value = record[key]
            if type(value) not in (str, int):
                raise Refused(number)
            return str(value)
    raise Refused(number)


def topics_jsonl(data: bytes) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for number, line in text_lines(data):
        if not line.strip():
            continue
        record = json_object(number, line)
        qid = json_identifier(number, record, 'id', 'qid', '_id')
        text = next((record[key] for key in ('text', 'title', 'query') if key in record), None)
        if not isinstance(text, str):
            raise Refused(number)
        qid, text = identifier(number, qid.strip()), whole_characters(number, text).strip()
        if qid in found:
            raise Refused(number)
        found[qid] = text
    if not found:
        raise Refused
    return list(found.items())


Passages = tuple[list[tuple[str, str]], list[int]]


def _passages(data: bytes, parse: object) -> Passages:
    """The passages, and the numbers of the lines that are none."""
    found: dict[str, str] = {}
    refused: list[int] = []
    for number, line in raw_lines(data):
        if not line.strip(ASCII_SPACE):
            continue
        try:
            docid, text = parse(number, text_of(number, line))  # type: ignore[operator]
            identifier(number, docid)
            whole_characters(number, text)
            if docid in found or not text.strip():
                raise Refused(number)
        except Refused:
            refused.append(number)
        else:
            found[docid] = text
    return list(found.items()), refused


def corpus_tsv(data: bytes) -> Passages:
    def parse(number: int, line: str) -> tuple[str, str]:
        docid, tab, text = line.partition('\t')
        if not tab:
            raise Refused(number)
        return docid, text

    return _passages(data, parse)


def corpus_jsonl(data: bytes) -> Passages:
    def parse(number: int, line: str) -> tuple[str, str]:
        record = json_object(number, line)
        docid = json_identifier(number, record, 'id', '_id', 'docid')
        names = ['contents'] if 'contents' in record else ['title', 'text']
        parts = [record[name] for name in names if record.get(name) is not None]
        if not parts or not all(isinstance(part, str) for part in parts):
            raise Refused(number)
        return docid, ' '.join(str(part) for part in parts if part)

    return _passages(data, parse)


def letters_outside_tags(data: bytes) -> str:
    """The letters and digits that a marked-up file says, its tags left out: all of them have to come out of it."""
    text = re.sub(r'<!--.*?-->|<[a-zA-Z/!?][^>]*>', ' ', data.decode('utf-8', 'replace'), flags=re.DOTALL)
    return ''.join(character for character in text if character.isalnum())
