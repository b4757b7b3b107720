"""A program's source in blocks, such as functions, so that one of them can answer a question.

No language is parsed: empty lines and indentation say where a block ends.
"""

from __future__ import annotations

import re

from pyserini_repbert.data.origins import TextSpan

_WORD = re.compile(r'\w')


def code_blocks(text: str, start: int, end: int) -> list[TextSpan]:
    """The blocks of `text[start:end]`, in order; together they are all of it.

    A block begins after an empty line, with a line that is not indented, or less than the last
    line before, or that follows a line of brackets alone. So a function stays whole, and a method
    is a block.
    """
    starts = [start]
    position = start
    before = ''
    is_after_empty = False
    for line in text[start:end].splitlines(keepends=True):
        if line.strip():
            if is_after_empty and before and _begins_block(before, line):
                starts.append(position)
            before = line
        is_after_empty = not line.strip()
        position += len(line)
    ends = [*starts[1:], end]
    return [TextSpan(*span) for span in zip(starts, ends, strict=True)]


def _begins_block(before: str, line: str) -> bool:
    """Whether a line begins a block, where empty lines part it from the last one before."""
    indentation = _indentation(line)
    return indentation == 0 or indentation < _indentation(before) or not _WORD.search(before)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
