"""The flags of fusion, which all commands that fuse share, and checks of its files."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyserini_repbert.commands.spec_flags import add_spec_flags
from pyserini_repbert.errors import InputError

FORMULA = ('alpha', 'weights', 'normalize', 'rrf_k')


def add_formula_arguments(parser: argparse._ActionsContainer) -> None:
    """Add --alpha, --weights, --normalize, --rrf-k and --depth, for a command that fuses."""
    from pyserini_repbert.pipeline.spec import PipelineSpec

    add_spec_flags(parser, PipelineSpec, *FORMULA, 'depth')


def formula(method: str, options: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `fusion.fuse` from the flags, which get what holds, for the record.

    Raises InputError for a flag that the method does not use.
    """
    from pyserini_repbert.pipeline.spec import PipelineSpec

    settings = PipelineSpec.of({'fusion': method} | {name: getattr(options, name) for name in FORMULA}).formula
    options.alpha, options.rrf_k = None if options.weights else settings['alpha'], settings['rrf_k']
    return settings


def check_provenance(path: str | None) -> None:
    """Raises InputError for a file name that ends neither in .tsv nor in .jsonl, .gz apart."""
    if path is not None and not path.removesuffix('.gz').endswith(('.tsv', '.jsonl')):
        raise InputError(f"provenance file '{path}': a name that ends in .tsv or .jsonl was expected")


def check_scores(method: str, paths: Iterable[str]) -> None:
    """Raises InputError for a run file without scores, or a pipe, if `method` is interpolation."""
    from pyserini_repbert.data.runs import RunFormat, run_format
    from pyserini_repbert.fusion.methods import FusionMethod

    for path in paths if method == FusionMethod.INTERPOLATION else ():
        if Path(path).exists() and not Path(path).is_file():
            raise InputError(f'run file {path} is a pipe, which interpolation would read twice: give a file')
        if run_format(path) is RunFormat.MSMARCO:
            raise InputError(f'run file {path} has no scores to interpolate: use --method interleave or rrf')
