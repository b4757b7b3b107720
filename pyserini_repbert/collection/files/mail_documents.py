"""Mail as documents: the title is the sender and the subject; from, to and date are fields.

The sender is in the title since people ask what somebody wrote: the title comes with each passage,
and with each hit. `mail_text.py` reads the text. The standard library parses messages. Its
`mailbox` does not find them: it begins a message at each sentence 'From here on, …' behind an empty
line, and reads no packed file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from email.errors import MessageError
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path

from pyserini_repbert.collection.files.file_to_read import MOST_BYTES, FileToRead, read_bytes
from pyserini_repbert.collection.files.mail_headers import header, parse_message
from pyserini_repbert.collection.files.mail_people import Person, people_of
from pyserini_repbert.collection.files.mail_quotes import without_quote
from pyserini_repbert.collection.files.mail_text import read_body
from pyserini_repbert.collection.files.mail_threads import APPLE_SIZE, answered_mail
from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.suffixes import APPLE_MAIL, has_suffix_or_packed
from pyserini_repbert.data.unread_files import UnreadableFile, without_text
from pyserini_repbert.files import human_size, open_binary

_ADDRESSES = ('from', 'to', 'cc')
# How a mailbox begins each of its messages, and how it writes a line that begins so.
_ENVELOPE = b'From '
_ESCAPED_ENVELOPE = re.compile(rb'>+From ')
_HEADER = re.compile(rb'[!-9;-~]+[ \t]*:|>From ')
_RTF = b'\nContent-Type: application/rtf'
_IDENTIFIER = re.compile(rb'^message-id:\s{0,20}<([^<>\s]{1,1000})>', re.IGNORECASE | re.MULTILINE)


def mail_documents(file: FileToRead) -> Iterator[Document]:
    """The document of a file with one message, without its quote of a mail that the corpus has."""
    raw = read_bytes(file.path)
    if has_suffix_or_packed(file.path.name, APPLE_MAIL):
        raw = _message_of_apple(raw)
    document = document_of_mail(file.docid, raw)
    if file.answers_another:
        document = replace(document, text=without_quote(document.text))
    yield document


def _message_of_apple(raw: bytes) -> bytes:
    """The message of a file of Apple Mail, which has the message's size above it and a property
    list below.
    """
    size = APPLE_SIZE.match(raw)
    if size is None:
        raise UnreadableFile(
            'not a file of Apple Mail: its first line is not the size of a message'
        )
    return raw[size.end() : size.end() + int(size[1])]


def document_of_mail(docid: str, raw: bytes) -> Document:
    """The document of a message. Raises UnreadableFile for one that has content, but no text."""
    mail = _read_mail(raw)
    if not mail.body and _has_content(raw):
        if _RTF in raw:
            raise without_text(
                'its only text is RTF, which is not read: save the message as text or HTML'
            )
        raise without_text('a message without text: its parts are attachments, or not text')
    return mail.document(docid)


def _has_content(raw: bytes) -> bool:
    """Whether a message has more than a header."""
    _, _, content = raw.replace(b'\r\n', b'\n').partition(b'\n\n')
    return bool(content.strip())


def mailbox_documents(file: FileToRead) -> Iterator[Document]:
    """The documents of a mailbox, named by their Message-ID, or otherwise by their number.

    A reply is without its quote of a mail that the mailbox has: a question about that mail found
    the replies to it.
    """
    given: set[str] = set()
    identifiers = _identifiers(file.path)
    for number, raw in enumerate(_messages(file.path), 1):
        mail = _read_mail(raw)
        identifier = str(mail.fields.get('message_id', ''))
        if mail.answered != identifier and mail.answered in identifiers:
            mail = replace(mail, body=without_quote(mail.body))
        docid = file.numbered_docid(number)
        if identifier and identifier not in given:
            given.add(identifier)
            docid = file.docid_of(identifier)
        yield mail.document(docid)


def _identifiers(path: Path) -> frozenset[str]:
    """The Message-IDs of a mailbox."""
    identifiers = set()
    for raw in _messages(path):
        head, _, _ = raw.replace(b'\r\n', b'\n').partition(b'\n\n')
        stated = _IDENTIFIER.search(head)
        if stated is not None:
            identifiers.add(stated[1].decode('utf-8', 'replace'))
    return frozenset(identifiers)


def _messages(path: Path) -> Iterator[bytes]:
    """The messages of a mailbox.

    Each message begins with a line 'From ' between an empty line and a header. A sentence may also
    begin with this word.
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
                # Mailboxes of two kinds write '>' there; none of them has it for a quotation.
                lines.append(line[1:] if _ESCAPED_ENVELOPE.match(line) else line)
                size += len(line)
            if size > MOST_BYTES:
                raise UnreadableFile(f'a message is larger than {human_size(MOST_BYTES)}')
            is_empty = not line.strip()
            line = below
    if lines:
        yield b''.join(lines)


@dataclass(frozen=True)
class _Mail:
    """The parts of a message that are read.

    Attributes
    ----------
    sender : the names of who sent it; '' if it does not say so
    subject : '' for none
    body : its text; '' for none
    fields : of its header
    answered : the Message-ID of the mail that it answers; '' for none
    """

    sender: str
    subject: str
    body: str
    fields: Mapping[str, str | list[str]]
    answered: str

    def document(self, docid: str) -> Document:
        """The document of the message; one without a word has no title."""
        title = ''
        if self.subject or self.body:
            title = ': '.join(part for part in (self.sender, self.subject) if part)
        return Document(docid, self.body, title, self.fields)


def _read_mail(raw: bytes) -> _Mail:
    """A message. Raises UnreadableFile for another file."""
    try:
        message = parse_message(raw)
        if not message.keys():
            raise UnreadableFile('not a mail: it has no header')
        people = {name: people_of(message, name) for name in _ADDRESSES}
        sender = ', '.join(person.shown_name for person in people['from'])
        subject = header(message, 'subject')
        return _Mail(
            sender=sender,
            subject=subject,
            body=read_body(message),
            fields=_fields(message, people),
            answered=answered_mail(message),
        )
    except (MessageError, LookupError, ValueError, RecursionError, AttributeError) as error:
        if isinstance(error, UnreadableFile):
            raise
        # What the standard library raises for headers that no mail program writes.
        raise UnreadableFile(f'not a readable mail ({error})') from error


def _fields(
    message: EmailMessage, people: Mapping[str, Sequence[Person]]
) -> dict[str, str | list[str]]:
    """The fields of a message: of several people, a list."""
    fields: dict[str, str | list[str]] = {}
    for name, of_header in people.items():
        shown = [str(person) for person in of_header]
        if shown:
            fields[name] = shown[0] if len(shown) == 1 else shown
    date = _date(message)
    if date:
        fields['date'] = date
    identifier = header(message, 'message-id').strip('<>')
    if identifier:
        fields['message_id'] = identifier
    return fields


def _date(message: EmailMessage) -> str:
    """The date in ISO form; '' for none that can be read."""
    try:
        return parsedate_to_datetime(header(message, 'date')).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ''
