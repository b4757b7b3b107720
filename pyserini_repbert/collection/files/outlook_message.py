"""Outlook's messages (.msg) as the source of mail, which `mail_documents.py` then reads.

python-oxmsg, which the extra `files` brings, reads their properties. A message that another one
holds as an attachment stays within it. Text that Outlook stores only as RTF is not read.
"""

from __future__ import annotations

from base64 import encodebytes
from collections.abc import Iterator
from email.parser import HeaderParser
from email.utils import format_datetime, formataddr
from typing import Any

_MOST_NESTED = 20
# Where the properties of a message begin: of one that is a file, and of one within another.
_OF_FILE = 32
_OF_INNER = 24
_INNER_MESSAGE = '__substg1.0_3701000D'
_MESSAGE_ID = 0x1035
_RTF = 0x1009
_PLAIN = 'text/plain; charset=utf-8'
_HTML = 'text/html; charset=utf-8'
_DISPLAYED = {'To': 0x0E04, 'Cc': 0x0E03}
_HEADERS = ('From', 'To', 'Cc', 'Subject', 'Date', 'Message-ID')


def mail_of_outlook(path: str) -> str:
    """A message of Outlook as the source of a mail. Raises what the library raises."""
    from olefile import OleFileIO
    from oxmsg.storage import Storage

    with OleFileIO(path) as file:
        storage = Storage.from_ole(file)
    return '\n'.join(_source(storage, begin=_OF_FILE, depth=0))


def _source(storage: Any, begin: int, depth: int) -> Iterator[str]:
    """The lines of a message's source.

    Parameters
    ----------
    storage : of the message, as the library reads it
    begin : where its properties begin
    depth : in how many messages it is
    """
    from oxmsg.properties import Properties

    properties = Properties(storage, properties_header_offset=begin)
    for name, value in _headers(properties).items():
        words = ' '.join(value.replace('\0', ' ').split())
        if words:
            yield f'{name}: {words}'
    boundary = f'part {depth}'
    parts = list(_alternatives(properties, boundary, f'text {depth}'))
    if depth < _MOST_NESTED:
        for inner in _inner_messages(storage):
            parts += [f'--{boundary}', 'Content-Type: message/rfc822', '']
            parts += _source(inner, _OF_INNER, depth + 1)
    if parts:
        yield f'Content-Type: multipart/mixed; boundary="{boundary}"'
        yield ''
        yield from parts
        yield f'--{boundary}--'
    else:
        yield ''


def _headers(properties: Any) -> dict[str, str]:
    """The headers of a message: as they came, otherwise by its properties."""
    from oxmsg.domain import constants

    def text(number: int) -> str:
        return str(properties.str_prop_value(number) or '')

    address = text(constants.PID_SENDER_SMTP_ADDRESS)
    address = address or text(constants.PID_SENDER_EMAIL_ADDRESS)
    name = text(constants.PID_SENDER_NAME)
    values = {
        # Within one organisation, Outlook's addresses are none of mail.
        'From': formataddr((name, address)) if '@' in address else _quoted_names(name),
        'Subject': text(constants.PID_SUBJECT),
        'Date': _date_sent(properties),
        'Message-ID': text(_MESSAGE_ID),
    }
    for header_name, number in _DISPLAYED.items():
        values[header_name] = _quoted_names(text(number))
    came = HeaderParser().parsestr(text(constants.PID_TRANSPORT_MESSAGE_HEADERS))
    for name in _HEADERS:
        # Outlook shows the subject that it stores.
        if name != 'Subject' or not values[name]:
            values[name] = str(came.get(name) or values[name])
    return values


def _quoted_names(shown: str) -> str:
    """People as mail has them, of what Outlook shows: 'Brandt, Klaus; Bob'."""
    names = [name.strip().replace('"', '') for name in shown.split(';')]
    return ', '.join(name if '@' in name else f'"{name}"' for name in names if name)


def _date_sent(properties: Any) -> str:
    """When a message was sent; '' if it does not say so, or names a time of no calendar."""
    from oxmsg.domain import constants

    try:
        sent = properties.date_prop_value(constants.PID_CLIENT_SUBMIT_TIME)
    except OverflowError:
        return ''
    return format_datetime(sent) if sent else ''


def _alternatives(properties: Any, outer: str, boundary: str) -> Iterator[str]:
    """The plain text and the HTML of a message, as lines of one part; nothing if it has none.

    Parameters
    ----------
    properties : of the message
    outer : the boundary of the part
    boundary : of the two texts
    """
    from oxmsg.domain import constants

    parts: dict[str, bytes] = {}
    plain = properties.str_prop_value(constants.PID_BODY)
    if plain:
        parts[_PLAIN] = _encoded(plain)
    html = properties.binary_prop_value(constants.PID_HTML)
    if html:
        parts[f'text/html; charset={properties.body_encoding}'] = html
    written = properties.str_prop_value(constants.PID_BODY_HTML)
    if written and not html:
        parts[_HTML] = _encoded(written)
    if not parts and properties.binary_prop_value(_RTF):
        parts['application/rtf'] = b''
    if not parts:
        return
    yield f'--{outer}'
    yield f'Content-Type: multipart/alternative; boundary="{boundary}"'
    yield ''
    for kind, content in parts.items():
        yield f'--{boundary}'
        yield f'Content-Type: {kind}'
        yield 'Content-Transfer-Encoding: base64'
        yield ''
        yield encodebytes(content).decode()
    yield f'--{boundary}--'


def _encoded(text: str) -> bytes:
    return text.encode('utf-8', 'replace')


def _inner_messages(storage: Any) -> Iterator[Any]:
    """The messages that are attachments of a message."""
    for attachment in storage.iter_attachment_storages():
        for inner in attachment.storages:
            if inner.name == _INNER_MESSAGE:
                yield inner
