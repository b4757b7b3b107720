"""What a .json, .jsonl, .tsv or .trec file holds, by its first lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pyserini_repbert.data.corpus_formats import JsonlCorpus
from pyserini_repbert.data.documents import DOCID_KEYS, TITLE_KEY
from pyserini_repbert.data.first_bytes import guess_lines
from pyserini_repbert.data.passages import OnError
from pyserini_repbert.data.suffixes import (
    JSON,
    JSON_LINES,
    TAB_SEPARATED,
    has_suffix_or_packed,
)
from pyserini_repbert.data.text_encodings import is_utf_16
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.data.values import identifier_of, parse_json
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import numbered_bytes, open_binary

# Columns of a table, and keys of a record, that hold its text.
DESCRIPTION = 'description'
TEXT_COLUMNS = ('contents', 'text', 'content', 'body', 'abstract', DESCRIPTION)
WITHOUT_RECORDS = 'without records'
_KNOWN_COLUMNS = frozenset((*DOCID_KEYS, TITLE_KEY, *TEXT_COLUMNS))
_NAME = re.compile(r'[^\W\d][\w .()/-]{0,60}')
_MOST_HEADER = 65_536  # bytes


def kind_of_records(path: Path, fields: tuple[str, ...] = (), is_strict: bool = True) -> str:
    """The kind of a file of records: 'jsonl', 'tsv', 'cedr', 'trec', 'json' or 'table'.

    Parameters
    ----------
    path : a file with one of the suffixes of records
    fields : the text fields of records that are asked for
    is_strict : whether a file that holds none is read as if it did, which gives its error

    Raises UnreadableFile for a file that holds no records of documents.
    """
    try:
        guessed = guess_lines(path)
    except InputError as error:
        if is_strict:
            raise
        raise UnreadableFile(str(error)) from error
    if guessed in ('cedr', 'trec'):
        return guessed
    if has_suffix_or_packed(path.name, JSON) or guessed == 'jsonl':
        return _kind_of_json(path, fields, is_strict)
    if has_suffix_or_packed(path.name, TAB_SEPARATED) and has_header(path):
        return 'table'
    if guessed or is_strict:
        return guessed or 'tsv'
    raise UnreadableFile("neither 'docid<TAB>text' lines nor a first line of names")


def _kind_of_json(path: Path, fields: tuple[str, ...], is_strict: bool) -> str:
    """'jsonl' or 'json'. Raises UnreadableFile for one without records of documents."""
    lines = _first_lines(path)
    if not lines:
        return 'jsonl'
    is_lines = has_suffix_or_packed(path.name, JSON_LINES)
    is_list = lines[0].startswith(b'[')
    try:
        record = parse_json(lines[0])
    except ValueError as error:
        if is_list or not is_lines:
            return 'json'
        if is_strict:
            return 'jsonl'
        raise UnreadableFile(f'not JSON lines ({error})') from error
    if not isinstance(record, dict) or (len(lines) == 1 and _has_objects_alone(record)):
        return 'json'
    is_asked = is_strict and (is_lines or _has_docid(record))
    if is_asked or _is_record(lines[0], fields):
        return 'jsonl'
    raise UnreadableFile('it holds no records of documents', WITHOUT_RECORDS)


def has_header(path: Path) -> bool:
    """Whether the first line of a file with tabs names its columns.

    It does if it consists of names, has no name twice, and has two known names, or a known name for
    the docid before at least two others.
    """
    with open_binary(path) as stream:
        start = stream.read(_MOST_HEADER)
    encoding = 'utf-16' if is_utf_16(start) else 'utf-8-sig'
    line = start.decode(encoding, 'replace').partition('\n')[0].rstrip('\r')
    names = [name.strip().lower() for name in line.split('\t')]
    if len(set(names)) < len(names) or not all(_NAME.fullmatch(name) for name in names):
        return False
    known = [name for name in names if name in _KNOWN_COLUMNS]
    return len(known) > 1 or (names[0] in DOCID_KEYS and len(names) > 2)


def _first_lines(path: Path) -> list[bytes]:
    """The first two lines of a file that are not blank."""
    lines = []
    with open_binary(path) as stream:
        for _, raw in numbered_bytes(stream):
            if raw.strip():
                lines.append(raw.strip())
            if len(lines) == 2:
                break
    return lines


def _has_objects_alone(record: Mapping[str, object]) -> bool:
    """Whether a JSON object may be records by their docids."""
    return all(isinstance(value, dict) for value in record.values())


def _has_docid(record: Mapping[str, object]) -> bool:
    try:
        identifier_of(record, DOCID_KEYS)
    except ValueError:
        return False
    return True


def _is_record(line: bytes, fields: tuple[str, ...]) -> bool:
    """Whether a line is a passage as JSON lines have it."""
    corpus = JsonlCorpus('', [], OnError.REFUSE, keep_empty=True)
    corpus.fields = fields
    try:
        corpus.parse(line.decode('utf-8'))
    except ValueError:
        return False
    return True
