"""What dialects of Markdown add: marks that a person does not see on the page.

Lines are replaced, each by one: where a line is in the file stays known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Of MkDocs: '!!! note "Title"', '??? note', '=== "Tab"'. What they hold is indented.
_INDENTED = re.compile(r'( *)(?:!!!|\?\?\?\+?|===\+?!?)[ \t]+(?!=)([^\n]*)$')
_QUOTED_TITLE = re.compile(r'"([^"]*)"')
# Of PyMdown and VitePress: '/// tab | Title', '::: tip Title'; a line of the signs alone ends them.
_FENCED = re.compile(r' {0,3}(/{3,}|:{3,})[ \t]*(?:[\w.{}-]+)?[ \t]*(?:\|[ \t]*)?([^\n]*)$')
# A line that includes a file: of FastAPI, of PyMdown's snippets, of Jekyll and Hugo.
_INCLUDE = re.compile(
    r'[ \t]*(?:\{[!*][^\n]*[!*]\}|-{1,2}8<-{1,2}[^\n]*|;-{1,2}8<[^\n]*|\{%[^\n]*%\}|'
    r'\{\{[<%][^\n]*[%>]\}\})[ \t]*$'
)
_CODE = re.compile(r'[ \t>]*(?:[-*+] +)?(`{3,}|~{3,})')
_INDENT = 4
# Imports and exports of MDX stand alone in a paragraph.
_MDX = re.compile(r'(?:import\b[^\n]*\bfrom\b|import[ \t]+[\'"]|export[ \t]+(?:default|const)\b)')
# '{ #anchor .class key="value" }' behind a heading, a link or an image.
_ATTRIBUTES = re.compile(r'\{:?[ \t]*(?:[.#][\w:-]+|[\w-]+=[^\s{}]+)(?:[ \t]+[^{}\n]*)?\}')
_ANCHOR = re.compile(r'\{[^{}\n]*#([\w:.-]+)[^{}\n]*\}[ \t]*$')
_FOOTNOTE = re.compile(r'\[\^[^\]\s]{1,100}\]:?')
_WIKI_LINK = re.compile(r'!?\[\[(?:[^\[\]|\n]{1,300}\|)?([^\[\]|\n]{1,300})\]\]')
_ALERT = re.compile(r'\[!(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*$', re.MULTILINE)


def without_marks(text: str) -> str:
    """Markdown whose marks of dialects are no text any more; it has as many lines."""
    return '\n'.join(_plain_lines(text.split('\n')))


def _plain_lines(lines: list[str]) -> Iterator[str]:
    """The lines; those that a mark indents are indented less."""
    fence = ''
    # The indents of the marks within which a line stands.
    open_marks: list[int] = []
    for line in lines:
        bare = line.lstrip(' ')
        if bare:
            indent = len(line) - len(bare)
            while open_marks and indent < open_marks[-1] + _INDENT and not fence:
                open_marks.pop()
        line = line[min(len(line) - len(bare), _INDENT * len(open_marks)) :]
        if _INCLUDE.match(line):
            yield ''
            continue
        code = _CODE.match(line)
        if code and (not fence or (code[1].startswith(fence) and not line[code.end() :].strip())):
            fence = '' if fence else code[1]
            yield line
            continue
        mark = None if fence else _INDENTED.match(line)
        if mark is not None:
            open_marks.append(_INDENT * len(open_marks) + len(mark[1]))
            title = _QUOTED_TITLE.search(mark[2])
            yield '' if title is None else f'{mark[1]}{title[1]}'
            continue
        mark = None if fence else _FENCED.match(line)
        yield line if mark is None else mark[2].strip().strip('[]')


def is_code_of_mdx(paragraph: str) -> bool:
    """Whether a paragraph has nothing but imports and exports of MDX."""
    return all(_MDX.match(line) for line in paragraph.split('\n'))


def anchor_of(heading: str) -> str:
    """The anchor that a heading names, '{#ports}' behind it; '' for none."""
    match = _ANCHOR.search(heading)
    return '' if match is None else match[1]


def plain_words(text: str) -> str:
    """The text of a line without footnotes, attributes and the brackets of wiki links."""
    if '{' in text:
        text = _ATTRIBUTES.sub('', text)
    if '[' in text:
        text = _WIKI_LINK.sub(r'\1', text)
        text = _FOOTNOTE.sub('', text)
        text = _ALERT.sub('', text)
    return text
