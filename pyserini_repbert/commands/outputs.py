"""Outputs do not lie in an index: there, they would replace its files, or be in the next writer's
way.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import descriptor

# The options of all commands that name what is written.
_OUTPUTS = (
    'output',
    'provenance',
    'pairs',
    'cost',
    'per_query',
    'html',
    'csv',
    'plot',
    'to_faiss',
    'export',
    'export_topics',
    'export_qrels',
    'log_file',
    'confidence',
    'llm_answers',
    'tira',
)


def check_outputs_outside(options: argparse.Namespace) -> None:
    """Raise InputError for an output that lies in an index or a collection."""
    for name in _OUTPUTS:
        for path in _values(options, name):
            check_outside_indexes(path, f'--{name.replace("_", "-")}')


def check_outside_indexes(path: str, flag: str) -> None:
    """Raise InputError for the value of a flag, a path, that lies in an index or a collection."""
    if descriptor(path) is not None:
        return
    from pyserini_repbert.index.surrounding import surrounding_index

    folder = surrounding_index(path)
    if folder is not None:
        raise InputError(f'{flag} {path} lies in the index {folder}: give another output')


def _values(options: argparse.Namespace, name: str) -> Iterator[str]:
    """The paths that an option names."""
    value = getattr(options, name, None)
    values = value if isinstance(value, list) else [value]
    for path in values:
        if isinstance(path, str):
            yield path
