"""The kinds of flags that name outputs.

Outputs must not be inside an index, where they would replace its files or disturb the next
writer.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TypeVar

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import descriptor


class OutputPath(str):
    """The `type` of a flag that names what is written: a file or a folder."""


_Output = TypeVar('_Output', bound=OutputPath)


def outputs_of(options: argparse.Namespace, kind: type[_Output]) -> Iterator[tuple[str, _Output]]:
    """The outputs of a kind that options name, each after its flag."""
    for name, value in vars(options).items():
        for output in value if isinstance(value, list) else [value]:
            if isinstance(output, kind):
                yield f'--{name.replace("_", "-")}', output


def check_outputs_outside(options: argparse.Namespace) -> None:
    """Raise InputError for an output inside an index or a collection."""
    for flag, path in outputs_of(options, OutputPath):
        check_outside_indexes(path, flag)


def check_outside_indexes(path: str, flag: str) -> None:
    """Raise InputError for a flag's path that is inside an index or a collection."""
    if descriptor(path) is not None:
        return
    from pyserini_repbert.index.surrounding import surrounding_index

    folder = surrounding_index(path)
    if folder is not None:
        raise InputError(f'{flag} {path} is inside the index {folder}: give another output')
