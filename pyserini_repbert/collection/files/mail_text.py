"""The text of a message: of all parts that are not attachments, in their order.

If a message has alternatives, its text is the plain one, or the HTML without markup.
`EmailMessage.get_body` takes a single part: if a mailing list added a footer to a page, only the
footer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from typing import cast

from pyserini_repbert.collection.files.html_text import read_html
from pyserini_repbert.collection.files.mail_headers import decode_part, header
from pyserini_repbert.collection.files.read_page import place_text
from pyserini_repbert.data.page_encodings import decode_page

_MOST_NESTED = 20
_ALTERNATIVES = 'multipart/alternative'
_PLAIN = 'text/plain'
_HTML = 'text/html'
_ENRICHED = ('text/enriched', 'text/richtext')
_ENRICHED_MARK = re.compile(r'</?[\w-]{1,60}>')
# What a forwarded message says of itself.
_FORWARDED = ('from', 'to', 'date', 'subject')
# A part begins behind such a line.
_FIRST_BOUNDARY = re.compile(r'^--(\S[^\r\n]{0,200})\r?\n(?=[\w-]{1,60}:|\r?\n)', re.MULTILINE)
_SIGNATURE = '-- '
_WORD = re.compile(r'\w+')
_MOST_WORDS_OF_STUB = 60
_MORE_WORDS = 5


def read_body(message: EmailMessage) -> str:
    """The text of a message. Text that is the only content is not an attachment."""
    text = _join(_texts(message, with_attachments=False))
    return text or _join(_texts(message, with_attachments=True))


def _join(texts: Iterator[str]) -> str:
    return '\n\n'.join(text for text in texts if text)


def _texts(message: EmailMessage, with_attachments: bool) -> Iterator[str]:
    """The texts of the parts, and of attachments if they are asked for."""
    # With each part, in how many others it is.
    waiting: list[tuple[MIMEPart, int]] = [(message, 0)]
    while waiting:
        part, depth = waiting.pop()
        is_left_out = part.is_attachment() and not with_attachments
        is_message = part.get_content_maintype() == 'message' and part.is_multipart()
        if depth > _MOST_NESTED or (is_left_out and not is_message):
            continue
        part = _with_parts(part)
        if part.get_content_type() == _ALTERNATIVES and part.is_multipart():
            yield _text_of_alternatives(part)
        elif part.is_multipart():
            children = list(part.iter_parts())
            if is_message:
                yield _header_lines(children)
            waiting += [(child, depth + 1) for child in reversed(children)]
        else:
            yield _text_of_part(part)


def _with_parts(part: MIMEPart) -> MIMEPart:
    """A part whose boundary is missing or wrong, parsed by the one that its lines have."""
    if part.get_content_maintype() != 'multipart' or part.is_multipart():
        return part
    content = part.get_payload()
    boundary = _FIRST_BOUNDARY.search(content) if isinstance(content, str) else None
    if boundary is None:
        return part
    kind = f'Content-Type: {part.get_content_type()}; boundary="{boundary[1].rstrip()}"\n\n'
    raw = f'{kind}{content}'.encode('utf-8', 'surrogateescape')
    return cast(MIMEPart, BytesParser(policy=part.policy).parsebytes(raw))


def _header_lines(messages: list[MIMEPart]) -> str:
    """What a message within a message says of itself, a line each."""
    lines = []
    for message in messages:
        if not isinstance(message, EmailMessage):
            continue
        for name in _FORWARDED:
            value = header(message, name)
            if value:
                lines.append(f'{name.capitalize()}: {value}')
    return '\n'.join(lines)


def _text_of_alternatives(message: MIMEPart) -> str:
    """One of the texts that say the same: plain text, unless it is a stub; then HTML."""
    texts: dict[str, str] = {}
    for part in message.walk():
        if part.is_multipart() or part.is_attachment():
            continue
        kind = part.get_content_type()
        text = '' if kind in texts else _text_of_part(part)
        if text:
            texts[kind] = text
    plain = texts.pop(_PLAIN, '')
    html = texts.pop(_HTML, '')
    if plain and not _is_stub(plain, html):
        return plain
    return html or plain or next(iter(texts.values()), '')


def _is_stub(plain: str, html: str) -> bool:
    """Whether a plain text only says that the HTML should be read.

    It is short, and most of its words are not in the HTML, which has more.
    """
    words = _WORD.findall(plain.lower())
    words_of_html = _WORD.findall(html.lower())
    least = max(len(words) * 3 / 2, len(words) + _MORE_WORDS)
    if len(words) > _MOST_WORDS_OF_STUB or len(words_of_html) < least:
        return False
    known = set(words_of_html)
    n_shared = sum(word in known for word in words)
    return n_shared < len(words) / 2


def _text_of_part(part: MIMEPart) -> str:
    """The text of a part; '' for a part without text. What should hold parts may be plain text."""
    kind = part.get_content_type()
    raw = part.get_payload(decode=True)
    is_text = part.get_content_maintype() in ('text', 'multipart')
    if not is_text or not isinstance(raw, bytes):
        return ''
    charset = str(part.get_param('charset', ''))
    if kind == _HTML:
        page = read_html(decode_page(raw, f'charset={charset}'))
        return place_text(page).text
    text = decode_part(raw, charset).replace('\r\n', '\n')
    if kind in _ENRICHED:
        text = _ENRICHED_MARK.sub('', text).replace('<<', '<')
    if str(part.get_param('format', '')).lower() == 'flowed':
        text = _unflowed(text, deletes_space=str(part.get_param('delsp', '')).lower() == 'yes')
    return text.strip()


def _unflowed(text: str, deletes_space: bool) -> str:
    """Text in which each line that ends in a space is joined with the next (RFC 3676).

    Parameters
    ----------
    text : whose lines were cut
    deletes_space : whether the space at a line's end is not part of the text
    """
    paragraphs: list[str] = []
    quotes_above = -1
    for line in text.split('\n'):
        content = line.lstrip('>')
        quotes = len(line) - len(content)
        content = content.removeprefix(' ')
        is_signature = content == _SIGNATURE
        flows = content.endswith(' ') and not is_signature
        if flows and deletes_space:
            content = content[:-1]
        if quotes == quotes_above and not is_signature:
            paragraphs[-1] += content
        else:
            paragraphs.append(f'{">" * quotes} {content}' if quotes else content)
        quotes_above = quotes if flows else -1
    return '\n'.join(paragraphs)
