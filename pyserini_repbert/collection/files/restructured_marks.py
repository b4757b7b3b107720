"""The marks within lines of reStructuredText, and what replaces them on the page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyserini_repbert.data.markup import alternative_text

# A link's target, a substitution: what other lines refer to.
_TARGET = re.compile(r'[ \t]*\.\. _(?:`([^`]+)`|([^:`]+)):(?:[ \t]|$)')
_ANONYMOUS = re.compile(r'[ \t]*(?:\.\. )?__(?::|[ \t])')
_REPLACED = re.compile(r'[ \t]*\.\. \|([^|]{1,80})\|[ \t]+([\w-]+)::[ \t]*(.*)')
# The option that says what a picture shows.
_ALTERNATIVE = re.compile(r'[ \t]+:alt:[ \t]+(\S.*)')
_ROLE = r':[\w.+:-]{1,80}:'
_MARK = re.compile(
    r'\\(?P<escaped>[\s\S]|\Z)'
    r'|``(?P<literal>[\s\S]+?)``'
    rf'|(?P<before>{_ROLE})?(?<![\w`])_?`(?P<text>[^`]+)`(?P<behind>__?(?!\w)|{_ROLE})?'
    r'|\*\*(?P<strong>[^*\s](?:[^*]*[^*\s])?)\*\*'
    r'|(?<![\w*])\*(?P<emphasis>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])'
    r'|\|(?P<substitution>[^|\s](?:[^|\n]{0,80}[^|\s])?)\|(?:__?(?!\w))?'
    r'|[ ]?\[(?:[0-9]+|[#*][\w-]*)\]_(?!\w)'
    r'|(?P<citation>\[[\w.-]+\])_(?!\w)'
    r'|(?<![\w`])(?P<reference>[A-Za-z0-9](?:[\w.+-]{0,80}[A-Za-z0-9])?)__?(?!\w)'
)
_NO_ID = re.compile(r'[^a-z0-9]+')
# Sphinx knows them from its settings.
_OF_SETTINGS = ('version', 'release', 'today', 'project', 'copyright')
_CODE_POINT = re.compile(r'(?:(?:0x|x|\\x|U\+|u|\\u|&#x)([0-9a-fA-F]{1,5});?|(?:&#)?(\d{1,6});?)')
# Halves of pairs, which are not characters.
_SURROGATES = 0xD800
_SURROGATES_END = 0xDFFF
_MOST_LINES = 100  # of a substitution
_MOST_OPTIONS = 10  # lines of the options of a picture
_MOST_REPLACED = 100  # characters of a substitution
# Roles whose text may begin with a dot, which looks for the name everywhere.
_OF_PYTHON = frozenset('func meth class data attr mod exc obj const deco type'.split())
# Roles whose text is code, with its backslashes; and those whose text does not name a target.
_OF_CODE = frozenset(('code', 'math', 'raw', 'eq'))
_OF_WORDS = frozenset(
    'abbr command dfn emphasis file guilabel kbd literal mailheader makevar manpage menuselection '
    'mimetype newsgroup program regexp samp strong sub subscript sup superscript title '
    'title-reference'.split()
)
_ESCAPED = re.compile(r'\\(?:\s|(.))', re.DOTALL)
# A dotted name; only its last part is shown.
_SHORTENED = re.compile(r'~[A-Za-z_][\w.]*(?:\([^()]*\))?')
# What a role puts in front of its text; 'issue' and 'pr' are of sphinx-issues.
_PREFIXES = {
    'pep': 'PEP ',
    'rfc': 'RFC ',
    'cve': 'CVE-',
    'cwe': 'CWE-',
    'issue': '#',
    'pr': '#',
}


@dataclass(frozen=True)
class Names:
    """What a file's lines may refer to.

    Attributes
    ----------
    targets : the names of links, in small letters
    replaced : the texts of substitutions, except for long ones
    long : the texts of long substitutions, by the rows that define them
    """

    targets: frozenset[str] = frozenset()
    replaced: Mapping[str, str] = field(default_factory=dict)
    long: Mapping[int, str] = field(default_factory=dict)


def names_of(lines: Sequence[str]) -> Names:
    """The names that a file defines."""
    targets = set()
    replaced = {name: name for name in _OF_SETTINGS}
    long = {}
    for row, line in enumerate(lines):
        target = _TARGET.match(line)
        if target is not None:
            targets.add(' '.join((target[1] or target[2]).lower().split()))
        elif _ANONYMOUS.match(line):
            targets.add('_')
        substitution = _REPLACED.match(line)
        if substitution is not None:
            words = _words_of_substitution(lines, row, kind=substitution[2], first=substitution[3])
            if len(words) > _MOST_REPLACED:
                # It may occur often, so it is parsed once, where it is defined.
                long[row] = words
            else:
                replaced[substitution[1]] = words
    plain = {name: plain_restructured(text, Names()) for name, text in replaced.items()}
    return Names(frozenset(targets), plain, long)


def _words_of_substitution(lines: Sequence[str], row: int, kind: str, first: str) -> str:
    """The replacement text of a substitution.

    Parameters
    ----------
    lines : of the file
    row : that defines it
    kind : of the directive
    first : the text after the directive's name
    """
    if kind == 'image':
        return _alternative_behind(lines, row)
    if kind == 'unicode':
        return _characters_of(first)
    if kind != 'replace':
        return ''
    words = [first.strip()]
    for line in lines[row + 1 : row + _MOST_LINES]:
        if not line.strip() or not line[:1].isspace():
            break
        words.append(line.strip())
    return ' '.join(words).strip()


def _characters_of(codes: str) -> str:
    """The text of codes such as '0xA9', 'U+2014' and '&#x2014;'; other words stay."""
    parts = []
    for code in codes.partition(' .. ')[0].split():
        match = _CODE_POINT.fullmatch(code)
        number = int(match[1] or match[2], 16 if match[1] else 10) if match else 0
        parts.append(chr(number) if 0 < number < _SURROGATES or number > _SURROGATES_END else code)
    return ''.join(parts)


def _alternative_behind(lines: Sequence[str], row: int) -> str:
    """The alternative text among the options of a picture that begins in a row; '' for none."""
    for line in lines[row + 1 : row + _MOST_OPTIONS]:
        alternative = _ALTERNATIVE.match(line)
        if alternative is not None:
            return alternative_text(alternative[1])
        if not line[:1].isspace():
            break
    return ''


def plain_restructured(text: str, names: Names) -> str:
    """The words of a paragraph, which keeps its number of lines."""

    def words(match: re.Match[str]) -> str:
        plain = _words_of_mark(match, names)
        return plain + '\n' * (match[0].count('\n') - plain.count('\n'))

    return _MARK.sub(words, text)


def _words_of_mark(match: re.Match[str], names: Names) -> str:
    kind = match.lastgroup
    if match['text'] is not None:
        return _words_of_role(match)
    if kind == 'escaped':
        return match['escaped'].strip()
    if kind == 'substitution':
        return names.replaced.get(match['substitution'], match[0])
    if kind == 'reference':
        is_anonymous = match[0].endswith('__') and '_' in names.targets
        is_known = is_anonymous or match['reference'].lower() in names.targets
        return match['reference'] if is_known else match[0]
    return '' if kind is None else str(match[kind])


def _words_of_role(match: re.Match[str]) -> str:
    """The words of text between backticks, with a role before or after them."""
    text = match['text']
    behind = match['behind'] or ''
    role = match['before'] or (behind if behind.startswith(':') else '')
    name = role.strip(':').rpartition(':')[2]
    if name in _OF_CODE:
        return text
    is_link = bool(role or behind) and name not in _OF_WORDS
    if is_link and text.endswith('>') and '<' in text:
        words, _, target = text[:-1].rpartition('<')
        return words.strip() or target
    if not role:
        return text
    text = _ESCAPED.sub(r'\1', text)
    if name in _OF_WORDS:
        return text
    if _SHORTENED.fullmatch(text):
        return text[1:].rpartition('.')[2]
    if name in _OF_PYTHON:
        return text.lstrip('!.')
    if name == 'doc':
        return text.lstrip('/')
    return _PREFIXES.get(name, '') + text.lstrip('!')


def id_of_title(words: str) -> str:
    """The id of docutils.nodes.make_id."""
    plain = unicodedata.normalize('NFKD', words.lower()).encode('ascii', 'ignore').decode('ascii')
    return _NO_ID.sub('-', plain).lstrip('-0123456789').rstrip('-')
