"""Messages as the standard library parses them: with bounds, and headers as programs write them."""

from __future__ import annotations

import codecs
import re
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import EmailPolicy
from functools import partial
from typing import Any, cast

from pyserini_repbert.data.page_encodings import codec_of_label
from pyserini_repbert.data.text_encodings import decode_text
from pyserini_repbert.data.unread_files import UnreadableFile

_MOST_PARTS = 2_000
_MOST_CONTAINERS = 200  # parts that hold parts: each line is compared with all of their boundaries
# Parsing a header takes time that grows faster than its length.
_MOST_HEADER = 10_000  # characters
_MOST_CONTENT_HEADER = 2_000  # of those that each part has
# 'text/plain charset=utf-8', without a semicolon.
_WITHOUT_SEMICOLON = re.compile(r'\A(\s{0,99}[\w.+-]{1,80}/[\w.+-]{1,80})\s+(?=[\w-]{1,40}=)')
# A boundary without quotes ends at the next semicolon.
_BARE_BOUNDARY = re.compile(r'\bboundary\s{0,9}=\s{0,9}([^\s";][^";\r\n]{0,200})', re.IGNORECASE)
_PEOPLE = ('from', 'to', 'cc')
# 'kb@example.org (Klaus Brandt)', as before 1982 and in archives of lists, there with ' at '.
_NAME_BEHIND = re.compile(
    r'\A\s{0,99}([^\s()<>",;@]{1,200})(?:@| at )([^\s()<>",;@]{1,200})\s{1,99}'
    r'\(([^()<>",;]{1,200})\)\s{0,99}\Z'
)
_ENCODED_WORD = re.compile(r'=\?([\w.:-]{1,40})(?=(?:\*[\w-]{1,20})?\?[qb]\?)', re.IGNORECASE)
# What the standard library takes for bytes of an encoding that nobody knows.
_UNKNOWN = 'unknown-8bit'
# What programs name that do not know an encoding.
_ASCII = ('', 'us-ascii', 'ascii')
# Codecs that mail may name besides the web's. Some of Python's others (punycode, idna) are not text
# encodings, and take time that grows with the square of the text's length.
_CODECS = re.compile(
    r'cp\d{3,4}|iso8859-\d{1,2}|iso2022_\w{2,5}|mac-?\w+|koi8-?\w|hp-roman8|ptcp154|kz1048|tis-620|'
    r'johab|shift_?jis\w*|euc_\w+|gb\w+|big5\w*|utf-(?:7|8|16|32)(?:-[bl]e)?'
)


class _Bounds:
    """How many parts a message has so far. The methods raise UnreadableFile beyond the bounds."""

    def __init__(self) -> None:
        self._n_parts = 0
        self._n_containers = 0

    def count_part(self) -> None:
        self._n_parts += 1
        if self._n_parts > _MOST_PARTS:
            raise UnreadableFile(f'a message has more than {_MOST_PARTS:,} parts')

    def count_container(self) -> None:
        self._n_containers += 1
        if self._n_containers > _MOST_CONTAINERS:
            raise UnreadableFile(
                f'a message has more than {_MOST_CONTAINERS} parts that hold parts'
            )


class _BoundedMessage(EmailMessage):
    """A message or a part. The parser makes each, and asks each that holds parts for a boundary."""

    def __init__(self, bounds: _Bounds, policy: EmailPolicy | None = None) -> None:
        super().__init__(policy=policy)
        self._bounds = bounds
        bounds.count_part()

    def get_boundary(self, failobj: Any = None) -> Any:
        """The boundary of the parts; `failobj` without one."""
        self._bounds.count_container()
        return super().get_boundary(failobj)


class _LenientPolicy(EmailPolicy):
    """Headers as `email.policy.default` parses them; one that is too long is not parsed.

    Bytes beyond ASCII, which no header should have, are text as in a file. Encodings are those of
    the web, which are supersets of what their names say.
    """

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """A header's value, parsed when asked for; '' for a long one that describes a part."""
        if name.lower().startswith('content-'):
            if len(value) > _MOST_CONTENT_HEADER:
                value = ''
            return super().header_fetch_parse(name, _mended_content_header(name, value))
        if len(value) > _MOST_HEADER:
            return value if value.isascii() else _as_in_file(value)
        if not value.isascii():
            value = _as_in_file(value)
        if name.lower() in _PEOPLE:
            value = _mended_people(value)
        return super().header_fetch_parse(name, _ENCODED_WORD.sub(_with_known_codec, value))


def _mended_content_header(name: str, value: str) -> str:
    """A header of a part, with the quotes and semicolons that programs leave out."""
    if name.lower() != 'content-type':
        return value
    value = _WITHOUT_SEMICOLON.sub(r'\1; ', value, count=1)
    return _BARE_BOUNDARY.sub(_quoted_boundary, value, count=1)


def _mended_people(value: str) -> str:
    """A header of people, with names in front of addresses and commas between them.

    Outlook writes semicolons, which elsewhere end a group: 'friends: a@x.org, b@x.org;'.
    """
    if ':' not in value:
        value = value.rstrip('; \t\r\n').replace(';', ',')
    return _NAME_BEHIND.sub(r'\3 <\1@\2>', value)


def _quoted_boundary(match: re.Match[str]) -> str:
    boundary = match[1].rstrip().replace('\\', '\\\\')
    return f'boundary="{boundary}"'


def _with_known_codec(match: re.Match[str]) -> str:
    """The beginning of an encoded word, with the name of Python's codec."""
    return f'=?{codec_of_mail(match[1]) or _UNKNOWN}'


def parse_message(raw: bytes) -> EmailMessage:
    """A message with its parts.

    A part that should hold parts, but names a boundary that its lines do not have, is parsed by the
    one that they have. Raises UnreadableFile for too many parts.
    """
    bounds = _Bounds()
    policy = _LenientPolicy(message_factory=partial(_BoundedMessage, bounds))
    return cast(EmailMessage, BytesParser(policy=policy).parsebytes(raw))


def header(message: EmailMessage, name: str) -> str:
    """A header's words; '' if there is none."""
    value = str(message.get(name, ''))
    if any('\ud800' <= character <= '\udfff' for character in value):
        # A character may be cut between two encoded words.
        value = _as_in_file(value)
    return ' '.join(value.split())


def codec_of_mail(label: str) -> str:
    """Python's codec of an encoding that a message names; '' for an unknown one."""
    codec = codec_of_label(label)
    if codec:
        return codec
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return ''
    return name if _CODECS.fullmatch(name) else ''


def decode_part(raw: bytes, charset: str = '') -> str:
    """The text of bytes in the encoding that a message names.

    If it does not fit, bytes are decoded as in a file.
    """
    codec = '' if charset.lower() in _ASCII else codec_of_mail(charset)
    if codec:
        try:
            return raw.decode(codec)
        except ValueError:
            # It is wrong.
            pass
    try:
        return decode_text(raw).text
    except UnreadableFile:
        return raw.decode('utf-8', 'replace')


def _as_in_file(value: str) -> str:
    """A header whose bytes beyond ASCII the parser kept as surrogates."""
    return decode_part(value.encode('utf-8', 'surrogateescape'))
