"""The marks within lines of AsciiDoc, what replaces them, and the ids of its headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from pyserini_repbert.data.markup import alternative_text

_NO_ID = re.compile(r'[^ \w.-]')
_SEPARATORS = re.compile(r'[ _.-]+')
# Characters that Asciidoctor knows by names.
CHARACTERS = {
    'empty': '',
    'sp': ' ',
    'nbsp': ' ',
    'zwsp': '',
    'apos': "'",
    'quot': '"',
    'lsquo': '‘',
    'rsquo': '’',
    'ldquo': '“',
    'rdquo': '”',
    'deg': '°',
    'plus': '+',
    'brvbar': '¦',
    'vbar': '|',
    'amp': '&',
    'lt': '<',
    'gt': '>',
    'startsb': '[',
    'endsb': ']',
    'caret': '^',
    'asterisk': '*',
    'tilde': '~',
    'backslash': '\\',
    'backtick': '`',
    'two-colons': '::',
    'two-semicolons': ';;',
    'cpp': 'C++',
}
_ATTRIBUTE = re.compile(r'\\?\{([\w-]{1,80})\}')
_CONTENT = r'(?:[^\]\\]|\\.){0,2000}'
# Its alternatives have the order in which Asciidoctor reads them: literal text first.
_MARK = re.compile(
    r'\+\+\+(?P<passed>[^\n]{1,500}?)\+\+\+'
    r'|(?P<name>\b(?:link|xref|mailto|image|icon|footnote|footnoteref|kbd|btn|menu|pass|stem|'
    r'latexmath|asciimath|indexterm2?|anchor|span)):(?P<target>[^\s\[\]]{0,500})'
    r'\[(?P<content>' + _CONTENT + r')\]'
    # An address, which may begin with an attribute that another file defines.
    r'|(?P<address>(?:\b(?:https?|ftp|irc)://|\{[\w-]{1,80}\})[^\s\[\]<>]{0,500})'
    r'\[(?P<label>' + _CONTENT + r')\]'
    r'|<<(?P<reference>[^<>,\n]{1,200})(?:,\s?(?P<words>[^<>]{0,500}))?>>'
    r'|\[\[[^\[\]\n]{1,200}\]\]'
    r'|\(\(\([^()\n]{1,200}\)\)\)'
    r'|\(\((?P<term>[^()\n]{1,200})\)\)'
)
_QUOTE = re.compile(
    r'`\+(?P<verbatim>[^\n]{1,500}?)\+`'
    r'|"`(?P<double>[^`]+)`"'
    r"|'`(?P<single>[^`]+)`'"
    r'|(?:\[[^\[\]\n]{1,80}\])?(?P<two>``|\*\*|__|##)(?P<within>[\s\S]{1,500}?)(?P=two)'
    r'|(?<![\w}])(?:\[[^\[\]\n]{1,80}\])?'
    r'(?P<one>[`*_#+])(?P<inside>\S|\S[\s\S]{0,500}?\S)(?P=one)(?!\w)'
    r'|[\^](?P<high>[^\s^]{1,80})[\^]'
    r'|(?<!~)~(?P<low>[^\s~]{1,80})~(?!~)'
    r'|\\(?P<escaped>[*_`#+<\[{^~])'
)
_APOSTROPHE = "`'"
MOST_VALUE = 200  # characters of an attribute
_MOST_QUOTED = 10_000  # characters of a paragraph whose marks are read
# Attributes of a picture; a comma between quotation marks parts none.
_ATTRIBUTES = re.compile(r'(?:"[^"]*"|[^",])+')
_NAME = re.compile(r'[\w-]+')
_WINDOW = re.compile(r'\^$|,[ ]?(?:window|role|opts|options|rel|align|width|height|link)=.*$')


class AsciidocIds:
    """The ids that Asciidoctor gives headings: the second one of the same words ends in '_2'."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def next(self, title: str) -> str:
        """The id of the next heading, by its words."""
        words = '_' + _NO_ID.sub('', title.lower())
        anchor = _SEPARATORS.sub('_', words).rstrip('_')
        self._counts[anchor] += 1
        count = self._counts[anchor]
        return anchor if count == 1 else f'{anchor}_{count}'


def with_attributes(line: str, attributes: Mapping[str, str]) -> str:
    """A line with the values of the attributes that it names; unknown and long ones stay."""

    def value(match: re.Match[str]) -> str:
        if match[0].startswith('\\'):
            return match[0][1:]
        known = attributes.get(match[1].lower(), match[0])
        return known if len(known) <= MOST_VALUE else match[0]

    return _ATTRIBUTE.sub(value, line) if '{' in line else line


def plain_asciidoc(text: str) -> str:
    """The words of a paragraph without marks; it keeps its number of lines.

    In a long one, marks end in the lines in which they begin.
    """
    if len(text) > _MOST_QUOTED:
        lines = text.split('\n')
        return text if len(lines) == 1 else '\n'.join(map(plain_asciidoc, lines))

    def words(match: re.Match[str]) -> str:
        plain = _words_of_mark(match)
        return plain + '\n' * (match[0].count('\n') - plain.count('\n'))

    # Monospaced text may contain other marks, but no links.
    return _without_quotes(_MARK.sub(words, text)).replace(_APOSTROPHE, '’')


def _without_quotes(line: str, depth: int = 0) -> str:
    """A line without the marks of bold, italic, monospace and the like."""

    def words(match: re.Match[str]) -> str:
        if match['double'] is not None:
            return f'“{match["double"]}”'
        if match['single'] is not None:
            return f'‘{match["single"]}’'
        inner = match['within'] or match['inside']
        if inner is not None:
            return inner if depth > 2 else _without_quotes(inner, depth + 1)
        return str(match[str(match.lastgroup)])

    return _QUOTE.sub(words, line)


def _words_of_mark(match: re.Match[str]) -> str:
    if match['name'] is not None:
        return _words_of_macro(match['name'], target=match['target'], content=match['content'])
    if match['address'] is not None:
        return _label(match['label']) or match['address']
    if match['reference'] is not None:
        return match['words'] or _words_of_id(match['reference'])
    return match['passed'] or match['term'] or ''


def _words_of_macro(name: str, target: str, content: str) -> str:
    """The words of 'name:target[content]'."""
    content = content.replace('\\]', ']')
    if name in ('link', 'mailto'):
        return _label(content) or target
    if name == 'xref':
        return _label(content) or _words_of_id(target)
    if name == 'image':
        return alternative_of(content)
    if name in ('footnote', 'footnoteref'):
        return f' ({content})' if content else ''
    if name == 'menu':
        return f'{target} › {content}' if content else target
    return '' if name in ('icon', 'anchor', 'indexterm') else content


def alternative_of(content: str) -> str:
    """The alternative text of a picture: the first of its attributes, or the one that is named."""
    for number, attribute in enumerate(_ATTRIBUTES.findall(content)):
        name, equals, value = attribute.partition('=')
        is_named = bool(equals) and bool(_NAME.fullmatch(name.strip()))
        if is_named and name.strip() == 'alt':
            return alternative_text(value.strip().strip('"'))
        if number == 0 and not is_named and attribute.strip():
            return alternative_text(attribute.strip().strip('"'))
    return ''


def _label(content: str) -> str:
    """The words of a link, without the attribute that says where it opens."""
    return _WINDOW.sub('', content).strip().strip('"')


def _words_of_id(target: str) -> str:
    """The words of a heading's id, or of a page's name."""
    name = target.rpartition('#')[2] or target.rstrip('#')
    if name.endswith('.adoc'):
        page = name.removesuffix('.adoc').rpartition('/')[2].rpartition(':')[2]
        return page.replace('-', ' ')
    return name.strip('_').replace('_', ' ')
