"""What dialects of Markdown add: marks that a person does not see on the page.

Lines are replaced, each by one: where a line is in the file stays known.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pyserini_repbert.data.markup import PICTURES

# Of MkDocs: '!!! note "Title"', '??? note', '=== "Tab"'. What they hold is indented below.
_INDENTED = re.compile(r'( *)(?:!!!|\?\?\?\+?|===\+?!?)[ \t]+(?!=)([^\n]*)$')
_QUOTED_TITLE = re.compile(r'"([^"]*)"')
# Of PyMdown and VitePress: '/// tab | Title', '::: tip Title'; a line of the signs alone ends them.
_FENCED = re.compile(
    r' {0,3}(/{3,}|:{3,})[ \t]*(?:\{[^{}\n]*\}|[\w.-]+(?:\{[^{}\n]*\})?)?[ \t]*'
    r'(?:\|[ \t]*)?([^\n]*)$'
)
_FENCE_END = re.compile(r' {0,3}(/{3,}|:{3,})[ \t]*$')
# A line that includes a file: of FastAPI, of PyMdown's snippets. Code has them, too.
_INCLUDE = re.compile(
    r'[ \t]*(?:\{[!*]>?[ \t]*[\w./-]+\.\w[^\n]*[!*]\}|-{1,2}8<-{1,2}[^\n]*|;-{1,2}8<[^\n]*)[ \t]*$'
)
# A line of nothing but tags of Jekyll and Hugo.
_TEMPLATE = re.compile(
    r'[ \t]*(?:(?:\{%(?:(?!%\})[^\n])*%\}|\{\{<(?:(?!>\}\})[^\n])*>\}\}|'
    r'\{\{%(?:(?!%\}\})[^\n])*%\}\})[ \t]*)+$'
)
# What such tags, and the braces of a fence, show.
_SHOWN = re.compile(r'\b(?:title|caption|alt)="([^"\n]*)"')
_CODE = re.compile(r'[ \t>]*(?:[-*+] +)?(`{3,}|~{3,})')
_INDENT = 4
# Imports and exports of MDX are separate paragraphs.
_MDX = re.compile(
    r'(?:import\b[^\n]*\bfrom[ \t]+[\'"]|import[ \t]+[\'"]|'
    r'export[ \t]+(?:default[ \t]+(?:function|class|async|[({])|const[ \t][^\n=]{1,200}=))'
)
# '{ #anchor .class key="value" }'
_ATTRIBUTE = r'(?:[.#][\w:-]+|[\w:-]+="[^"\n]*"|[\w:-]+=[\w.%/#:-]+)'
_ATTRIBUTES = rf'{_ATTRIBUTE}(?:[ \t]+{_ATTRIBUTE})*[ \t]*\}}'
# Right behind a link, an image, code; and behind the words of a line.
_ATTACHED = re.compile(rf'\{{:?[ \t]*{_ATTRIBUTES}')
_AT_END = re.compile(rf'\{{(?::[ \t]*|[ \t]*(?=[.#])){_ATTRIBUTES}[ \t]*$', re.MULTILINE)
_BEHIND_BRACKET = re.compile(rf'(?<=\])\{{:?[ \t]*{_ATTRIBUTES}')
_ANCHOR = re.compile(r'\{[^{}\n]*#([\w:.-]+)[^{}\n]*\}[ \t]*$')
_NAME = r'\[\^([^\]\s]{1,100})\]'
_FOOTNOTE = re.compile(_NAME)
# The text of a footnote, whose further paragraphs are indented.
_NOTE = re.compile(rf'( {{0,3}}){_NAME}:[ \t]*([^\n]*)$', re.MULTILINE)
_WIKI_LINK = re.compile(r'(!?)\[\[([^\[\]|\n\\]{1,300})(?:\\?\|([^\[\]|\n]{1,300}))?\]\]')
# The sign of a callout; its title follows it.
_ALERT = re.compile(r'^([ \t>]*)\[![A-Za-z][\w-]{0,30}\][+-]?(?:[ \t]+|$)', re.MULTILINE)
# Of Obsidian: '%%a comment%%', '==words==', a block's name behind it, the width of a picture.
_COMMENT = re.compile(r'%%(?=\S)[^\n%]{1,2000}%%')
_COMMENT_MARK = re.compile(r'[ \t]*%%[ \t]*$')
_HIGHLIGHT = re.compile(r'==(?=[^\s=])([^\n=]{0,500}[^\s=])==')
_BLOCK_NAME = re.compile(r'(?:^|[ \t])\^[a-zA-Z0-9-]{1,60}[ \t]*$', re.MULTILINE)
_OF_BLOCK = re.compile(r'#\^[\w-]{1,60}$')
_WIDTH = re.compile(r'\d{1,5}(?:x\d{1,5})?$')


def without_marks(text: str) -> str:
    """Markdown whose marks of dialects are no longer text; it has as many lines."""
    lines = text.split('\n')
    reader = _MarkReader(lines)
    return '\n'.join(reader.plain(row, line) for row, line in enumerate(lines))


def names_of_notes(text: str) -> frozenset[str]:
    """The names of the footnotes that a file has."""
    return frozenset(match[2] for match in _NOTE.finditer(text))


class _MarkReader:
    """Takes the marks of dialects out of lines, one after the other."""

    def __init__(self, lines: list[str]) -> None:
        self._indents_below = _indents_below(lines)
        self._ends = _last_ends(lines)
        comments = (row for row, line in enumerate(lines) if _COMMENT_MARK.match(line))
        self._last_comment = max(comments, default=-1)
        self._is_comment = False
        self._fence = ''
        # The indents of the marks that hold a line.
        self._open_marks: list[int] = []

    def plain(self, row: int, line: str) -> str:
        """A line without marks; one that a mark indents is indented less."""
        bare = line.lstrip(' ')
        indent = len(line) - len(bare)
        if bare and not self._fence:
            self._close_marks(indent)
        line = line[min(indent, _INDENT * len(self._open_marks)) :]
        if _INCLUDE.match(line):
            return ''
        if self._is_code(line):
            return line
        if self._is_unseen(row, line):
            return ''
        opening = _opening_of(line, holds_more=self._indents_below[row] >= indent + _INDENT)
        if opening is None:
            return _without_tags(line, is_fenced=row <= self._ends.get(line.strip()[:1], -1))
        self._open_marks.append(_INDENT * len(self._open_marks) + opening.indent)
        return opening.words

    def _close_marks(self, indent: int) -> None:
        """Leave the marks that hold what is indented more."""
        while self._open_marks and indent < self._open_marks[-1] + _INDENT:
            self._open_marks.pop()

    def _is_code(self, line: str) -> bool:
        """Whether a line is of fenced code, the fences included."""
        mark = _CODE.match(line)
        if mark is None:
            return bool(self._fence)
        if not self._fence:
            self._fence = mark[1]
        elif mark[1].startswith(self._fence) and not line[mark.end() :].strip():
            self._fence = ''
        return True

    def _is_unseen(self, row: int, line: str) -> bool:
        """Whether a line is of a comment, its marks included."""
        if _COMMENT_MARK.match(line) and (self._is_comment or row < self._last_comment):
            self._is_comment = not self._is_comment
            return True
        return self._is_comment


class _Opening(NamedTuple):
    """A mark that holds what is indented below it.

    Attributes
    ----------
    indent : of the mark
    words : that a person sees in its line
    """

    indent: int
    words: str


def _opening_of(line: str, holds_more: bool) -> _Opening | None:
    """The mark that a line is; None for none. `holds_more`: the lines below are indented."""
    note = _NOTE.match(line)
    if note is not None:
        return _Opening(len(note[1]), note[3])
    mark = _INDENTED.match(line)
    if mark is None or not holds_more:
        return None
    title = _QUOTED_TITLE.search(mark[2])
    return _Opening(len(mark[1]), '' if title is None else f'{mark[1]}{title[1]}')


def _without_tags(line: str, is_fenced: bool) -> str:
    """A line without template tags, or the tag that begins or ends a fence, if it has one."""
    if _TEMPLATE.match(line):
        return _shown(line)
    mark = _FENCED.match(line) if is_fenced else None
    if mark is None:
        return line
    words = mark[2].strip().strip('[]')
    return f'{_shown(line)} {words}'.strip()


def _indents_below(lines: list[str]) -> list[int]:
    """By how much the next line with words is indented, for each line; 0 behind the last one."""
    indents = [0] * len(lines)
    indent = 0
    for row in range(len(lines) - 1, -1, -1):
        indents[row] = indent
        bare = lines[row].lstrip(' ')
        if bare:
            indent = len(lines[row]) - len(bare)
    return indents


def _last_ends(lines: list[str]) -> dict[str, int]:
    """By their sign, the last rows that end what is fenced."""
    ends = {}
    for row, line in enumerate(lines):
        end = _FENCE_END.match(line.lstrip(' '))
        if end is not None:
            ends[end[1][0]] = row
    return ends


def _shown(line: str) -> str:
    """The words of a line of tags that a page shows."""
    return ' '.join(_SHOWN.findall(line))


def is_code_of_mdx(paragraph: str) -> bool:
    """Whether a paragraph has nothing but imports and exports of MDX."""
    return all(_MDX.match(line) for line in paragraph.split('\n'))


def anchor_of(heading: str) -> str:
    """The anchor that a heading names, '{#ports}' behind it; '' for none."""
    match = _ANCHOR.search(heading)
    return '' if match is None else match[1]


def plain_words(text: str, notes: frozenset[str], is_behind_element: bool = False) -> str:
    """Text, which is not code, without footnotes, attributes and the brackets of wiki links.

    Parameters
    ----------
    text : a part of a line, or of several
    notes : the names of the footnotes that the file has
    is_behind_element : whether a link, an image, code or the like is directly before it
    """

    def words_of_note(match: re.Match[str]) -> str:
        return '' if match[1] in notes else match[0]

    if '{' in text:
        if is_behind_element:
            attached = _ATTACHED.match(text)
            text = text if attached is None else text[attached.end() :]
        text = _BEHIND_BRACKET.sub('', text)
        text = _AT_END.sub('', text)
    if '%%' in text:
        text = _COMMENT.sub('', text)
    if '==' in text:
        text = _HIGHLIGHT.sub(r'\1', text)
    if '^' in text:
        text = _BLOCK_NAME.sub('', text)
    if '[' in text:
        text = _WIKI_LINK.sub(_words_of_link, text)
        text = _FOOTNOTE.sub(words_of_note, text)
        text = _ALERT.sub(r'\1', text)
    return text


def _words_of_link(match: re.Match[str]) -> str:
    """What a wiki link shows: its words, otherwise the page. A picture shows only its words."""
    target = match[2]
    words = match[3] or ''
    if match[1] and target.lower().endswith(PICTURES):
        return '' if _WIDTH.match(words) else words
    return words or _OF_BLOCK.sub('', target)
