"""The kinds of flags that name outputs.

Outputs must not be inside an index, where they would replace its files or disturb the next
writer.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import check_link, descriptor


class OutputPath(str):
    """The `type` of a flag that names what is written: a file or a folder."""


class OutputFile(OutputPath):
    """The `type` of a flag that names a file to write, which `flags.parse_flags` checks."""

    def check_name(self) -> None:
        """Raise InputError for an output file that cannot have this name."""
        path = Path(self)
        if path.is_dir():
            raise InputError(f'output {path} is a folder, a file name was expected')
        check_link(path)


class PlotFile(OutputFile):
    """The `type` of a flag that names a picture to draw."""

    def check_name(self) -> None:
        from pyserini_repbert.evaluate.plots import figure_format, require_matplotlib

        super().check_name()
        figure_format(Path(self))
        require_matplotlib()


class RanksFile(OutputFile):
    """The `type` of a flag that names a file of each hit's ranks."""

    def check_name(self) -> None:
        super().check_name()
        if not self.removesuffix('.gz').endswith(('.tsv', '.jsonl')):
            raise InputError(
                f"provenance file '{self}': a name that ends in .tsv or .jsonl was expected"
            )


_Output = TypeVar('_Output', bound=OutputPath)


def outputs_of(options: argparse.Namespace, kind: type[_Output]) -> Iterator[tuple[str, _Output]]:
    """The outputs of a kind that options name, each after its flag."""
    for name, value in vars(options).items():
        for output in value if isinstance(value, list) else [value]:
            if isinstance(output, kind):
                yield f'--{name.replace("_", "-")}', output


def check_outputs_outside(options: argparse.Namespace) -> None:
    """Raise InputError for an output that inside an index or a collection."""
    for flag, path in outputs_of(options, OutputPath):
        check_outside_indexes(path, flag)


def check_outside_indexes(path: str, flag: str) -> None:
    """Raise InputError for a flag's path that is inside an index or a collection."""
    if descriptor(path) is not None:
        return
    from pyserini_repbert.index.surrounding import surrounding_index

    folder = surrounding_index(path)
    if folder is not None:
        raise InputError(f'{flag} {path} lies in the index {folder}: give another output')
