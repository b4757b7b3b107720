"""The prose of docstrings: text about computing and mathematics that is available wherever this
package runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

FEWEST_WORDS = 25  # of a docstring's prose
_RULE = re.compile(r'^\s*[-=~^]{3,}\s*$', re.MULTILINE)


def docstrings(roots: Iterable[tuple[str, Path]]) -> Iterator[tuple[str, str, str]]:
    """(module, name in words, prose) of docstrings with enough prose, without examples and
    parameters.

    Parameters
    ----------
    roots : (name, folder) of libraries
    """
    seen = set()
    for name, root in roots:
        for file in sorted(root.rglob('*.py')):
            part = file.relative_to(root)
            if any(
                step.startswith(('test', 'site-packages', 'idlelib', 'lib2to3'))
                for step in part.parts
            ):
                continue
            try:
                tree = ast.parse(file.read_text(encoding='utf-8'))
            except (SyntaxError, ValueError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    prose = _prose(ast.get_docstring(node) or '')
                    if len(prose.split()) >= FEWEST_WORDS and prose not in seen:
                        seen.add(prose)
                        called = part.stem if isinstance(node, ast.Module) else node.name
                        yield (
                            f'{name}/{part.with_suffix("")}',
                            ' '.join(re.findall(r'[A-Za-z]+', called)),
                            prose,
                        )


def _prose(docstring: str) -> str:
    blocks = [
        block for block in docstring.split('\n\n') if '>>>' not in block and not _RULE.search(block)
    ]
    return ' '.join(
        ' '.join(block for block in blocks if not re.match(r'\s*\w+ : ', block)).split()
    )
