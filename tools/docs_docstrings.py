"""griffe extension: turns this project's docstrings, whose types are in the signature, into
numpydoc's form.

`name : description` becomes `name` with the description below it, so that mkdocstrings takes the
    type from the
annotation; likewise the text under Returns.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

NAMED = ('Parameters', 'Attributes')
UNNAMED = ('Returns', 'Yields')
_ITEM = re.compile(r'(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : (?P<text>.*)')


def as_numpydoc(docstring: str) -> str:
    """The docstring with the descriptions of its sections on lines of their own.

    A paragraph below a list of parameters is moved before the first section, where numpydoc has
    prose.
    """
    lines = docstring.split('\n')
    text: list[str] = []
    done: list[str] = []
    section = ''
    moved = False  # whether the line before was moved
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and lines[i + 1].startswith('---'):
            section = line.strip()
        item = _ITEM.fullmatch(line)
        if section in UNNAMED and line != section:
            done += [line, ':'] if line.startswith('---') else [f'    {line}' if line else line]
        elif section in NAMED and item:
            done += [item['names'].replace('*', ''), f'    {item["text"]}']
        elif section in NAMED and line and line != section and (moved or line[0].isupper()):
            text.append(line)
            moved = True
        else:
            text += [''] if moved else []
            moved = False
            (done if section else text).append(line)
    text += [''] if moved else []
    return '\n'.join([*text, *done])


class HouseDocstrings(Extension):
    """Rewrites docstrings as they are loaded."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = as_numpydoc(obj.docstring.value)
