"""Texts in the encodings that people's files have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.files import BYTE_ORDER_MARK

_LOOKED_AT = 1 << 20  # bytes of lines
_UTF_16 = re.compile(rb'\xff\xfe|\xfe\xff')
# Of encodings that fit equally well, the first: most files of one byte a character have it.
_USUAL = 'cp1252'
# Others whose letters are mostly the same.
_LATIN = ('cp1250', 'cp1254', 'cp1257', 'iso8859_2')
# The encodings to try: Windows' encodings of one byte, and East Asian ones.
_TRIED = (
    _USUAL,
    *'cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 koi8_r iso8859_2'.split(),
    *'shift_jis euc_jp gb18030 big5 euc_kr'.split(),
)


@dataclass(frozen=True)
class DecodedText:
    """Text, and the name of its encoding; '' for UTF-8, and for UTF-16 that says so."""

    text: str
    encoding: str = ''


def is_utf_16(raw: bytes) -> bool:
    """Whether a file begins with the byte order mark of UTF-16."""
    return _UTF_16.match(raw) is not None


def decode_text(raw: bytes) -> DecodedText:
    """The text of a file.

    It is UTF-8, or UTF-16 with a byte order mark, or in the encoding that charset-normalizer
    detects. Raises UnreadableFile for bytes that are not text.
    """
    if is_utf_16(raw):
        try:
            decoded = DecodedText(raw.decode('utf-16'))
        except UnicodeDecodeError as error:
            raise UnreadableFile(f'not valid UTF-16 ({error.reason}): save it as UTF-8') from error
    else:
        decoded = _decode_bytes(raw.removeprefix(BYTE_ORDER_MARK))
    if '\0' in decoded.text:
        raise UnreadableFile('no text: it has bytes that are zero')
    return decoded


def _decode_bytes(raw: bytes) -> DecodedText:
    try:
        return DecodedText(raw.decode('utf-8'))
    except UnicodeDecodeError as error:
        if b'\0' in raw:
            raise UnreadableFile('no text: it has bytes that are zero') from error
        reason = error.reason
    encoding = '' if _is_damaged_utf8(raw) else _detect(raw)
    if not encoding:
        raise UnreadableFile(f'damaged UTF-8 ({reason}), or no text')
    return DecodedText(raw.decode(encoding), encoding)


def _is_damaged_utf8(raw: bytes) -> bool:
    """Whether most characters beyond ASCII are UTF-8.

    In other encodings, such characters occur only by chance.
    """
    text = raw.decode('utf-8', 'replace')
    n_invalid = text.count('\ufffd')
    n_beyond_ascii = len(text) - len(text.encode('ascii', 'ignore'))
    return n_beyond_ascii > 2 * n_invalid


def encoding_of_lines(lines: Iterable[bytes]) -> str:
    """The encoding of a file's lines: 'utf-8', or the one that is detected where a line is not.

    Raises UnreadableFile for bytes that are not text.
    """
    others: list[bytes] = []
    size = 0
    for line in lines:
        if others or not _can_decode(line, 'utf-8'):
            others.append(line)
            size += len(line)
        if size > _LOOKED_AT:
            break
    return _decode_bytes(b''.join(others)).encoding or 'utf-8'


def _detect(raw: bytes) -> str:
    """Python's name for the encoding that fits a text best; '' if none does."""
    from charset_normalizer import from_bytes

    matches = []
    for match in from_bytes(raw, cp_isolation=list(_TRIED)):
        matches += [match, *match.submatch]
    readable = [match for match in matches if _can_decode(raw, match.encoding)]
    if not readable:
        return ''
    least = min(match.chaos for match in readable)
    best = [match for match in readable if match.chaos == least]
    usual = next((match for match in readable if match.encoding == _USUAL), None)
    if usual is None or usual in best:
        return str((usual or best[0]).encoding)
    # A short text in the usual encoding may have words that look like chaos, as 'déjà'.
    is_latin = all(match.encoding in _LATIN for match in best)
    if is_latin and usual.coherence > max(match.coherence for match in best):
        return _USUAL
    return str(best[0].encoding)


def _can_decode(raw: bytes, encoding: str) -> bool:
    """Whether all bytes are of an encoding: of a long text, not all are looked at before."""
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
