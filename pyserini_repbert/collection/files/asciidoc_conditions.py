"""Which lines of AsciiDoc a page shows, as Asciidoctor decides by the attributes of the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

_DIRECTIVE = re.compile(r'(ifdef|ifndef|ifeval|endif)::([^\s\[]{0,200})\[(.{0,2000})\]\s*')
_ATTRIBUTE = re.compile(r':(!?)([\w-]{1,100})(!?):(?:[ \t]+(.*))?')
_COMPARISON = re.compile(r'\s*(\S.{0,500}?)\s*(==|!=|<=|>=|<|>)\s*(\S.{0,500}?)\s*')
_REFERENCE = re.compile(r'\{([\w-]{1,100})\}')
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    '==': eq,
    '!=': ne,
    '<': lt,
    '<=': le,
    '>': gt,
    '>=': ge,
}
# What Asciidoctor sets for a page.
_OF_PAGES = {
    'asciidoctor': '',
    'backend': 'html5',
    'backend-html5': '',
    'basebackend': 'html',
    'basebackend-html': '',
    'doctype': 'article',
    'doctype-article': '',
    'filetype': 'html',
    'filetype-html': '',
    'outfilesuffix': '.html',
}


def shown_lines(lines: Sequence[str]) -> list[str]:
    """As many lines as are given. Lines of branches that a page does not show are empty."""
    attributes = dict(_OF_PAGES)
    shown: list[str] = []
    # For each of the branches around a line, whether it is shown.
    branches: list[bool] = []
    for line in lines:
        words = line
        is_shown = all(branches)
        directive = _DIRECTIVE.fullmatch(line) if '::' in line else None
        if directive is None:
            if is_shown and line.startswith(':'):
                _set_attribute(attributes, line)
        elif directive[1] == 'endif':
            words = ''
            del branches[-1:]
        elif directive[1] != 'ifeval' and directive[3]:
            # The line that depends on the condition stands in the directive.
            words = directive[3] if _is_true(directive, attributes) else ''
        else:
            words = ''
            branches.append(_is_true(directive, attributes))
        shown.append(words if is_shown else '')
    return shown


def _set_attribute(attributes: dict[str, str], line: str) -> None:
    match = _ATTRIBUTE.fullmatch(line.rstrip())
    if match is None:
        return
    name = match[2].lower()
    if match[1] or match[3]:
        attributes.pop(name, None)
    else:
        attributes[name] = (match[4] or '').strip()


def _is_true(directive: re.Match[str], attributes: Mapping[str, str]) -> bool:
    if directive[1] == 'ifeval':
        return _holds(directive[3], attributes)
    names = directive[2].lower()
    if '+' in names:
        is_set = all(name in attributes for name in names.split('+'))
    else:
        is_set = any(name in attributes for name in names.split(','))
    return is_set == (directive[1] == 'ifdef')


def _holds(comparison: str, attributes: Mapping[str, str]) -> bool:
    """Whether a comparison holds; one that cannot be made does not."""
    match = _COMPARISON.fullmatch(comparison)
    if match is None:
        return False
    try:
        return _OPERATORS[match[2]](_value(match[1], attributes), _value(match[3], attributes))
    except TypeError:
        return False


def _value(text: str, attributes: Mapping[str, str]) -> object:
    """The text, the number or nothing that one side of a comparison is."""
    filled = _REFERENCE.sub(lambda match: attributes.get(match[1].lower(), ''), text)
    if len(filled) > 1 and filled[0] in '"\'' and filled[-1] == filled[0]:
        return filled[1:-1]
    try:
        return float(filled)
    except ValueError:
        return filled
