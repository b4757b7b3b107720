"""Mail as documents: the subject is the title; from, to and date are fields.

The text is the plain body, or the HTML body without markup. Attachments are not read.
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

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.file_to_read import MOST_BYTES, FileToRead, read_bytes
from pyserini_repbert.data.html_documents import document_of_html
from pyserini_repbert.data.unread_files import UnreadableFile
from pyserini_repbert.files import human_size

_ADDRESSES = ('from', 'to', 'cc')
_MOST_PARTS = 2_000
_MOST_CONTAINERS = 200  # parts that hold parts
_MOST_NESTED = 20
# Parsing a header takes time that grows faster than its length.
_MOST_HEADER = 10_000  # characters
_MOST_CONTENT_HEADER = 2_000  # of those that each part has
_MULTIPART = re.compile(rb'^content-type:[ \t]*(?:\r?\n[ \t]+)?(?:multipart|message)/', re.I | re.M)
_CONTENT_HEADER = re.compile(rb'^content-', re.I | re.M)
# How a mailbox begins each of its messages.
_ENVELOPE = b'From '


class _BoundedPolicy(EmailPolicy):
    """Headers as `email.policy.default` parses them; one that is too long is empty."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """A header's value, parsed when it is asked for."""
        is_of_part = name.lower().startswith('content-')
        most = _MOST_CONTENT_HEADER if is_of_part else _MOST_HEADER
        return super().header_fetch_parse(name, value if len(value) <= most else '')


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
    """The messages of a mailbox: a line 'From ' behind an empty one begins each of them."""
    lines: list[bytes] = []
    size = 0
    is_empty = True
    with open(path, 'rb') as stream:
        while line := stream.readline(MOST_BYTES):
            if is_empty and line.startswith(_ENVELOPE):
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
    """The text of a message: of its plain part, else of its HTML."""
    html = ''
    for part in _text_parts(message):
        content = part.get_content()
        if part.get_content_type() == 'text/plain':
            if content.strip():
                return str(content).replace('\r\n', '\n').strip()
        elif not html:
            html = str(content)
    return document_of_html('', html).text if html else ''


def _text_parts(message: MIMEPart) -> Iterator[MIMEPart]:
    """The parts that hold text and are no attachments, in their order."""
    waiting = [(message, 0)]
    while waiting:
        part, depth = waiting.pop(0)
        if part.is_attachment():
            continue
        if part.is_multipart():
            if depth < _MOST_NESTED:
                children = [(child, depth + 1) for child in part.iter_parts()]
                waiting = [*children, *waiting]
        elif part.get_content_type() in ('text/plain', 'text/html'):
            yield part
