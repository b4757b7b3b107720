"""Outputs must not be inside an index, where they would replace its files or disturb the next
writer.
"""

from __future__ import annotations

import argparse

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import descriptor

# The options that name a file to write, which `flags.parse_flags` checks.
OUTPUT_FILES = (
    'output',
    'provenance',
    'pairs',
    'cost',
    'per_query',
    'html',
    'csv',
    'plot',
    'confidence',
)
# The options of all commands that name outputs.
_OUTPUTS = (
    *OUTPUT_FILES,
    'to_faiss',
    'export',
    'export_topics',
    'export_qrels',
    'log_file',
    'llm_answers',
)


def check_outputs_outside(options: argparse.Namespace) -> None:
    """Raise InputError for an output inside an index or a collection."""
    for name in _OUTPUTS:
        for path in option_texts(options, name):
            check_outside_indexes(path, f'--{name.replace("_", "-")}')


def check_outside_indexes(path: str, flag: str) -> None:
    """Raise InputError for a flag's path that is inside an index or a collection."""
    if descriptor(path) is not None:
        return
    from pyserini_repbert.index.surrounding import surrounding_index

    folder = surrounding_index(path)
    if folder is not None:
        raise InputError(f'{flag} {path} is inside the index {folder}: give another output')


def option_texts(options: argparse.Namespace, name: str) -> list[str]:
    """The values of an option: several, one, or none."""
    value = getattr(options, name, None)
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]
