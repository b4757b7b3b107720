"""griffe extension: turns this project's docstrings into numpydoc's form.

The types are in the signature.

`name : description` becomes `name` with the description below it, so that mkdocstrings takes the
type from the annotation. The text under Returns is moved below in the same way.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

NAMED = ('Parameters', 'Attributes')
UNNAMED = ('Returns', 'Yields')
_ITEM = re.compile(r'(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : (?P<text>.*)')


def as_numpydoc(docstring: str) -> str:
    """The docstring with the descriptions of its sections on separate lines.

    A paragraph below a list of parameters is moved before the first section, where numpydoc has
    prose.
    """
    writer = _Writer()
    lines = docstring.split('\n')
    for line, below in zip(lines, [*lines[1:], ''], strict=True):
        if below.startswith('---'):
            writer.section = line.strip()
        writer.write(line)
    return writer.text()


class _Writer:
    """Writes a docstring line by line: its prose, and then its sections."""

    def __init__(self) -> None:
        self.section = ''  # the heading of the lines that are written
        self._prose: list[str] = []
        self._sections: list[str] = []
        self._was_moved = False  # whether the last line went from a section to the prose

    def write(self, line: str) -> None:
        """Write a line where it belongs."""
        if self.section in UNNAMED and line != self.section:
            self._write_unnamed(line)
        elif self.section in NAMED and line != self.section:
            self._write_named(line)
        else:
            self._write_plain(line)

    def text(self) -> str:
        """All that was written."""
        self._end_paragraph()
        return '\n'.join([*self._prose, *self._sections])

    def _write_unnamed(self, line: str) -> None:
        if line.startswith('---'):
            self._sections += [line, ':']
        else:
            self._sections.append(f'    {line}' if line else line)

    def _write_named(self, line: str) -> None:
        item = _ITEM.fullmatch(line)
        if item:
            self._sections += [item['names'].replace('*', ''), f'    {item["text"]}']
        elif line and (self._was_moved or line[0].isupper()):
            self._prose.append(line)
            self._was_moved = True
        else:
            self._write_plain(line)

    def _write_plain(self, line: str) -> None:
        self._end_paragraph()
        (self._sections if self.section else self._prose).append(line)

    def _end_paragraph(self) -> None:
        """Put an empty line below a paragraph that was moved."""
        if self._was_moved:
            self._prose.append('')
        self._was_moved = False


class HouseDocstrings(Extension):
    """Rewrites docstrings as they are loaded."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = as_numpydoc(obj.docstring.value)
