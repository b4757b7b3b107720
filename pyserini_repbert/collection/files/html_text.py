"""What a person reads of a page: its blocks, its lists, tables and code, and its headings.

Each block knows its line in the file. A tree of HTML has no lines, so the lines are written into
the tags before the page is parsed. Marks in the tree's text then say where elements begin and end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pyserini_repbert.collection.files.read_page import BULLET, INDENT, ReadPage
from pyserini_repbert.data.markup import (
    BLOCKS,
    one_line,
    parse_page,
    without_breaks,
    write_alternatives,
)
from pyserini_repbert.data.unread_files import UnreadableFile

_HEADINGS = ('h1', 'h2', 'h3', 'h4', 'h5', 'h6')
_LISTS = ('ul', 'ol', 'menu', 'dir')
_CODE = ('pre', 'listing', 'xmp', 'plaintext')
_CELLS = ('td', 'th')
# A change of a text, or a formula, stays in its line, although Jsoup treats it as a block.
_MARKED = BLOCKS - {'html', 'head', 'body', 'ins', 'del', 'math'}
_SELECTED = ','.join(sorted(_MARKED))
_TAG = re.compile(rf'<(?:{"|".join(sorted(_MARKED, key=len, reverse=True))})(?=[\s/>])', re.I)
_LINE = 'pyserini-line'
_WRITTEN_LINE = re.compile(rf' {_LINE}=\d+ ')
_MOST_TAG = 2_000  # characters of the tag of a block of code
# What a row of a table may not hold, if it is to be one line.
_NO_CELLS = frozenset((*_HEADINGS, *_LISTS, *_CODE, 'li', 'tr', 'br', 'blockquote', 'dl'))
_MOST_ROW = 2_000  # characters of a row of a table on one line
_NUMBER = re.compile(r'[0-9]{1,9}')
_WORD = re.compile(r'\w')
_LINK_TO_ITSELF = 'a[href^="#"]'
_MOST_SIGN = 2  # characters of a link that is a sign
_NEAR = 3  # siblings
_MOST_INDENTED = 20  # lists within lists, of which each line is indented by its depth
# What a browser does not show. Of a formula, its source, and all forms but one.
_HIDDEN = (
    '[hidden]:not([hidden="until-found"]),dialog:not([open]),template,annotation,annotation-xml,'
    '.katex-mathml ~ .katex-html,mjx-container > mjx-assistive-mml,.MJX_Assistive_MathML'
)
_STYLED = '[style*="none" i],[style*="hidden" i]'
_UNSEEN_STYLE = re.compile(r'(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b', re.I)
# The sign of a note behind a word. One that is raised, and leads elsewhere in the page, is one.
_NOTE_SIGNS = 'a[role="doc-noteref"],a[epub\\:type="noteref"],a.footnote-ref,a.noteref'
_RAISED_LINK = 'sup a[href^="#"],a[href^="#"] sup'
_SIGN = re.compile(r'[\[(]?(?:\d{1,4}|[a-zA-Z]|[ivx]{1,5}|note \d{1,3}|[*†‡§¶]{1,3})[\])]?')
_SECTIONS = ('section', 'div', 'article', 'header')
# Elements beside the main content of a page.
_BESIDES = (
    'nav,footer,aside,body > header,[role=navigation],[role=search],[role=contentinfo],'
    '[role=banner],[role=complementary]'
)
_MAIN = 'main,[role=main]'
_ARTICLE = 'article'
# Two of these characters that the page does not contain begin and end marks.
_PRIVATE = (*range(0xE000, 0xF8FF), *range(0xF0000, 0xFFFFE))


@dataclass(frozen=True)
class _Mark:
    """Where an element begins or ends.

    Attributes
    ----------
    tag : of the element
    is_end : whether it ends
    line : of the file; 0 for one that is not known
    is_numbered : whether it is an item with a number
    first : the number of a list's first item
    anchor : of a heading
    """

    tag: str
    is_end: bool = False
    line: int = 0
    is_numbered: bool = False
    first: int = 1
    anchor: str = ''


@dataclass(frozen=True)
class _Part:
    """A mark, and the text between it and the next one."""

    mark: _Mark
    text: str


def read_html(markup: str, main_content: bool = False) -> ReadPage:
    """What a person reads of a page. `<title>` is not part of it.

    With `main_content`, what HTML and ARIA mark as navigation, search, header, footer or aside of
    the page is left out, and so is all that stands outside of its main content, if that is marked.
    A page without any other text is read as a whole.
    """
    tree = parse_page(_with_lines(markup))
    root = _main_content(tree) if main_content else tree.root
    page = ReadPage()
    if root is not None:
        _remove_unseen(tree)
        _remove_signs(tree)
        write_alternatives(tree)
        _Reader(page, _parts_of(tree, root)).read()
    if main_content and not page.lines:
        return read_html(markup)
    return page


def _main_content(tree: LexborHTMLParser) -> LexborNode | None:
    """The element of a tree, which is changed, that has the main content."""
    for node in tree.css(_BESIDES):
        node.decompose()
    main = tree.css_first(_MAIN)
    if main is not None:
        return main
    articles = tree.css(_ARTICLE)
    return articles[0] if len(articles) == 1 else tree.root


def _with_lines(markup: str) -> str:
    """A page whose block tags state their lines."""
    position = 0
    line = 1

    def with_line(match: re.Match[str]) -> str:
        nonlocal position, line
        line += markup.count('\n', position, match.start())
        position = match.start()
        # Without quotes, because the tag may be inside a quoted attribute.
        return f'{match[0]} {_LINE}={line + _begins_below(markup, match)} '

    return _TAG.sub(with_line, markup)


def _begins_below(markup: str, match: re.Match[str]) -> int:
    """1 if a line ends right after the tag of a block of code, which it does not count; otherwise
    0.
    """
    if match[0][1:].lower() not in _CODE:
        return 0
    end = markup.find('>', match.end(), match.end() + _MOST_TAG)
    return int(end >= 0 and markup[end + 1 : end + 3].startswith(('\n', '\r\n')))


def _remove_signs(tree: LexborHTMLParser) -> None:
    """Remove links to their own place, which are signs such as ¶, and the signs of notes."""
    for link in tree.css(_LINK_TO_ITSELF):
        words = link.text().strip()
        if len(words) <= _MOST_SIGN and not _WORD.search(words):
            link.decompose()
    for node in tree.css(f'{_NOTE_SIGNS},{_RAISED_LINK}'):
        if _SIGN.fullmatch(node.text().strip()):
            node.decompose()


def _remove_unseen(tree: LexborHTMLParser) -> None:
    """Remove what a browser does not show, as far as the elements themselves say so."""
    for node in tree.css(_HIDDEN):
        node.decompose()
    for node in tree.css(_STYLED):
        if _UNSEEN_STYLE.search(node.attributes.get('style') or ''):
            node.decompose()
    for node in tree.css('del + ins'):
        # Two words, which a line shows by their colours.
        node.insert_before(' ')


def _parts_of(tree: LexborHTMLParser, root: LexborNode) -> list[_Part]:
    """The text of a tree, which is changed, in parts."""
    begin, end = _unused_characters(root.text())
    marks: list[_Mark] = []

    def written(mark: _Mark) -> str:
        marks.append(mark)
        return f'{begin}{len(marks) - 1}{end}'

    for node in tree.css(_SELECTED):
        tag = str(node.tag)
        node.insert_before(written(_mark_of(node, tag)))
        node.insert_after(written(_Mark(tag, is_end=True)))
    first, *others = root.text().split(begin)
    parts = [_Part(_Mark('body'), first)]
    for other in others:
        number, _, text = other.partition(end)
        parts.append(_Part(marks[int(number)], _WRITTEN_LINE.sub('', text)))
    return parts


def _unused_characters(text: str) -> tuple[str, str]:
    """Two characters that a text does not contain. Raises UnreadableFile if it has them all."""
    used = set(text)
    unused = list(islice((chr(code) for code in _PRIVATE if chr(code) not in used), 2))
    if len(unused) < 2:
        raise UnreadableFile('not text: it has every private character of Unicode')
    return unused[0], unused[1]


def _mark_of(node: LexborNode, tag: str) -> _Mark:
    attributes = node.attributes
    line = attributes.get(_LINE) or ''
    number = int(line) if _NUMBER.fullmatch(line) else 0
    if tag == 'li':
        return _Mark(tag, line=number, is_numbered=_is_numbered(node))
    if tag == 'ol':
        first = attributes.get('start') or ''
        return _Mark(tag, line=number, first=int(first) if _NUMBER.fullmatch(first) else 1)
    if tag in _HEADINGS:
        return _Mark(tag, line=number, anchor=_anchor_of(node))
    return _Mark(tag, line=number)


def _is_numbered(item: LexborNode) -> bool:
    """Whether an item of a list has a number."""
    return item.parent is not None and item.parent.tag == 'ol'


def _anchor_of(heading: LexborNode) -> str:
    """The address of a heading: its id, that of a link in it or before it, or of its section."""
    name = _name_of(heading)
    if not name:
        inner = heading.css_first('[id],[name]')
        name = '' if inner is None else _name_of(inner)
    return name or _anchor_before(heading)


def _anchor_before(heading: LexborNode) -> str:
    """The name of an empty link before a heading, or of the section that it begins; '' for none."""
    before = _node_before(heading)
    for _ in range(_NEAR):
        if before is None:
            parent = heading.parent
            is_section = parent is not None and parent.tag in _SECTIONS
            return _name_of(parent) if parent is not None and is_section else ''
        if before.tag not in ('a', 'span') or before.text().strip():
            return ''
        if _name_of(before):
            return _name_of(before)
        before = _node_before(before)
    return ''


def _node_before(node: LexborNode) -> LexborNode | None:
    """What stands before an element in the same one, apart from white space; None for nothing."""
    before = node.prev
    while before is not None and before.is_text_node and not before.text().strip():
        before = before.prev
    return before


def _name_of(node: LexborNode) -> str:
    """The id of an element, or the name of a link; '' for none."""
    attributes = node.attributes
    name = attributes.get('id') or (attributes.get('name') if node.tag == 'a' else '')
    return (name or '').strip()


class _Reader:
    """Reads the parts of a page.

    Parameters
    ----------
    page : gets the text
    parts : of the text
    """

    def __init__(self, page: ReadPage, parts: Sequence[_Part]) -> None:
        self._page = page
        self._parts = parts
        # Of the block that is read, and the line of its first word.
        self._words: list[str] = []
        self._line = 1
        # The line that has been read up to.
        self._line_read = 1
        # The text in front of the next block: the sign of an item.
        self._sign = ''
        # For each list around a block, the number of its next item.
        self._lists: list[int] = []
        # Whether the next block is the first of a list within no other.
        self._begins_list = False
        # Whether the next block follows the one before without an empty line.
        self._is_tight = False
        self._is_behind_row = False
        self._heading: _Mark | None = None

    def read(self) -> None:
        """Read all parts, in their order."""
        number = 0
        while number < len(self._parts):
            number = self._read_part(number)
        self._end_block()

    def _read_part(self, number: int) -> int:
        """Read a part, and those that are one block with it; returns the number behind them."""
        part = self._parts[number]
        mark = part.mark
        if self._heading is not None:
            self._go_on_with_heading(mark)
        else:
            self._end_block()
            self._line_read = mark.line or self._line_read
            self._line = self._line_read
            if mark.tag in _CODE and not mark.is_end:
                return self._read_code(number)
            row_end = self._end_of_row(number)
            if row_end is not None:
                return self._read_row(number, row_end)
            self._enter(mark)
        self._add_words(part.text)
        return number + 1

    def _add_words(self, text: str) -> None:
        """Add text to the block that is read."""
        if not self._words:
            white_space = text[: len(text) - len(text.lstrip())]
            self._line = self._line_read + white_space.count('\n')
        if self._words or text.strip():
            self._words.append(text)
        self._line_read += text.count('\n')

    def _go_on_with_heading(self, mark: _Mark) -> None:
        """Add a heading at its end; elements inside it separate words."""
        heading = self._heading
        if heading is None or not mark.is_end or mark.tag != heading.tag:
            self._words.append(' ')
            return
        title = one_line(''.join(self._words))
        self._words = []
        self._heading = None
        self._sign = ''
        self._is_behind_row = False
        if title:
            self._page.add_heading(int(heading.tag[1]), title, heading.anchor, self._line)

    def _enter(self, mark: _Mark) -> None:
        """Note the line of the next block."""
        if mark.tag == 'br':
            self._is_tight = True
        elif mark.tag in _LISTS:
            self._enter_list(mark)
        elif mark.tag == 'li':
            self._enter_item(mark)
        elif mark.tag in _HEADINGS and not mark.is_end:
            self._heading = mark
        elif not self._sign:
            self._is_tight = False
        if mark.tag == 'table':
            self._is_behind_row = False

    def _enter_list(self, mark: _Mark) -> None:
        self._sign = ''
        self._is_tight = False
        if not mark.is_end:
            self._begins_list = not self._lists
            self._lists.append(mark.first)
        elif self._lists:
            self._lists.pop()

    def _enter_item(self, mark: _Mark) -> None:
        self._sign = ''
        if mark.is_end:
            return
        self._is_tight = not self._begins_list
        self._sign = BULLET
        if mark.is_numbered and self._lists:
            self._sign = f'{self._lists[-1]}. '
            self._lists[-1] += 1

    def _end_block(self) -> None:
        """Add the block that was read."""
        words = one_line(''.join(self._words))
        self._words = []
        if words:
            self._add([words])

    def _add(self, lines: Sequence[str], is_code: bool = False) -> None:
        depth = min(len(self._lists) - 1, _MOST_INDENTED)
        is_added = self._page.add_block(
            lines,
            self._line,
            indent=INDENT * max(0, depth),
            mark=self._sign,
            is_tight=self._is_tight,
            is_code=is_code,
        )
        if is_added:
            self._sign = ''
            self._begins_list = False
            self._is_tight = False
            self._is_behind_row = False

    def _read_code(self, number: int) -> int:
        """Read a block whose spaces and line ends are kept; an element in it begins a line."""
        tag = self._parts[number].mark.tag
        self._is_tight = False
        self._add_code(self._parts[number].text)
        depth = 1
        while number + 1 < len(self._parts):
            number += 1
            part = self._parts[number]
            if part.mark.tag == tag:
                depth += -1 if part.mark.is_end else 1
            if depth == 0:
                self._is_tight = False
                self._add_words(part.text)
                break
            self._line_read = part.mark.line or self._line_read
            self._add_code(part.text)
        return number + 1

    def _add_code(self, text: str) -> None:
        self._line = self._line_read
        self._line_read += text.count('\n')
        self._add(without_breaks(text).split('\n'), is_code=True)
        self._is_tight = True

    def _end_of_row(self, number: int) -> int | None:
        """The number of the part that ends a row of short cells; None for any other part."""
        mark = self._parts[number].mark
        if mark.tag != 'tr' or mark.is_end:
            return None
        n_characters = 0
        for behind in range(number + 1, len(self._parts)):
            part = self._parts[behind]
            if part.mark.tag == 'tr' and part.mark.is_end:
                return behind
            n_characters += len(part.text)
            if part.mark.tag in _NO_CELLS or n_characters > _MOST_ROW:
                return None
        return None

    def _read_row(self, number: int, end: int) -> int:
        """Read a row of a table, on one line."""
        cells: list[str] = []
        for part in self._parts[number:end]:
            is_cell = part.mark.tag in _CELLS and not part.mark.is_end
            if is_cell or not cells:
                cells.append(part.text)
            else:
                cells[-1] += f' {part.text}'
        if not cells[0].strip():
            # The text in front of the first cell.
            cells.pop(0)
        self._page.add_row(map(one_line, cells), self._line, is_tight=self._is_behind_row)
        self._is_behind_row = True
        self._add_words(self._parts[end].text)
        return end + 1
