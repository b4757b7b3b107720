"""griffe extension: turns this project's docstrings, whose types are in the signature, into numpydoc's form.

`name : description` becomes `name` with the description below it, so that mkdocstrings takes the type from the
annotation; likewise the text under Returns.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

NAMED, UNNAMED = ('Parameters', 'Attributes'), ('Returns', 'Yields')
_ITEM = re.compile(r'(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : (?P<text>.*)')


def as_numpydoc(docstring: str) -> str:
    """The docstring with the descriptions of its sections on lines of their own.

    A sentence below a list of parameters is moved before the first section, where numpydoc has prose.
    """
    lines = docstring.split('\n')
    text: list[str] = []
    done: list[str] = []
    section = ''
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and lines[i + 1].startswith('---'):
            section = line.strip()
        item = _ITEM.fullmatch(line)
        if section in UNNAMED and line != section:
            done += [line, ':'] if line.startswith('---') else [f'    {line}' if line else line]
        elif section in NAMED and item:
            done += [item['names'].replace('*', ''), f'    {item["text"]}']
        elif section in NAMED and line[:1].isupper() and line != section:
            text += [line, '']
        else:
            (done if section else text).append(line)
    return '\n'.join([*text, *done])


class HouseDocstrings(Extension):
    """Rewrites docstrings as they are loaded."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = as_numpydoc(obj.docstring.value)
