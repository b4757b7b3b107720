"""What a person reads of Org: its words and its code, without marks.

Keywords, comments, drawers, dates of planning and the states and tags of headings are not text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyserini_repbert.collection.files.line_reader import LineReader, indent_of
from pyserini_repbert.collection.files.read_page import BULLET, ReadPage
from pyserini_repbert.data.markup import PICTURES, alternative_text

_HEADING = re.compile(r'(\*+)[ \t]+(\S.*)')
_STATE = re.compile(r'(?:TODO|NEXT|WAITING|DONE|CANCELLED|COMMENT)[ \t]+|\[#[A-Z0-9]\][ \t]*')
# Further states, which a file names, each perhaps with a key: 'QUEUED(q) | DROPPED(d@/!)'.
_STATES = re.compile(r'[ \t]*#\+(?:seq_|typ_)?todo:[ \t]*(.*)', re.IGNORECASE)
_STATE_NAME = re.compile(r'([^\s|()]{1,60})(?:\([^\s()]{0,20}\))?')
# '@@html:<b>@@', which other formats do not show; code and macros within a line.
_SNIPPET = re.compile(r'@@[\w-]{1,30}:[^\n@]{0,500}@@')
_INLINE_CODE = re.compile(r'\bsrc_[\w-]{1,30}(?:\[[^\n\]]{0,200}\])?\{([^\n{}]{0,500})\}')
_MACRO = re.compile(r'\{\{\{[a-zA-Z][\w-]{0,60}(?:\(([^\n()]{0,500})\))?\}\}\}')
_TAGS = re.compile(r'[ \t]:[\w@#%:]+:[ \t]*\Z')
_COOKIE = re.compile(r'[ \t]?\[\d{0,5}(?:/\d{0,5}|%)\]')
_ID = re.compile(r'[ \t]*:CUSTOM_ID:[ \t]*(\S+)[ \t]*', re.IGNORECASE)
# Org's exporter writes what other drawers hold, but not their marks.
_DRAWER = re.compile(r'[ \t]*:(?:PROPERTIES|LOGBOOK|CLOCK):[ \t]*', re.IGNORECASE)
_DRAWER_MARK = re.compile(r'[ \t]*:[\w-]+:[ \t]*')
_DRAWER_END = re.compile(r'[ \t]*:END:[ \t]*', re.IGNORECASE)
_PROPERTIES = ':PROPERTIES:'
_BEGIN = re.compile(r'[ \t]*#\+begin_(\w+)(?:[ \t]+(.*))?', re.IGNORECASE)
_CAPTION = re.compile(r'[ \t]*#\+caption(?:\[[^\]]*\])?:[ \t]*(.*)', re.IGNORECASE)
# The alternative text of the picture below.
_ALTERNATIVE = re.compile(
    r'[ \t]*#\+attr_html:.*?[ \t]:alt[ \t]+(\S.*?)(?:[ \t]+:[a-z-]+(?:[ \t].*)?)?', re.IGNORECASE
)
_TITLE = re.compile(r'[ \t]*#\+title:[ \t]*(.*)', re.IGNORECASE)
# A row of signs alone is not text, either.
_KEYWORD = re.compile(r'[ \t]*#(?:\+\S|[ \t]|#*[ \t]*$)')
_PLANNING = re.compile(r'[ \t]*(?:SCHEDULED|DEADLINE|CLOSED|CLOCK):[ \t]*(?:[<\[=]|$)')
_FIXED = re.compile(r'^[ \t]*:(?:[ \t]|$)')
_RULE = re.compile(r'[ \t]*-{5,}[ \t]*')
_TABLE_RULE = re.compile(r'[ \t]*\|-[-+|]*[ \t]*')
_ITEM = re.compile(r'[ \t]*(?:([-+]|(?<=[ \t])\*)|((?:\d{1,9}|[a-zA-Z])[.)]))(?:[ \t]+|$)')
_CHECK = re.compile(r'(?:\[@\d+\][ \t]*)?(?:\[[ xX-]\](?:[ \t]+|$))?')
_TERM = re.compile(r'[ \t]::(?:[ \t]+|$)')
_FOOTNOTE = re.compile(r'\A\[fn:[\w-]+\][ \t]+')
_CODE = frozenset(('src', 'example'))
# A comma in front of what would be a mark.
_COMMA = re.compile(r'^([ \t]*),(?=,*(?:\*|#\+))')
_NO_TEXT = frozenset(('comment',))
_MARK = re.compile(
    r'\[\[(?P<target>[^\[\]\n]{1,500})\](?:\[(?P<words>[^\[\]]{1,500})\])?\]'
    r'|<<<(?P<radio>[^<>\n]{1,200})>>>'
    r'|<<[^<>\n]{1,200}>>'
    r'|[ ]?\[fn:[\w-]*(?::(?P<note>[^\[\]\n]{1,500}))?\]'
    r'|\\\\[ \t]*$'
    r"""|(?<![^\s\-–—("'{\[])(?P<sign>[*/_+=~])(?P<inside>[^\s]|[^\s][\s\S]{0,500}?[^\s])"""
    r"""(?P=sign)(?![^\s\-–—.,;:!?'")}\[\]\\])""",
    re.MULTILINE,
)
_VERBATIM = '=~'
_MOST_NESTED = 3
_MOST_MARKED = 10_000  # characters of a paragraph whose marks are read
# A space, which no address has.
_TEXT = re.compile(r'\s')
_LINK_KINDS = re.compile(r'(?:file|id|attachment):')


def read_org(lines: Sequence[str]) -> ReadPage:
    """What a person reads of the lines of an Org file."""
    return _Reader(lines).read()


class _Reader(LineReader):
    """Reads the lines of an Org file."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines)
        self._own_states = _states_of(lines)
        # Kinds of blocks that nothing ends.
        self._endless: set[str] = set()
        # No drawer that begins in front of this row ends.
        self._drawers_from = 0
        self.takes = (
            self._take_title,
            self._take_heading,
            self._take_block,
            self._take_drawer,
            self._take_caption,
            self._take_alternative,
            self._take_unseen,
            self._take_fixed,
            self._take_table,
            self._take_item,
            self._take_paragraph,
        )

    def _take_title(self, row: int) -> int | None:
        match = _TITLE.fullmatch(self.lines[row])
        if match is None:
            return None
        self.page.title = self.page.title or self.title_of(match[1])
        return row + 1

    def _take_heading(self, row: int) -> int | None:
        """Take a heading. Its anchor is its CUSTOM_ID: Org's exporter makes others at random."""
        match = _HEADING.fullmatch(self.lines[row])
        if match is None:
            return None
        title = _COOKIE.sub('', _TAGS.sub('', match[2]))
        first, _, others = title.partition(' ')
        if first in self._own_states:
            title = others.lstrip()
        while state := _STATE.match(title):
            title = title[state.end() :]
        self.add_heading(len(match[1]), self.title_of(title), self._id_behind(row), row)
        return row + 1

    def _id_behind(self, row: int) -> str:
        """The CUSTOM_ID in the drawer behind a heading; '' without one."""
        row += 1
        if _PLANNING.match(self.line(row)):
            row += 1
        if self.line(row).strip().upper() != _PROPERTIES:
            return ''
        end = self.row_of(
            row + 1,
            lambda line: _ID.fullmatch(line) or _DRAWER_END.fullmatch(line) or _HEADING.match(line),
        )
        match = _ID.fullmatch(self.line(end))
        return '' if match is None else match[1]

    def _take_block(self, row: int) -> int | None:
        """Take code, or the mark that begins a block of words."""
        match = _BEGIN.fullmatch(self.lines[row])
        if match is None:
            return None
        kind = match[1].lower()
        is_words = kind not in _CODE and kind not in _NO_TEXT and kind != 'export'
        if is_words or kind in self._endless:
            return row + 1
        end_mark = f'#+end_{kind}'
        end = self.row_of(row + 1, lambda line: line.strip().lower() == end_mark)
        if end == len(self.lines):
            # Nothing ends it: the mark alone is left out.
            self._endless.add(kind)
            return row + 1
        if kind in _CODE:
            for number in range(row + 1, end):
                self.lines[number] = _COMMA.sub(r'\1', self.lines[number], count=1)
            self.add_code(row + 1, end)
        elif kind == 'export' and (match[2] or '').strip().lower() == 'html':
            self.add_markup(row + 1, end)
        return end + 1

    def _take_drawer(self, row: int) -> int | None:
        """Take a drawer of settings, or the mark that begins or ends one of words."""
        if not _DRAWER_MARK.fullmatch(self.lines[row]):
            return None
        if row < self._drawers_from or not _DRAWER.fullmatch(self.lines[row]):
            return row + 1
        end = row + 1
        while end < len(self.lines) and not _HEADING.match(self.lines[end]):
            if _DRAWER_END.fullmatch(self.lines[end]):
                return end + 1
            end += 1
        self._drawers_from = end
        return row + 1

    def _take_caption(self, row: int) -> int | None:
        match = _CAPTION.fullmatch(self.lines[row])
        if match is None:
            return None
        self.add_words([match[1]], row)
        return row + 1

    def _take_alternative(self, row: int) -> int | None:
        match = _ALTERNATIVE.fullmatch(self.lines[row][:_MOST_MARKED])
        if match is None:
            return None
        self.add_words([alternative_text(match[1])], row)
        return row + 1

    def _take_unseen(self, row: int) -> int | None:
        """Take keywords, comments, dates of planning, rules and empty lines."""
        line = self.lines[row]
        is_unseen = _KEYWORD.match(line) or _PLANNING.match(line) or _RULE.fullmatch(line)
        return row + 1 if is_unseen or not line.strip() else None

    def _take_fixed(self, row: int) -> int | None:
        """Take lines that begin with a colon, unchanged."""
        end = self.row_of(row, lambda line: not _FIXED.match(line))
        if end == row:
            return None
        for number in range(row, end):
            self.lines[number] = _FIXED.sub('', self.lines[number], count=1)
        return self.add_code(row, end)

    def _take_table(self, row: int) -> int | None:
        end = self.row_of(row, lambda line: not line.lstrip().startswith('|'))
        if end == row:
            return None
        rows = []
        for number in range(row, end):
            line = self.lines[number]
            if not _TABLE_RULE.fullmatch(line):
                cells = line.strip().removeprefix('|').removesuffix('|').split('|')
                rows.append((number, [cell.strip() for cell in cells]))
        self.add_rows(rows)
        return end

    def _take_item(self, row: int) -> int | None:
        line = self.lines[row]
        match = _ITEM.match(line)
        if match is None:
            return None
        words = line[match.end() :]
        words = words[_prefix_of(words) :]
        words = _TERM.sub(': ', words, count=1).rstrip()
        end = self._end_of_paragraph(row + 1)
        mark = BULLET if match[2] is None else f'{match[2]} '
        lines = [words, *self.lines[row + 1 : end]]
        self.add_words(lines, row, column=indent_of(line), mark=mark)
        return end

    def _take_paragraph(self, row: int) -> int | None:
        end = self._end_of_paragraph(row + 1)
        first = _FOOTNOTE.sub('', self.lines[row], count=1)
        self.add_words([first, *self.lines[row + 1 : end]], row, column=indent_of(self.lines[row]))
        return end

    def _end_of_paragraph(self, row: int) -> int:
        """The row behind a paragraph's lines."""

        def is_end(line: str) -> bool:
            bare = line.lstrip()
            begins = _ITEM.match(line) or _HEADING.match(line) or _FIXED.match(line)
            is_unseen = _KEYWORD.match(line) or _DRAWER_MARK.fullmatch(line)
            return bool(not bare or begins or is_unseen or bare.startswith('|'))

        return self.row_of(row, is_end)

    def plain(self, text: str) -> str:
        return plain_org(text)


def _states_of(lines: Sequence[str]) -> frozenset[str]:
    """The states of headings that a file names, in any of its lines."""
    states: set[str] = set()
    for line in lines:
        match = _STATES.fullmatch(line)
        if match is not None:
            states.update(name[1] for name in _STATE_NAME.finditer(match[1]))
    return frozenset(states)


def _prefix_of(words: str) -> int:
    """How many characters of an item its checkbox takes."""
    match = _CHECK.match(words)
    return 0 if match is None else match.end()


def plain_org(text: str, depth: int = 0) -> str:
    """The words of lines without marks; they stay as many lines."""
    if len(text) > _MOST_MARKED:
        return text

    if '@@' in text:
        text = _SNIPPET.sub('', text)
    if '{' in text:
        text = _MACRO.sub(r'\1', _INLINE_CODE.sub(r'\1', text))

    def words(match: re.Match[str]) -> str:
        if match['target'] is not None:
            return _words_of_link(match['words'] or match['target'])
        if match['note'] is not None:
            return f' ({match["note"]})'
        inside = match['inside']
        if inside is None:
            return match['radio'] or ''
        if match['sign'] in _VERBATIM or depth == _MOST_NESTED:
            return str(inside)
        return plain_org(inside, depth + 1)

    return _MARK.sub(words, text)


def _words_of_link(shown: str) -> str:
    """The words of a link, from its content; '' for a picture."""
    if shown.lower().endswith(PICTURES) and not _TEXT.search(shown):
        return ''
    return _LINK_KINDS.sub('', shown, count=1)
