"""The prose of docstrings.

It is about computing and mathematics, and available wherever this package runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

FEWEST_WORDS = 25  # of a docstring's prose
_RULE = re.compile(r'^\s*[-=~^]{3,}\s*$', re.MULTILINE)
_PARAMETER = re.compile(r'\s*\w+ : ')
# What the names of files and folders begin with that are left out.
_LEFT_OUT = ('test', 'site-packages', 'idlelib', 'lib2to3')


class Docstring(NamedTuple):
    """A docstring's prose, without examples and parameters.

    Attributes
    ----------
    module : 'LIBRARY/PATH' of its module
    title : in words, the name of what it documents
    """

    module: str
    title: str
    prose: str


def docstrings(roots: Iterable[tuple[str, Path]]) -> Iterator[Docstring]:
    """The docstrings with enough prose, each once.

    Parameters
    ----------
    roots : (name, folder) of libraries
    """
    seen = set()
    for name, root in roots:
        for file in sorted(root.rglob('*.py')):
            path = file.relative_to(root)
            if any(part.startswith(_LEFT_OUT) for part in path.parts):
                continue
            for node in _documented(file):
                prose = _prose(ast.get_docstring(node) or '')
                if len(prose.split()) >= FEWEST_WORDS and prose not in seen:
                    seen.add(prose)
                    called = path.stem if isinstance(node, ast.Module) else node.name
                    title = ' '.join(re.findall(r'[A-Za-z]+', called))
                    yield Docstring(f'{name}/{path.with_suffix("")}', title, prose)


def _documented(file: Path) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef]:
    """The module, classes and functions of a file; none of one that is not Python in UTF-8."""
    try:
        tree = ast.parse(file.read_text(encoding='utf-8'))
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield node


def _prose(docstring: str) -> str:
    """A docstring in one line, without examples, tables and parameters."""
    paragraphs = []
    for block in docstring.split('\n\n'):
        is_prose = '>>>' not in block and not _RULE.search(block)
        if is_prose and not _PARAMETER.match(block):
            paragraphs.append(block)
    return ' '.join(' '.join(paragraphs).split())
