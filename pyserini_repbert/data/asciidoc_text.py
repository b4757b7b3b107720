"""What a person reads of AsciiDoc: its words and its code, without marks.

Attributes, comments, names of styles and files that are included are no text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyserini_repbert.data.asciidoc_marks import (
    CHARACTERS,
    AsciidocIds,
    plain_asciidoc,
    with_attributes,
)
from pyserini_repbert.data.line_reader import LineReader
from pyserini_repbert.data.markup import visible_text
from pyserini_repbert.data.read_page import BULLET, ReadPage

_HEADING = re.compile(r'(={1,6}|#{1,6})[ ]+(\S.*)')
_ATTRIBUTE = re.compile(r':(!?[\w-]+!?):(?:[ ]+(.*))?$')
_FENCE = re.compile(r'-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|[|,:!]={3,}')
_CODE_FENCE = '```'
_CODE_SIGNS = ('----', '....', _CODE_FENCE)
_COMMENT_SIGNS = '////'
_PASSED_SIGNS = '++++'
_TABLE_SIGNS = ('|===', '!===', ',===', ':===')
_BAR = '|'
_ESCAPED_BAR = '\\|'
# Stands for it while a line is cut at bars.
_NO_BAR = '\ue000'
_STYLE = re.compile(r'\[[^\[\]]*\]|\[\[[^\[\]]*\]\]')
_ID = re.compile(r'\[\[([\w:.-]+)(?:,[^\]]*)?\]\]|\[[\w-]*#([\w:.-]+)[^\]]*\]')
_BLOCK_TITLE = re.compile(r'\.([^\s.].*)')
_DIRECTIVE = re.compile(
    r'(?:include|ifdef|ifndef|ifeval|endif|toc|video|audio|image)::[^\s\[]*\[(.*)\]'
)
_NO_LINE = re.compile(r"//(?!/).*|'{3,}|<{3,}|\+|-{3}|\*{3}")
_ITEM = re.compile(r'(?:(\*{1,6}|-)|(\.{1,6})|(\d{1,9}\.)|<(?:\d{1,3}|\.)>)[ ]+')
_CHECK = re.compile(r'\[[ xX*]\][ ]+')
_TERM = re.compile(r'(\S.*?)(?:::{1,3}|;;)(?:[ ]+(\S.*))?$')
_LINE_END = re.compile(r'[ ]\+$')
_CELL = re.compile(
    r'(?:^|[ ])(?:\d{0,3}(?:\.\d{1,3})?[+*])?[<^>]?(?:\.[<^>])?[adehlms]?\||(?<=\S)\|'
)
_COLUMNS = re.compile(r'cols="?([^"\]]+)"?')
_TIMES = re.compile(r'(\d{1,3})\*')


def read_asciidoc(lines: Sequence[str]) -> ReadPage:
    """What a person reads of the lines of an AsciiDoc file."""
    return _Reader(lines).read()


class _Reader(LineReader):
    """Reads the lines of a file.

    Parameters
    ----------
    lines : of the file
    """

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines)
        self._attributes = dict(CHARACTERS)
        self._ids = AsciidocIds()
        # Of the next block: the anchor and the style that stand above it.
        self._anchor = ''
        self._style = ''
        # How many items the ordered lists have, by their depth.
        self._counts: dict[int, int] = {}
        self.takes = (
            self._take_empty,
            self._take_attribute,
            self._take_fenced,
            self._take_heading,
            self._take_style,
            self._take_directive,
            self._take_title,
            self._take_item,
            self._take_indented,
            self._take_paragraph,
        )

    def _take_empty(self, row: int) -> int | None:
        line = self.lines[row].rstrip()
        if line and not _NO_LINE.fullmatch(line):
            return None
        return row + 1

    def _take_attribute(self, row: int) -> int | None:
        match = _ATTRIBUTE.match(self.lines[row])
        if match is None:
            return None
        value = (match[2] or '').strip()
        end = row + 1
        while value.endswith('\\') and end < len(self.lines):
            value = f'{value[:-1].rstrip(" +")} {self.lines[end].strip()}'
            end += 1
        self._attributes[match[1].lower()] = with_attributes(value, self._attributes)
        return end

    def _take_fenced(self, row: int) -> int | None:
        """Take a delimited block whose lines are no paragraphs, or the marks of one whose are."""
        fence = self.lines[row].rstrip()
        if fence.startswith(_CODE_FENCE):
            fence = _CODE_FENCE
        elif not _FENCE.fullmatch(fence):
            return None
        style = self._style
        self._style = ''
        end = self.row_of(row + 1, lambda line: line.rstrip() == fence)
        if fence.startswith(_TABLE_SIGNS):
            self._add_table(row + 1, end, sign=fence[0], style=style)
        elif fence.startswith(_CODE_SIGNS) or 'source' in style or 'listing' in style:
            self.add_code(row + 1, end)
        elif fence.startswith(_PASSED_SIGNS):
            markup = '\n'.join(self.lines[row + 1 : end])
            self.page.add_block([visible_text(markup)], row + 2)
        elif not fence.startswith(_COMMENT_SIGNS):
            return row + 1
        return end + 1

    def _take_heading(self, row: int) -> int | None:
        match = _HEADING.fullmatch(self.lines[row].rstrip())
        if match is None:
            return None
        title = ' '.join(self._plain(match[2]).split())
        level = len(match[1])
        is_title = level == 1 and not self.page.headings and not self.page.has_prose
        anchor = self._anchor or ('' if is_title else self._ids.next(title))
        self._anchor = ''
        self._style = ''
        self._counts.clear()
        if title:
            self.add_heading(level, title, anchor, row)
        return row + 1

    def _take_style(self, row: int) -> int | None:
        """Take a line in brackets: the anchor, or the style, of the next block."""
        line = self.lines[row].rstrip()
        if not _STYLE.fullmatch(line):
            return None
        named = _ID.fullmatch(line)
        if named is not None:
            self._anchor = named[1] or named[2]
        if not line.startswith('[['):
            self._style = line
        return row + 1

    def _take_directive(self, row: int) -> int | None:
        line = self.lines[row].rstrip()
        match = _DIRECTIVE.fullmatch(line)
        if match is None:
            return None
        if line.startswith('image::'):
            self._add_words([match[1].partition(',')[0]], row)
        elif line.startswith(('ifdef::', 'ifndef::')) and match[1]:
            self.lines[row] = match[1]
            return row
        return row + 1

    def _take_title(self, row: int) -> int | None:
        match = _BLOCK_TITLE.fullmatch(self.lines[row].rstrip())
        if match is None:
            return None
        self._add_words([match[1]], row)
        return row + 1

    def _take_item(self, row: int) -> int | None:
        bare = self.lines[row].lstrip()
        match = _ITEM.match(bare)
        if match is None:
            return None
        end = self._end_of_paragraph(row + 1)
        depth = len(match[1] or match[2] or '')
        mark = BULLET
        if match[3] is not None:
            mark = f'{match[3]} '
        elif match[2] is not None:
            count = 1 + self._counts.get(depth, 0)
            self._counts = {known: n for known, n in self._counts.items() if known < depth}
            self._counts[depth] = count
            mark = f'{count}. '
        first = _CHECK.sub('', bare[match.end() :], count=1)
        lines = [first, *self.lines[row + 1 : end]]
        self._add_words(lines, row, column=depth, mark=mark)
        return end

    def _take_indented(self, row: int) -> int | None:
        """Take lines that are indented, which are literal."""
        if not self.lines[row][0].isspace():
            return None
        if _TERM.fullmatch(self.lines[row].strip()):
            return None
        end = self.row_of(row, lambda line: not line.strip() or line.strip() == '+')
        self.add_code(row, end)
        return end

    def _take_paragraph(self, row: int) -> int | None:
        end = self._end_of_paragraph(row + 1)
        lines = self.lines[row:end]
        if 'source' in self._style or 'listing' in self._style:
            self._style = ''
            self.add_code(row, end)
            return end
        self._style = ''
        self._anchor = ''
        self._counts.clear()
        term = _TERM.fullmatch(lines[0].strip())
        if term is not None:
            lines[0] = term[1] if term[2] is None else f'{term[1]}: {term[2]}'
        self._add_words(lines, row)
        return end

    def _end_of_paragraph(self, row: int) -> int:
        """The row behind a paragraph's lines."""

        def is_end(line: str) -> bool:
            bare = line.strip()
            is_block = _FENCE.fullmatch(bare) or _STYLE.fullmatch(bare) or bare in ('', '+')
            begins = _ITEM.match(bare) or _TERM.fullmatch(bare) or bare.startswith(_CODE_FENCE)
            is_unseen = _ATTRIBUTE.match(line) or _DIRECTIVE.fullmatch(line.rstrip())
            return bool(is_block or begins or is_unseen or line.startswith('//'))

        return self.row_of(row, is_end)

    def _add_words(
        self, lines: Sequence[str], row: int, *, column: int = 0, mark: str = ''
    ) -> None:
        """Add the lines of a paragraph without their marks."""
        words = [self._plain(_LINE_END.sub('', line.rstrip())) for line in lines]
        self.add_prose(words, row, column=column, mark=mark)

    def _plain(self, line: str) -> str:
        return plain_asciidoc(with_attributes(line, self._attributes))

    def _add_table(self, start: int, end: int, *, sign: str, style: str) -> None:
        """Add the rows of a table between two rows of the file, whose cells a sign parts."""
        cells: list[tuple[int, str]] = []
        n_columns = _count_columns(style)
        for row in range(start, end):
            parts = _cells_of(_LINE_END.sub('', self.lines[row].rstrip()), sign)
            if parts[0].strip() and cells:
                number, words = cells[-1]
                cells[-1] = (number, f'{words} {parts[0]}')
            cells.extend((row, part) for part in parts[1:])
            n_columns = n_columns or len(parts) - 1
        rows = []
        for first in range(0, len(cells), max(1, n_columns)):
            row_cells = cells[first : first + max(1, n_columns)]
            plain = [self._plain(words.strip()) for _, words in row_cells]
            rows.append((row_cells[0][0], plain))
        self.add_rows(rows)


def _cells_of(line: str, sign: str) -> list[str]:
    """What stands in front of a line's first cell, and its cells."""
    if sign != _BAR:
        return ['', *line.split(sign)] if line.strip() else ['']
    if _BAR not in line:
        return [line]
    parts = _CELL.split(line.replace(_ESCAPED_BAR, _NO_BAR))
    return [part.replace(_NO_BAR, _BAR) for part in parts]


def _count_columns(style: str) -> int:
    """How many columns a table's style names; 0 for none."""
    match = _COLUMNS.search(style)
    if match is None:
        return 0
    times = _TIMES.match(match[1])
    return int(times[1]) if times else len(re.split('[,;]', match[1]))
