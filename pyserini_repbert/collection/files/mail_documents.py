"""Mail as documents: the subject is the title; from, to and date are fields.

The text is that of all parts that are no attachments. Of alternatives, it is the plain one, or the
HTML without markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.policy import EmailPolicy
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, cast

from pyserini_repbert.collection.files.file_to_read import MOST_BYTES, FileToRead, read_bytes
from pyserini_repbert.collection.files.html_text import read_html
from pyserini_repbert.collection.files.read_page import place_text
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.page_encodings import codec_of_label, decode_page
from pyserini_repbert.data.text_encodings import decode_text
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.files import human_size, open_binary

_ADDRESSES = ('from', 'to', 'cc')
_MOST_PARTS = 2_000
_MOST_CONTAINERS = 200  # parts that hold parts
_MOST_NESTED = 20
# Parsing a header takes time that grows faster than its length.
_MOST_HEADER = 10_000  # characters
_MOST_CONTENT_HEADER = 2_000  # of those that each part has
_MULTIPART = re.compile(rb'^content-type:[ \t]*(?:\r?\n[ \t]+)?(?:multipart|message)/', re.I | re.M)
_CONTENT_HEADER = re.compile(rb'^content-', re.I | re.M)
_ALTERNATIVES = 'multipart/alternative'
# Of those that say the same, the first.
_TEXTS = ('text/plain', 'text/html')
# What programs name that do not know an encoding.
_ASCII = ('', 'us-ascii', 'ascii')
# How a mailbox begins each of its messages.
_ENVELOPE = b'From '
_HEADER = re.compile(rb'[!-9;-~]+[ \t]*:|>From ')


class _BoundedPolicy(EmailPolicy):
    """Headers as `email.policy.default` parses them; one that is too long stays as it is written.

    Bytes beyond ASCII, which no header should have, are text as in a file.
    """

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """A header's value, parsed when asked for; '' for a long one that describes a part."""
        if name.lower().startswith('content-'):
            is_short = len(value) <= _MOST_CONTENT_HEADER
            return super().header_fetch_parse(name, value if is_short else '')
        if not value.isascii():
            value = _decoded(value.encode('utf-8', 'surrogateescape'))
        return super().header_fetch_parse(name, value) if len(value) <= _MOST_HEADER else value


def mail_documents(file: FileToRead) -> Iterator[Document]:
    """The document of a file with one message."""
    yield _document(file.docid, read_bytes(file.path))


def mailbox_documents(file: FileToRead) -> Iterator[Document]:
    """The documents of a mailbox, each by its Message-ID, or by its number without one."""
    given: set[str] = set()
    for number, raw in enumerate(_messages(file.path), 1):
        document = _document(file.numbered_docid(number), raw)
        identifier = str(document.fields.get('message_id', ''))
        if identifier and identifier not in given:
            given.add(identifier)
            docid = file.docid_of(identifier)
            document = Document(docid, document.text, document.title, document.fields)
        yield document


def _messages(path: Path) -> Iterator[bytes]:
    """The messages of a mailbox.

    Each begins with a line 'From ' behind an empty one, and a header below: a sentence may begin
    with this word, too.
    """
    lines: list[bytes] = []
    size = 0
    is_empty = True
    with open_binary(path) as stream:
        line = stream.readline(MOST_BYTES)
        while line:
            below = stream.readline(MOST_BYTES)
            if is_empty and line.startswith(_ENVELOPE) and _HEADER.match(below):
                if lines:
                    yield b''.join(lines)
                lines = []
                size = 0
            else:
                lines.append(line)
                size += len(line)
            if size > MOST_BYTES:
                raise UnreadableFile(f'a message is larger than {human_size(MOST_BYTES)}')
            is_empty = not line.strip()
            line = below
    if lines:
        yield b''.join(lines)


def _document(docid: str, raw: bytes) -> Document:
    """The document of a message. Raises UnreadableFile for one that is none."""
    if len(_MULTIPART.findall(raw)) > _MOST_CONTAINERS:
        raise UnreadableFile(f'a message has more than {_MOST_CONTAINERS} parts that hold parts')
    if len(_CONTENT_HEADER.findall(raw)) > 3 * _MOST_PARTS:
        raise UnreadableFile(f'a message has more than {_MOST_PARTS:,} parts')
    try:
        message = cast(EmailMessage, BytesParser(policy=_BoundedPolicy()).parsebytes(raw))
        if not message.keys():
            raise UnreadableFile('no mail: it has no header')
        title = _header(message, 'subject')
        return Document(docid, _body(message), title, _fields(message))
    except (MessageError, LookupError, ValueError, RecursionError, AttributeError) as error:
        if isinstance(error, UnreadableFile):
            raise
        # What the standard library raises for headers that no mail program writes.
        raise UnreadableFile(f'no mail that can be read ({error})') from error


def _fields(message: EmailMessage) -> dict[str, str]:
    fields = {}
    for name in _ADDRESSES:
        value = _header(message, name)
        if value:
            fields[name] = value
    date = _date(message)
    if date:
        fields['date'] = date
    identifier = _header(message, 'message-id').strip('<>')
    if identifier:
        fields['message_id'] = identifier
    return fields


def _date(message: EmailMessage) -> str:
    """The date in ISO form; '' for none that can be read."""
    try:
        return parsedate_to_datetime(_header(message, 'date')).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ''


def _header(message: EmailMessage, name: str) -> str:
    """A header's words; '' if there is none, or it is too long to be parsed."""
    return ' '.join(str(message.get(name, '')).split())


def _body(message: EmailMessage) -> str:
    """The texts of a message's parts that are no attachments, in their order."""
    texts = []
    # With each part, in how many others it is.
    waiting: list[tuple[MIMEPart, int]] = [(message, 0)]
    while waiting:
        part, depth = waiting.pop()
        if part.is_attachment() or depth > _MOST_NESTED:
            continue
        if part.get_content_type() == _ALTERNATIVES:
            texts.append(_text_of_alternatives(part))
        elif part.is_multipart():
            children = [(child, depth + 1) for child in part.iter_parts()]
            waiting += reversed(children)
        else:
            texts.append(_text_of_part(part))
    return '\n\n'.join(text for text in texts if text)


def _text_of_alternatives(message: MIMEPart) -> str:
    """The first plain text among parts that say the same; else the first HTML."""
    parts = [part for part in message.walk() if not part.is_multipart()]
    for kind in _TEXTS:
        for part in parts:
            text = _text_of_part(part) if part.get_content_type() == kind else ''
            if text:
                return text
    return ''


def _text_of_part(part: MIMEPart) -> str:
    """The text of a part; '' for one that is neither plain text nor HTML."""
    kind = part.get_content_type()
    raw = part.get_payload(decode=True)
    if kind not in _TEXTS or part.is_attachment() or not isinstance(raw, bytes):
        return ''
    charset = str(part.get_param('charset', ''))
    if kind == 'text/html':
        page = read_html(decode_page(raw, f'charset={charset}'))
        return place_text(page).text
    return _decoded(raw, charset).replace('\r\n', '\n').strip()


def _decoded(raw: bytes, charset: str = '') -> str:
    """The text of bytes in an encoding that a message names; as in a file where it does not fit."""
    if charset.lower() not in _ASCII:
        try:
            return raw.decode(codec_of_label(charset) or charset)
        except (LookupError, ValueError):
            # It is unknown, or wrong.
            pass
    try:
        return decode_text(raw).text
    except UnreadableFile:
        return raw.decode('utf-8', 'replace')
