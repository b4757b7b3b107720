"""What a person reads of reStructuredText: its words and its code, without marks.

How a directive is read depends on its content: code is not changed, words are read as text. Their
options are not text. Neither are comments, link targets, and what names or includes another file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyserini_repbert.collection.files.line_reader import LineReader, indent_of
from pyserini_repbert.collection.files.read_page import BULLET, ReadPage
from pyserini_repbert.collection.files.restructured_marks import (
    id_of_title,
    names_of,
    plain_restructured,
)
from pyserini_repbert.collection.files.restructured_tables import (
    csv_table_rows,
    grid_table_rows,
    is_grid_line,
    is_simple_line,
    list_table_rows,
    simple_table_rows,
)
from pyserini_repbert.data.markup import alternative_text

# A row of one sign, which underlines a heading or parts paragraphs.
_SIGNS = re.compile(r'([!-/:-@[-`{-~])\1+')
# A shorter row under a longer title underlines nothing.
_FEWEST_SIGNS = 4
_MOST_LINE = 10_000  # characters of a line that may begin with two dots
_EXPLICIT = re.compile(r'([ ]*)\.\.(?:[ ]+(\S.*))?$')
_DIRECTIVE = re.compile(r'([A-Za-z](?:[\w+.-]|:(?!:))*)[ ]?::(?:[ ]+(\S.*))?$')
_FOOTNOTE = re.compile(r'(?:\[(?:\d+|#[\w.-]*|\*)\]|(\[[\w.-]+\]))(?:[ ]+|$)')
_ANONYMOUS = re.compile(r'[ ]*__(?:[ ]+\S|$)')
_OPTION = re.compile(r'[ ]+:([A-Za-z][\w -]*):(?:[ ]+(.*)|$)')
_FIELD = re.compile(r':([A-Za-z](?:[^:`]|:(?!\s|$))*):(?:[ ]+(\S.*))?$')
_ITEM = re.compile(r'(?:[*+•‣⁃-]|(\(?(?:\d{1,9}|[a-zA-Z]|#)[.)]))(?:[ ]+|$)')
_LINE_OF_BLOCK = re.compile(r'\|(?:[ ]+|$)')
_DOCTEST = '>>> '
_LITERAL = '::'
# Directives by what they hold. All others hold words; the words after the directive's name come
# first.
_CODE = frozenset(
    'code code-block sourcecode parsed-literal prompt doctest testcode testsetup testcleanup '
    'testoutput productionlist graphviz digraph graph uml plantuml mermaid ipython jupyter-execute '
    'code-cell console'.split()
)
_NO_TEXT = frozenset(
    'toctree image include literalinclude contents highlight highlightlang currentmodule module '
    'py:module py:currentmodule default-domain index meta tabularcolumns default-role role '
    'sectnum section-numbering sectionauthor codeauthor moduleauthor program target-notes '
    'bibliography inheritance-diagram youtube video raw title '
    'restructuredtext-test-directive'.split()
)
_PICTURES = ('image', 'figure')
# The rest of the line after their names is not text.
_WORDS_ALONE = frozenset(
    'container rst-class cssclass only ifconfig figure grid tab-set tabs glossary compound '
    'hlist list-table-row'.split()
)
_VERSIONS = {
    'versionadded': 'Added in version',
    'versionchanged': 'Changed in version',
    'versionremoved': 'Removed in version',
    'deprecated': 'Deprecated since version',
}
_TABLES = ('list-table', 'csv-table')
_LIST_TABLE, _CSV_TABLE = _TABLES
# Options whose values a page shows.
_SHOWN_OPTIONS = ('caption', 'header', 'subtitle')
# Fields that only concern the renderer.
_SETTINGS = frozenset('orphan nocomments nosearch tocdepth hide-toc no-search no-comments'.split())


def read_restructured(lines: Sequence[str]) -> ReadPage:
    """What a person reads of the lines of a reStructuredText file."""
    return _Reader(lines).read()


class _Reader(LineReader):
    """Reads the lines of a reStructuredText file."""

    def __init__(self, lines: Sequence[str]) -> None:
        # A tab is as wide as in docutils.
        super().__init__([line.expandtabs(8) for line in lines])
        self._names = names_of(lines)
        # The signs of headings, the highest level first, and whether the signs are also above them.
        self._styles: list[tuple[str, bool]] = []
        self._anchors: set[str] = set()
        self.takes = (
            self._take_heading,
            self._take_explicit,
            self._take_anonymous_target,
            self._take_table,
            self._take_rule,
            self._take_doctest,
            self._take_paragraph,
        )

    def _take_heading(self, row: int) -> int | None:
        """Take a heading; each new style of lines is one level lower."""
        is_overlined = _is_signs(self.lines[row])
        title = self.line(row + 1).strip() if is_overlined else self.lines[row].rstrip()
        end = row + 3 if is_overlined else row + 2
        below = self.line(end - 1).rstrip()
        if not title or title[0].isspace() or _is_signs(title) or not _fits(below, title):
            return None
        if is_overlined and below != self.lines[row].rstrip():
            return None
        style = (below[0], is_overlined)
        if style not in self._styles:
            self._styles.append(style)
        # The row above the title is not the title's row.
        self._add_title(title, level=1 + self._styles.index(style), row=end - 2)
        return end

    def _add_title(self, title: str, level: int, row: int) -> None:
        """Add a heading with its anchor, the id that docutils makes.

        The second one of the same words has a number that depends on the rest of the page, so its
        anchor is ''.
        """
        words = self.title_of(title)
        anchor = id_of_title(words)
        is_known = anchor in self._anchors
        self._anchors.add(anchor)
        self.add_heading(level, words, '' if is_known else anchor, row)

    def _take_explicit(self, row: int) -> int | None:
        """Take what begins with two dots: a directive, a target, a footnote, a comment."""
        match = _EXPLICIT.match(self.lines[row])
        if match is None or len(self.lines[row]) > _MOST_LINE:
            return None
        indent = len(match[1])
        content = match[2] or ''
        footnote = _FOOTNOTE.match(content)
        if footnote is not None:
            # The label of a citation is a word.
            label = footnote[1] or ''
            return self._replace(row, indent, f'{label} {content[footnote.end() :]}'.strip())
        directive = _DIRECTIVE.match(content)
        if directive is not None:
            return self._take_directive(row, indent, directive[1], words=directive[2] or '')
        if content.startswith('|'):
            long = self._names.long.get(row)
            if long is not None:
                self.add_words([long], row, column=indent)
        is_empty = not content and not self.line(row + 1).strip()
        return row + 1 if is_empty else self.end_of_indented(row + 1, indent)

    def _replace(self, row: int, indent: int, words: str) -> int:
        """Keep only the words of a row, indented deeper than the mark that was there."""
        self.lines[row] = f'{" " * (indent + 3)}{words}' if words else ''
        return row

    def _take_directive(self, row: int, indent: int, name: str, words: str) -> int:
        kind = name.lower().rpartition(':')[2]
        options = self._options_of(row, indent)
        if kind in _PICTURES:
            self.add_words([alternative_text(options.get('alt', ''))], row, column=indent)
        start = self._clear_options(row + 1, indent)
        if kind in _NO_TEXT or name.lower() in _NO_TEXT:
            end = self.end_of_indented(row + 1, indent)
            if kind == 'raw' and words.strip() == 'html':
                self.add_markup(start, end)
            return end
        if kind in _TABLES:
            end = self.end_of_indented(start, indent)
            self.add_words([words], row, column=indent)
            self._add_table_of(kind, start, end, options)
            return end
        self._add_shown(options, row, indent)
        if kind in _CODE:
            return self.add_code(start, self.end_of_indented(start, indent))
        if kind == 'math':
            self.page.add_block([words], row + 1)
            return self.add_code(start, self.end_of_indented(start, indent))
        if kind in _WORDS_ALONE:
            words = ''
        version = _VERSIONS.get(kind)
        if version is not None:
            words = f'{version} {words}'
        return self._replace(row, indent, words)

    def _options_of(self, row: int, indent: int) -> dict[str, str]:
        """The options of a directive that begins in a row, by their names."""
        options: dict[str, str] = {}
        for behind in range(row + 1, len(self.lines)):
            line = self.lines[behind]
            if not self._may_be_option(line, indent):
                break
            option = _OPTION.match(line)
            if option is not None:
                words = self._lines_of_option(behind, option[2] or '')
                options[option[1].lower()] = ' '.join(words).strip()
        return options

    def _may_be_option(self, line: str, indent: int) -> bool:
        """Whether a line below a directive may be of its words or options."""
        is_within = bool(line.strip()) and indent_of(line) > indent
        return is_within and not _EXPLICIT.match(line[:_MOST_LINE])

    def _add_shown(self, options: Mapping[str, str], row: int, indent: int) -> None:
        """Add the values of a directive's options that a page shows."""
        for name in _SHOWN_OPTIONS:
            if options.get(name):
                self.add_words([options[name]], row, column=indent)

    def _add_table_of(self, kind: str, start: int, end: int, options: Mapping[str, str]) -> None:
        """Add the table that a directive holds in some rows."""
        if kind == _LIST_TABLE:
            self.add_rows(list_table_rows(self.lines, start, end))
            return
        header = csv_table_rows([options.get('header', '')], 0, 1, options)
        rows = csv_table_rows(self.lines, start, end, options)
        self.add_rows([*((start - 1, cells) for _, cells in header), *rows])

    def _lines_of_option(self, row: int, first: str) -> list[str]:
        """The lines of an option's value, which continues in deeper lines."""
        end = self.row_of(
            row + 1,
            lambda line: not line.strip() or indent_of(line) <= indent_of(self.lines[row]),
        )
        return [first, *(self.lines[behind].strip() for behind in range(row + 1, end))]

    def _clear_options(self, start: int, indent: int) -> int:
        """Clear the lines of a directive's options; returns the row behind them.

        The text after the directive's name may continue before them.

        Parameters
        ----------
        start : the row behind the directive's first
        indent : of the directive
        """
        row = start
        of_options = None
        while row < len(self.lines) and self._may_be_option(self.lines[row], indent):
            line = self.lines[row]
            is_option = _OPTION.match(line) is not None
            if is_option:
                of_options = indent_of(line)
            is_continued = of_options is not None and indent_of(line) > of_options
            if is_option or is_continued:
                self.lines[row] = ''
            elif of_options is not None:
                break
            row += 1
        return start if of_options is None else row

    def _take_anonymous_target(self, row: int) -> int | None:
        return row + 1 if _ANONYMOUS.match(self.lines[row]) else None

    def _take_table(self, row: int) -> int | None:
        line = self.lines[row].strip()
        if is_grid_line(line):
            end = self.row_of(row, lambda line: line.strip()[:1] not in ('+', '|'))
            self.add_rows(grid_table_rows(self.lines, row, end))
            return end
        if is_simple_line(line):
            table = simple_table_rows(self.lines, row)
            if table is not None:
                self.add_rows(table.rows)
                return table.end
        return None

    def _take_rule(self, row: int) -> int | None:
        """Take a rule between paragraphs, or a row that was meant to underline a heading."""
        return row + 1 if _is_rule(self.lines[row]) else None

    def _take_doctest(self, row: int) -> int | None:
        if not self.lines[row].lstrip().startswith(_DOCTEST):
            return None
        return self.add_code(row, self.row_of(row, lambda line: not line.strip()))

    def _take_paragraph(self, row: int) -> int | None:
        """Take lines until an empty one; in a list, each line is an item."""
        if not self.lines[row].strip():
            return None
        first = indent_of(self.lines[row])
        # The column of the marks of a list's items; a definition is deeper than its term.
        marks = first if _ITEM.match(self.lines[row].lstrip()) else None
        start = row
        end = row + 1
        while self.line(end).strip():
            line = self.lines[end]
            indent = indent_of(line)
            if _EXPLICIT.match(line) and indent != first:
                # A directive right below the term that it explains.
                break
            is_item = _ITEM.match(line.lstrip()) is not None
            if is_item and (indent == marks or (marks is None and indent > first)):
                self._add_item(start, end)
                start = end
                marks = indent
            end += 1
        column = self._add_item(start, end)
        if not self.lines[end - 1].rstrip().endswith(_LITERAL):
            return end
        return self._take_literal(end, column)

    def _take_literal(self, row: int, column: int) -> int:
        """Take the code behind a paragraph that ends in two colons."""
        return self.add_code(row, self.end_of_indented(row, column))

    def _add_item(self, start: int, end: int) -> int:
        """Add rows as a paragraph or an item; returns the column at which their words begin."""
        column = indent_of(self.lines[start])
        first = self.lines[start].lstrip()
        mark = _ITEM.match(first)
        if mark is None:
            lines = [self.lines[row].strip() for row in range(start, end)]
            self.add_words(lines, start, column=column)
            return indent_of(self.lines[end - 1])
        number = mark[1] or ''
        words = first[mark.end() :]
        lines = [words, *(self.lines[row].strip() for row in range(start + 1, end))]
        shown = BULLET if not number or '#' in number else f'{number} '
        if not any(lines):
            return column
        if _ITEM.match(words):
            # An item that begins another list.
            shown = ''
        self.add_words(lines, start, column=column, mark=shown)
        return indent_of(self.lines[end - 1]) if end > start + 1 else column + mark.end()

    def plain(self, text: str) -> str:
        return plain_restructured(text, self._names)

    def add_words(self, lines: Sequence[str], row: int, *, column: int = 0, mark: str = '') -> None:
        """As in `LineReader`, also without what marks a line, or the code behind it."""
        plain = [_without_line_marks(line) for line in lines]
        if plain[-1].endswith(_LITERAL):
            is_alone = plain[-1] == _LITERAL or plain[-1].endswith(f' {_LITERAL}')
            plain[-1] = plain[-1][: -2 if is_alone else -1]
        super().add_words(plain, row, column=column, mark=mark)


def _is_signs(line: str) -> bool:
    """Whether a line is a row of one sign."""
    return _SIGNS.fullmatch(line.rstrip()) is not None


def _is_rule(line: str) -> bool:
    """Whether a line is a row of one sign, and long enough to be a rule."""
    return _is_signs(line.strip()) and len(line.strip()) >= _FEWEST_SIGNS


def _fits(signs: str, title: str) -> bool:
    """Whether a line underlines a title."""
    return _is_signs(signs) and len(signs) >= min(len(title), _FEWEST_SIGNS)


def _without_line_marks(line: str) -> str:
    """A line without what marks it as one of a block of lines, or as a field."""
    if _is_rule(line):
        return ''
    of_block = _LINE_OF_BLOCK.match(line)
    if of_block is not None:
        return line[of_block.end() :]
    field = _FIELD.match(line)
    if field is None:
        return line
    if field[1].lower() in _SETTINGS:
        return ''
    return f'{field[1]}: {field[2] or ""}'.rstrip()
