"""The headings of reStructuredText, AsciiDoc and Org, with the anchors of their usual renderers."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A row of one sign, as reStructuredText underlines headings with.
_RST_LINE = re.compile(r'([!-/:-@[-`{-~])\1+[ \t]*')
_RST_ROLE = re.compile(r':[\w.+-]+:(?=`)')
_NO_RST_ID = re.compile(r'[^a-z0-9]+')
_ASCIIDOC_HEADING = re.compile(r'(={2,6}|#{2,6})[ \t]+(\S.*)')
_ASCIIDOC_FENCE = re.compile(r'-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|[|,:!]={3,}')
_ASCIIDOC_ID = re.compile(r'\[\[([\w:.-]+)(?:,[^\]]*)?\]\]|\[[\w-]*#([\w:.-]+)[^\]]*\]')
_NO_ASCIIDOC_ID = re.compile(r'[^ \w.-]')
_ASCIIDOC_SEPARATORS = re.compile(r'[ _.-]+')
_CODE_FENCE = '```'
_ORG_HEADING = re.compile(r'(\*+)[ \t]+(\S.*)')
_ORG_STATE = re.compile(r'(?:TODO|DONE)[ \t]+|\[#[A-Z0-9]\][ \t]*')
_ORG_TAGS = re.compile(r'[ \t]:[\w@#%:]+:[ \t]*\Z')
_ORG_ID = re.compile(r'[ \t]*:CUSTOM_ID:[ \t]*(\S+)[ \t]*', re.IGNORECASE)
_ORG_DRAWER = ':PROPERTIES:'
_ORG_DRAWER_END = ':END:'
_ORG_BEGIN = re.compile(r'[ \t]*#\+begin_(\w+)', re.IGNORECASE)
_ORG_END = re.compile(r'[ \t]*#\+end_(\w+)', re.IGNORECASE)


@dataclass(frozen=True)
class RowHeading:
    """A heading of a file.

    Attributes
    ----------
    row : of the file's lines, from 0, at which it begins
    level : from 1, the highest
    title : its words
    anchor : its address within the rendered page; '' if only the renderer knows it
    """

    row: int
    level: int
    title: str
    anchor: str


def line_of(lines: Sequence[str], row: int) -> str:
    """A line; '' before the first and behind the last one."""
    return lines[row] if 0 <= row < len(lines) else ''


def is_rst_line(lines: Sequence[str], row: int, title: str) -> bool:
    """Whether a line underlines or overlines a title."""
    line = line_of(lines, row)
    is_row = _RST_LINE.fullmatch(line) is not None
    is_title_row = _RST_LINE.fullmatch(title) is not None
    return is_row and not is_title_row and len(line.rstrip()) >= len(title)


def restructured_headings(lines: Sequence[str]) -> list[RowHeading]:
    """The headings of reStructuredText.

    Each new style of lines is one level lower. An anchor is the id that docutils makes; the second
    one of the same words has a number that depends on the rest of the page, so it is ''.
    """
    styles: list[tuple[str, bool]] = []
    seen: set[str] = set()
    headings: list[RowHeading] = []
    for row, line in enumerate(lines):
        title = line.strip()
        is_overlined = is_rst_line(lines, row - 1, title)
        start = row - 1 if is_overlined else row
        is_indented = line[:1].isspace() and not is_overlined
        begins_block = _begins_block(lines, headings, start)
        if not title or is_indented or not begins_block or not is_rst_line(lines, row + 1, title):
            continue
        style = (lines[row + 1][0], is_overlined)
        if style not in styles:
            styles.append(style)
        words = ' '.join(_RST_ROLE.sub('', title).replace('`', '').split())
        anchor = _rst_id(words)
        is_known = anchor in seen
        seen.add(anchor)
        level = 1 + styles.index(style)
        headings.append(RowHeading(start, level, words, '' if is_known else anchor))
    return headings


def _begins_block(lines: Sequence[str], headings: Sequence[RowHeading], row: int) -> bool:
    """Whether a row stands behind an empty line, or behind the last heading."""
    before = line_of(lines, row - 1)
    if not before.strip():
        return True
    is_near = bool(headings) and row - headings[-1].row <= 3
    return is_near and _RST_LINE.fullmatch(before) is not None


def _rst_id(words: str) -> str:
    """The id of docutils.nodes.make_id."""
    plain = unicodedata.normalize('NFKD', words.lower()).encode('ascii', 'ignore').decode('ascii')
    return _NO_RST_ID.sub('-', plain).lstrip('-0123456789').rstrip('-')


def asciidoc_headings(lines: Sequence[str]) -> list[RowHeading]:
    """The headings of AsciiDoc below its title; those within delimited blocks are none.

    An anchor is the one that the file gives, or `_title` as Asciidoctor makes it.
    """
    counts: Counter[str] = Counter()
    headings = []
    fence = ''
    for row, line in enumerate(lines):
        stripped = line.rstrip()
        if fence:
            fence = '' if stripped == fence else fence
            continue
        if _ASCIIDOC_FENCE.fullmatch(stripped):
            fence = stripped
            continue
        if stripped.startswith(_CODE_FENCE):
            fence = _CODE_FENCE
            continue
        match = _ASCIIDOC_HEADING.fullmatch(stripped)
        if match is None:
            continue
        named = _ASCIIDOC_ID.fullmatch(line_of(lines, row - 1).strip())
        title = ' '.join(match[2].split())
        anchor = (named[1] or named[2]) if named else _asciidoc_id(title, counts)
        headings.append(RowHeading(row, len(match[1]), title, anchor))
    return headings


def _asciidoc_id(title: str, counts: Counter[str]) -> str:
    """The id of Asciidoctor; the second one of the same words ends in '_2'."""
    words = '_' + _NO_ASCIIDOC_ID.sub('', title.lower())
    anchor = _ASCIIDOC_SEPARATORS.sub('_', words).rstrip('_')
    counts[anchor] += 1
    return anchor if counts[anchor] == 1 else f'{anchor}_{counts[anchor]}'


def org_headings(lines: Sequence[str]) -> list[RowHeading]:
    """The headings of Org.

    An anchor is the CUSTOM_ID, since Org's exporter makes others at random.
    """
    headings = []
    for row in _org_rows(lines):
        match = _ORG_HEADING.fullmatch(lines[row])
        if match is None:
            continue
        title = _ORG_TAGS.sub('', match[2])
        while state := _ORG_STATE.match(title):
            title = title[state.end() :]
        words = ' '.join(title.split())
        if words:
            headings.append(RowHeading(row, len(match[1]), words, _org_id(lines, row)))
    return headings


def _org_rows(lines: Sequence[str]) -> Iterator[int]:
    """The rows outside of blocks."""
    block = ''
    for row, line in enumerate(lines):
        begin = None if block else _ORG_BEGIN.match(line)
        end = _ORG_END.match(line) if block else None
        if begin is not None:
            block = begin[1].lower()
        elif end is not None and end[1].lower() == block:
            block = ''
        elif not block:
            yield row


def _org_id(lines: Sequence[str], row: int) -> str:
    """The CUSTOM_ID in the drawer behind a heading; '' without one."""
    if line_of(lines, row + 1).strip().upper() != _ORG_DRAWER:
        return ''
    for line in lines[row + 2 :]:
        match = _ORG_ID.fullmatch(line)
        if match:
            return match[1]
        if line.strip().upper() == _ORG_DRAWER_END or _ORG_HEADING.match(line):
            break
    return ''
