"""The flags of the commands `evaluate` that name runs, judgments and measures, and the runs that they name."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import progress
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pyserini_repbert.ranking import Run

DEFAULT_MEASURES = ('nDCG@10', 'MRR@10', 'R@1000')


def add_qrels(parser: argparse.ArgumentParser) -> None:
    """Add --qrels, for `load_qrels`."""
    parser.add_argument('--qrels', required=True, help='judgments: a file, or a name in the catalog or in Pyserini')


def add_measures(parser: argparse.ArgumentParser, default: Sequence[str] = DEFAULT_MEASURES) -> None:
    """Add --measures, for `parse_measures`."""
    parser.add_argument('--measures', nargs='+', default=default, help="in ir_measures' form: AP(rel=2)@1000")


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Add --runs, for `named_paths`."""
    parser.add_argument('--runs', nargs='+', required=True, metavar='RUN', help='run files, each as FILE or NAME=FILE')


def named_paths(texts: Sequence[str]) -> dict[str, str]:
    """name -> run file: 'BM25=runs/bm25.txt' names the run, else its name is the file's without suffixes.

    Raises InputError for two runs with one name.
    """
    from pathlib import Path

    from pyserini_repbert.data.runs import default_tag

    paths: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition('=')
        if not equals or Path(text).exists():
            name, path = default_tag(text), text
        if not name or name in paths:
            raise InputError(f"two runs have the name '{name}': tell them apart as NAME={path}")
        paths[name] = path
    return paths


def read_named(paths: Mapping[str, str], quiet: bool, depth: int | None = None) -> Iterator[tuple[str, Run]]:
    """(name, run) of each run file, with a progress bar; of each query the best `depth` hits, None: all."""
    from pyserini_repbert.data.runs import read_run

    with progress(len(paths), 'runs', 'run', quiet) as bar:
        for name, path in paths.items():
            yield name, read_run(path, depth)
            bar.update()
