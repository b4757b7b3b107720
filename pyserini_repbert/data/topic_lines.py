"""The lines of a file of topics, in the encodings that published files have."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import chain

from pyserini_repbert.data.page_encodings import may_say_encoding, xml_encoding
from pyserini_repbert.data.text_encodings import encoding_of_lines
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, decoded_line, existing_file, numbered_bytes, open_binary

logger = logging.getLogger(__name__)

# What a packed file may unpack to. SPLADE's queries repeat words by their weights: MS MARCO's dev
# set takes 1.1 GB, 260 times its packed size.
MAX_TOPICS_BYTES = 2_000_000_000


def topic_lines(path: StrPath) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its end) of the lines that are not blank.

    Lines are in UTF-8. The others of a file are in the one encoding that charset-normalizer
    detects: topics of the Million Query track are a mixture. XML may name another encoding, which
    it must then have. Raises InputError for bytes that are not text, and for a .gz that unpacks to
    more than `MAX_TOPICS_BYTES`.
    """
    with open_binary(existing_file(path, 'topics file'), MAX_TOPICS_BYTES) as stream:
        numbered = numbered_bytes(stream)
        first = next(numbered, None)
        if first is None:
            return
        numbered = chain([first], numbered)
        is_said = may_say_encoding(first[1])
        if is_said:
            numbered = _in_utf8(path, list(numbered))
        encoding = ''
        for number, raw in numbered:
            if not is_said and not encoding and not _is_utf8(raw):
                encoding = _encoding_of_others(path, number)
            line = _decoded(path, number, raw, encoding)
            if line.strip():
                yield number, line


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode('utf-8')
    except UnicodeDecodeError:
        return False
    return True


def _decoded(path: StrPath, number: int, raw: bytes, encoding: str) -> str:
    """A line without its end, in UTF-8; if it is not UTF-8, in `encoding`. Raises InputError."""
    if encoding and not _is_utf8(raw):
        raw = raw.decode(encoding, 'replace').encode()
    try:
        return decoded_line(raw)
    except ValueError as error:
        raise InputError.at(path, number, str(error)) from error


def _encoding_of_others(path: StrPath, number: int) -> str:
    """The encoding of the lines that are not in UTF-8; `number` is the first of them."""
    with open_binary(path, MAX_TOPICS_BYTES) as stream:
        others = [raw for _, raw in numbered_bytes(stream) if not _is_utf8(raw)]
    try:
        encoding = encoding_of_lines(others)
    except UnreadableFile as error:
        problem = f'not valid UTF-8: {error}; save the file as UTF-8'
        raise InputError.at(path, number, problem) from error
    logger.warning('%s:%d is not in UTF-8: such lines are read as %s', path, number, encoding)
    return encoding


def _in_utf8(path: StrPath, lines: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that may say its encoding, in UTF-8."""
    raw = b''.join(line for _, line in lines)
    try:
        codec = xml_encoding(raw)
    except ValueError as error:
        raise InputError.at(path, 1, str(error)) from error
    if not codec:
        return iter(lines)
    try:
        text = raw.decode(codec)
    except UnicodeDecodeError as error:
        number = raw[: error.start].decode(codec, 'ignore').count('\n') + 1
        problem = f'not valid {codec}, as the file says it is ({error.reason})'
        raise InputError.at(path, number, f'{problem}: save it as UTF-8') from error
    return ((number, line.encode()) for number, line in enumerate(text.split('\n'), 1))
