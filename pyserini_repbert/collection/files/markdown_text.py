"""What a person reads of Markdown: its words and its code, without marks, and its headings.

The blocks come one after the other, an empty line between them. Each line of the text knows its
line in the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from pyserini_repbert.collection.files.markdown_marks import (
    anchor_of,
    is_code_of_mdx,
    names_of_notes,
    plain_words,
    without_marks,
)
from pyserini_repbert.collection.files.read_page import BULLET, INDENT, ReadPage
from pyserini_repbert.data.markup import BLOCKS, alternative_text, visible_text

_MOST_INLINE = 10_000  # characters of a paragraph
# Code that pages show as a terminal, with its colours as tags.
_TERMINALS = ('console', 'termynal', 'ansi')
_COLOUR = re.compile(r'</?(?:span|font|b|u|i)(?: (?:style|color|class)="[^"<>]{0,200}")?>')
_TAG_NAME = re.compile(r'</?([a-zA-Z][a-zA-Z0-9]*)')
# A block of HTML may be part of a table. The parser does not accept its tags without the table's.
_TABLE_TAG = re.compile(r'(?=</?(?:caption|t[dhr])\b)', re.IGNORECASE)
_PICTURE = re.compile(r'<img\s', re.IGNORECASE)
_NO_SLUG = re.compile(r'[^\w\- ]')
# Levels of quotations and lists; a list takes two. The parser leaves out deeper ones.
_MOST_NESTED = 100


def read_markdown(text: str, first_line: int = 1) -> ReadPage:
    """What a person reads of Markdown.

    `first_line` is the number of the text's first line in the file.
    """
    page = ReadPage()
    _Reader(page, first_line, names_of_notes(text)).read(without_marks(text))
    return page


class _Reader:
    """Reads the tokens of a page.

    Parameters
    ----------
    page : gets lines and headings
    first_line : the number of the first line in the file
    notes : the names of the footnotes that the file has
    """

    def __init__(self, page: ReadPage, first_line: int, notes: frozenset[str]) -> None:
        self._page = page
        self._first_line = first_line
        self._notes = notes
        self._slugs: Counter[str] = Counter()
        # The text in front of the next line: the mark of a list's item.
        self._mark = ''
        # For each list around a block, the number of its next item; 0 for bullets.
        self._lists: list[int] = []
        self._cells: list[str] = []
        self._row_number = 0
        self._is_tight = False
        # Whether the next lines are the first of a list or a table.
        self._begins_part = False
        self._markdown = _markdown()
        self._references: dict[str, Any] = {}

    def read(self, text: str) -> None:
        """Read all blocks, in their order; what nests too deeply is read with its marks."""
        tokens = self._markdown.parse(text, self._references)
        if any(token.level >= _MOST_NESTED - 1 for token in tokens):
            self._page.add_block(text.split('\n'), self._first_line)
            return
        heading: Any = None
        for token in tokens:
            if token.type == 'heading_open':
                heading = token
            elif token.type == 'inline' and heading is not None:
                self._add_heading(heading, token)
                heading = None
            elif token.type == 'inline':
                self._add_words(token)
            elif token.type in ('fence', 'code_block'):
                self._add_code(token)
            elif token.type == 'html_block':
                self._add_markup(token)
            else:
                self._enter(token)

    def _enter(self, token: Any) -> None:
        """Note in which list or table the next blocks are."""
        if token.type in ('bullet_list_open', 'ordered_list_open'):
            number = token.attrGet('start') if token.attrs else None
            is_ordered = token.type == 'ordered_list_open'
            self._begins_part = self._begins_part or not self._lists
            self._lists.append(int(1 if number is None else number) if is_ordered else 0)
        elif token.type in ('bullet_list_close', 'ordered_list_close'):
            self._lists.pop()
            self._mark = ''
        elif token.type == 'list_item_open':
            number = self._lists[-1]
            self._mark = f'{number}. ' if number else BULLET
            self._lists[-1] += 1 if number else 0
        elif token.type == 'paragraph_open':
            # An item of a list without empty lines between its items.
            self._is_tight = bool(token.hidden)
        elif token.type == 'table_open':
            self._begins_part = True
        elif token.type == 'tr_open':
            self._cells = []
            self._row_number = self._number(token)
        elif token.type == 'tr_close':
            self._page.add_row(self._cells, self._row_number, is_tight=not self._begins_part)
            self._begins_part = False
            self._row_number = 0

    def _number(self, token: Any) -> int:
        """The line of the file at which a block begins."""
        return self._first_line + (token.map[0] if token.map else 0)

    def _add_heading(self, heading: Any, token: Any) -> None:
        title = ' '.join(' '.join(self._words_of(token)).split())
        if not title:
            return
        anchor = anchor_of(token.content) or self._slug(title)
        self._mark = ''
        self._begins_part = False
        self._page.add_heading(int(heading.tag[1:]), title, anchor, self._number(heading))

    def _slug(self, title: str) -> str:
        """The anchor that GitHub gives a heading; the second of the same words ends in '-1'."""
        slug = _NO_SLUG.sub('', title.lower()).replace(' ', '-')
        count = self._slugs[slug]
        self._slugs[slug] += 1
        return f'{slug}-{count}' if count else slug

    def _add_words(self, token: Any) -> None:
        if is_code_of_mdx(token.content):
            return
        lines = self._words_of(token)
        if self._row_number:
            self._cells.append(' '.join(lines))
            return
        self._add_lines(lines, self._number(token), self._is_tight)

    def _add_code(self, token: Any) -> None:
        number = self._number(token) + (1 if token.type == 'fence' else 0)
        code = token.content.rstrip()
        if token.info.strip() in _TERMINALS:
            code = _COLOUR.sub('', code)
        self._add_lines(code.split('\n'), number, is_tight=False, is_code=True)

    def _add_markup(self, token: Any) -> None:
        """Add the words of HTML, which are on one line; comments have none."""
        markup = _TABLE_TAG.sub(' ', token.content)
        words = visible_text(markup, with_pictures=True)
        self._add_lines([words], self._number(token), is_tight=False)

    def _add_lines(
        self, lines: Sequence[str], number: int, is_tight: bool, is_code: bool = False
    ) -> None:
        """Add the lines of a block, the first of which has a number in the file.

        `is_tight`: no empty line stands before it, if another block of its list or table does.
        """
        is_added = self._page.add_block(
            lines,
            number,
            indent=INDENT * max(0, len(self._lists) - 1),
            mark=self._mark,
            is_tight=is_tight and not self._begins_part,
            is_code=is_code,
        )
        if is_added:
            self._mark = ''
            self._begins_part = False

    def _words_of(self, token: Any) -> list[str]:
        """The words of a paragraph, a heading or a cell, a line for each of its lines."""
        content = token.content
        if len(content) > _MOST_INLINE:
            # Reading marks may take time that grows faster than the length.
            return str(content).split('\n')
        children: list[Any] = []
        self._markdown.inline.parse(content, self._markdown, self._references, children)
        return _words_of_parts(children, self._notes)


def _words_of_parts(children: Sequence[Any], notes: frozenset[str]) -> list[str]:
    """The words of a block's parts, a line for each of its lines.

    Parameters
    ----------
    children : the tokens of the parts
    notes : the names of the footnotes that the file has
    """

    def plain(text: str) -> str:
        return plain_words(text, notes, is_behind_element=bool(parts))

    parts: list[str] = []
    # Text that belongs together.
    run: list[str] = []
    # Within how many links; a picture there is a badge or a button.
    n_links = 0
    for child in children:
        if child.type in ('text', 'text_special'):
            run.append(child.content)
        elif child.type in ('softbreak', 'hardbreak'):
            run.append('\n')
        else:
            parts.append(plain(''.join(run)))
            run = []
            n_links += {'link_open': 1, 'link_close': -1}.get(child.type, 0)
            parts.append(_words_of_element(child, is_in_link=n_links > 0))
    parts.append(plain(''.join(run)))
    return ''.join(parts).split('\n')


def _words_of_element(child: Any, is_in_link: bool) -> str:
    """The words of a token that is not text; '' for one that begins or ends what has words."""
    if child.type == 'code_inline':
        return str(child.content)
    if child.type == 'image' and not is_in_link:
        return alternative_text(child.content)
    if child.type != 'html_inline':
        return ''
    if _PICTURE.match(child.content):
        return '' if is_in_link else visible_text(child.content, with_pictures=True)
    tag = _TAG_NAME.match(child.content)
    return ' ' if tag is not None and tag[1].lower() in BLOCKS else ''


@cache
def _markdown() -> Any:
    """A parser of blocks: CommonMark, with tables.

    The content of a block is parsed when it is read.
    """
    from markdown_it import MarkdownIt

    options = {'maxNesting': _MOST_NESTED}
    markdown = MarkdownIt('commonmark', options).enable(['table', 'strikethrough'])
    markdown.core.ruler.enableOnly(['normalize', 'block'])
    return markdown
