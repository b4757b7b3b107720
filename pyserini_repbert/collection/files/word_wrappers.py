"""Word documents without hidden text, and without elements that mammoth ignores.

The content of such an element is kept. Mammoth names it: 'An unrecognised element was ignored:
w:fldSimple'. Mammoth reads hidden text as any other.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from pyserini_repbert.data.origins import TextSpan

# The words of these are in the elements within them: fields, furigana, directions of writing.
_WRAPPERS = re.compile(
    rb'</?w:(?:fldSimple|ruby|rubyBase|customXml|dir|bdo)(?:\s[^<>]{0,4000})?/?>'
)
# How a word is spoken, and how that is shown.
_SPOKEN = re.compile(
    rb'<w:rt>(?:(?!</?w:rt>)[\s\S]){0,4000}</w:rt>|'
    rb'<w:rubyPr>(?:(?!</?w:rubyPr>)[\s\S]){0,4000}</w:rubyPr>'
)
# A run of text, the elements that may surround its properties, and the property that hides it.
_RUN_TAG = re.compile(rb'<(/?)w:(r|p|rPrChange|vanish|rStyle|pStyle)((?:\s[^<>]{0,4000})?)/?>')
_NOT_HIDDEN = re.compile(rb'w:val\s*=\s*["\'](?:0|false|off)["\']')
# What a style is of.
_ELEMENT_OF_STYLE = {b'rStyle': b'r', b'pStyle': b'p'}
_HIDING = (b'vanish', *_ELEMENT_OF_STYLE)
# A style of the document, the style that it extends, and the property that hides text with this
# style.
_STYLE_TAG = re.compile(rb'<(/?)w:(style|basedOn|vanish|pPr)((?:\s[^<>]{0,4000})?)/?>')
_STYLE_ID = re.compile(rb'\bw:styleId\s*=\s*["\']([^"\']{1,253})["\']')
_VALUE = re.compile(rb'\bw:val\s*=\s*["\']([^"\']{1,253})["\']')
_STYLES = 'word/styles.xml'
_TEXT = re.compile(rb'<w:t(?:\s[^<>]{0,4000})?>[^<]*</w:t>')
_PARTS = re.compile(r'word/(?:document\d*|footnotes|endnotes)\.xml')
_SIGNS = (b'<w:fldSimple', b'<w:ruby>', b'<w:customXml', b'<w:dir', b'<w:bdo', b'<w:vanish')


@dataclass
class _OpenElement:
    """An element that has not ended yet: a run, a paragraph, or properties before a change."""

    name: bytes
    start: int
    is_hidden: bool = False


def without_wrappers(stream: IO[bytes]) -> IO[bytes]:
    """A Word file as a stream; the given one, if it has no such element and no hidden text."""
    with zipfile.ZipFile(stream) as archive:
        changed: dict[str, bytes] = {}
        styles = _hidden_styles(archive)
        for name in archive.namelist():
            if _PARTS.fullmatch(name):
                content = archive.read(name)
                if any(sign in content for sign in (*_SIGNS, *styles)):
                    unwrapped = _WRAPPERS.sub(b'', _SPOKEN.sub(b'', content))
                    changed[name] = _without_hidden_text(unwrapped, styles)
        if changed:
            return _rewritten(archive, changed)
    stream.seek(0)
    return stream


@dataclass
class _Style:
    """A style of a document.

    Attributes
    ----------
    parent : the style whose properties it has, too; b'' for none
    is_hidden : what it says of its text; None: nothing
    """

    parent: bytes = b''
    is_hidden: bool | None = None


def _hidden_styles(archive: zipfile.ZipFile) -> frozenset[bytes]:
    """The names of the styles whose text is hidden, by themselves or by those they extend."""
    if _STYLES not in archive.namelist():
        return frozenset()
    styles = _read_styles(archive.read(_STYLES))
    return frozenset(name for name in styles if _is_hidden(name, styles))


def _read_styles(content: bytes) -> dict[bytes, _Style]:
    """The styles of a document, by their names."""
    styles: dict[bytes, _Style] = {}
    # What stands outside of styles is about none.
    style = _Style()
    is_of_end = False
    for tag in _STYLE_TAG.finditer(content):
        slash, name, attributes = tag.groups()
        if name == b'style':
            style = _Style()
            identifier = None if slash else _STYLE_ID.search(attributes)
            if identifier is not None:
                styles[identifier[1]] = style
        elif name == b'pPr':
            # Within a paragraph's own properties, it hides only the sign of its end.
            is_of_end = not slash and not tag[0].endswith(b'/>')
        elif name == b'basedOn':
            parent = _VALUE.search(attributes)
            style.parent = b'' if parent is None else parent[1]
        elif not slash and not is_of_end:
            style.is_hidden = not _NOT_HIDDEN.search(attributes)
    return styles


def _is_hidden(name: bytes, styles: Mapping[bytes, _Style]) -> bool:
    """Whether a style hides its text: as it says, or the nearest one above that says anything."""
    passed = set()
    while name in styles and name not in passed:
        if styles[name].is_hidden is not None:
            return bool(styles[name].is_hidden)
        passed.add(name)
        name = styles[name].parent
    return False


def _without_hidden_text(content: bytes, styles: frozenset[bytes]) -> bytes:
    """A part of a document without the text of hidden runs; `styles` hide the text that has them.

    The runs stay: mammoth refuses a field whose end is there without its beginning.
    """
    parts = []
    position = 0
    for run in _hidden_runs(content, styles):
        parts.append(content[position : run.start])
        parts.append(_TEXT.sub(b'', content[run.start : run.end]))
        position = run.end
    parts.append(content[position:])
    return b''.join(parts)


def _hidden_runs(content: bytes, styles: frozenset[bytes]) -> list[TextSpan]:
    """Where hidden runs or paragraphs begin and end, in bytes; none of them is within another."""
    hidden: list[TextSpan] = []
    open_elements: list[_OpenElement] = []
    for tag in _RUN_TAG.finditer(content):
        slash, name, attributes = tag.groups()
        if name in _HIDING:
            if open_elements and not slash:
                _hide(open_elements[-1], name, attributes, styles)
        elif not slash:
            if not tag[0].endswith(b'/>'):
                open_elements.append(_OpenElement(name, tag.start()))
        elif open_elements:
            element = open_elements.pop()
            if element.is_hidden:
                while hidden and hidden[-1].start > element.start:
                    hidden.pop()
                hidden.append(TextSpan(element.start, tag.end()))
    return hidden


def _hide(element: _OpenElement, name: bytes, attributes: bytes, styles: frozenset[bytes]) -> None:
    """Note what a property, or a style, says of the element around it.

    Within a paragraph's properties, a run's properties concern the paragraph mark.
    """
    if name == b'vanish':
        if element.name == b'r':
            element.is_hidden = not _NOT_HIDDEN.search(attributes)
        return
    style = _VALUE.search(attributes)
    is_own = element.name == _ELEMENT_OF_STYLE[name]
    if is_own and style is not None and style[1] in styles:
        element.is_hidden = True


def _rewritten(archive: zipfile.ZipFile, changed: dict[str, bytes]) -> IO[bytes]:
    written = io.BytesIO()
    with zipfile.ZipFile(written, 'w') as copy:
        for member in archive.infolist():
            copy.writestr(member, changed.get(member.filename) or archive.read(member))
    written.seek(0)
    return written
