"""The encodings of web pages and of XML, by the labels of the WHATWG's encoding standard."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from webencodings.labels import LABELS

from pyserini_repbert.data.markup import MOST_HEAD, parse_head
from pyserini_repbert.files import open_binary

_MARKS = (
    (codecs.BOM_UTF8, 'utf-8'),
    (codecs.BOM_UTF16_LE, 'utf-16-le'),
    (codecs.BOM_UTF16_BE, 'utf-16-be'),
)
# What a browser reads where nothing says how a page is encoded.
_FALLBACK = 'windows-1252'
# Python's codecs where its codec of the same name lacks characters, or has another name.
_CODECS = {
    'big5': 'big5hkscs',
    'euc-kr': 'cp949',
    'gbk': 'gb18030',
    'iso-2022-jp': 'iso2022_jp_ext',
    'iso-8859-8-i': 'iso-8859-8',
    'macintosh': 'mac-roman',
    'replacement': _FALLBACK,
    'shift_jis': 'cp932',
    'windows-874': 'cp874',
    'x-mac-cyrillic': 'mac-cyrillic',
    'x-user-defined': _FALLBACK,
}
# Browsers refuse these, since scripts can hide in them; a text alone does no harm.
_REFUSED_BY_BROWSERS = {
    'hz-gb-2312': 'hz',
    'iso-2022-kr': 'iso2022_kr',
    'csiso2022kr': 'iso2022_kr',
}
_CHARSET = re.compile(r'charset\s*=\s*["\']?\s*([^\s"\';,]+)', re.IGNORECASE)
_XML = b'<?xml'
_XML_ENCODING = re.compile(
    rb'<\?xml\s[^<>]{0,200}?\bencoding\s{0,9}=\s{0,9}["\']([\w.:-]{1,40})["\']'
)
# What 7-bit encodings switch with, and what UTF-16 has: ASCII is text of its own without them.
_SWITCHES = (b'\x1b', b'~{', b'\x00')


def read_page(path: Path) -> bytes:
    """The bytes of a page, unpacked if its name ends in .gz. Raises InputError for damaged ones."""
    with open_binary(path) as stream:
        return stream.read()


def decode_page(raw: bytes, content_type: str = '') -> str:
    """The markup of a page.

    Its byte order mark says how it is encoded, otherwise the server's `content_type`, its
    `<meta charset>` or its `<?xml encoding="…"?>`. Without these, it is Windows-1252. A page that
    reads as UTF-8 beyond ASCII is UTF-8 whatever it says. Bytes that its encoding does not have
    become U+FFFD.
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw.removeprefix(mark).decode(encoding, 'replace')
    text = _as_utf8(raw)
    if text is not None:
        return text
    codec = _codec_of_header(content_type) or _codec_of_meta(raw) or _codec_of_declaration(raw)
    return raw.decode(codec or _FALLBACK, 'replace')


def may_say_encoding(first_line: bytes) -> bool:
    """Whether a file that begins so may be XML that names an encoding, not UTF-8."""
    return first_line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, _XML))


def xml_encoding(raw: bytes) -> str:
    """The codec of XML that names an encoding that is not UTF-8; '' for other files.

    Either UTF-16's byte order mark says so, or `<?xml encoding="…"?>`. As with pages, a file that
    reads as UTF-8 beyond ASCII is UTF-8 whatever it says. Raises ValueError for an unknown
    encoding.
    """
    for mark, codec in _MARKS:
        if raw.startswith(mark):
            begins = raw.removeprefix(mark)[:MOST_HEAD].decode(codec, 'ignore').lstrip()
            return 'utf-16' if codec != 'utf-8' and begins.startswith('<') else ''
    declared = _XML_ENCODING.match(raw)
    if declared is None or _as_utf8(raw) is not None:
        return ''
    label = declared[1].decode('latin-1')
    codec = codec_of_label(label)
    if not codec:
        raise ValueError(f"the encoding '{label}' is unknown: save the file as UTF-8")
    # What can be read so far is not in UTF-16.
    return '' if codec.startswith('utf') else codec


def _as_utf8(raw: bytes) -> str | None:
    """The text of UTF-8; None for other bytes, and for bytes of a 7-bit encoding."""
    if raw.isascii() and any(switch in raw for switch in _SWITCHES):
        return None
    try:
        return raw.decode('utf-8')
    except UnicodeDecodeError:
        return None


def _codec_of_header(content_type: str) -> str:
    """The codec that a server names; '' if it names none that is known."""
    charset = _CHARSET.search(content_type)
    return '' if charset is None else codec_of_label(charset[1])


def _codec_of_meta(raw: bytes) -> str:
    """The codec that the first `<meta>` with a known character set names; '' without one."""
    start = raw[:MOST_HEAD]
    if b'charset' not in start.lower():
        return ''
    for meta in parse_head(start.decode('latin-1')).css('meta'):
        label = meta.attributes.get('charset') or ''
        codec = codec_of_label(label)
        if not codec and (meta.attributes.get('http-equiv') or '').lower() == 'content-type':
            codec = _codec_of_header(meta.attributes.get('content') or '')
        if codec:
            # A page whose <meta> can be read is not in UTF-16.
            return 'utf-8' if codec.startswith('utf-16') else codec
    return ''


def _codec_of_declaration(raw: bytes) -> str:
    """The codec that a page's XML declaration names; '' if it names none that is known.

    The HTML standard reads it where no `<meta>` names an encoding.
    """
    declared = _XML_ENCODING.match(raw)
    if declared is None:
        return ''
    codec = codec_of_label(declared[1].decode('latin-1'))
    # A page whose declaration can be read is not in UTF-16.
    return 'utf-8' if codec.startswith('utf-16') else codec


def codec_of_label(label: str) -> str:
    """Python's codec of a label; '' for an unknown label."""
    label = label.strip('\t\n\x0c\r ').lower()
    if label in _REFUSED_BY_BROWSERS:
        return _REFUSED_BY_BROWSERS[label]
    name: str = LABELS.get(label, '')
    return _CODECS.get(name, name)
