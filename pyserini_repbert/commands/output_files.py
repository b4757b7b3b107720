"""Checks, before any work is done, that a command's output files can be written and are none of its other files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.commands.command import usage
from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.figures import figure_format
from pyserini_repbert.trace import StageCost

# Options of commands: input files, and (below) output files.
_INPUTS = ('run', 'runs', 'reranked', 'reference', 'topics', 'qrels', 'corpus', 'from_pairs', 'scores', 'folds')
_LONGEST = 215  # bytes of a name; file systems take 255, and files written beside an output have longer names
_OUTPUTS = ('output', 'provenance', 'pairs', 'cost', 'per_query', 'csv', 'plot', 'html')


def add_value_files(parser: argparse.ArgumentParser) -> None:
    """Add --csv and --plot, for a command that measures and prints a table."""
    parser.add_argument('--csv', metavar='FILE', help='write the values as CSV')
    parser.add_argument('--plot', metavar='FILE', help='write a plot, .png, .pdf or .svg (needs matplotlib)')


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The options. Raises what `check_files` raises, and MissingDependencyError for a plot without matplotlib."""
    options = parser.parse_args(arguments)
    check_files(options)
    if getattr(options, 'plot', None):
        from pyserini_repbert.evaluate.figures import require_matplotlib

        require_matplotlib()
    return options


def write_values(path: str | None, header: Sequence[str], values: Mapping[Any, Any]) -> None:
    """Write the file of --csv, if one is given: a row for each number in nested mappings, after its keys."""
    from pyserini_repbert.evaluate.tables import write_csv

    if path:
        write_csv(path, header, _rows(values))


def _rows(values: Mapping[Any, Any]) -> Iterator[tuple[object, ...]]:
    for key, own in values.items():
        if isinstance(own, Mapping):
            yield from ((key, *row) for row in _rows(own))
        else:
            yield key, f'{own:.6f}'


def add_run_form(parser: argparse.ArgumentParser) -> None:
    """Add --output-format and --tag, for a command that writes a run; `run_tag` reads them."""
    parser.add_argument('--output-format', default='trec', choices=('trec', 'msmarco'), help='of the run file')
    parser.add_argument('--tag', '--runtag', help="the run's tag; by default the name of the output file")


def run_tag(options: argparse.Namespace) -> str:
    """The tag of the run that a command writes. Raises InputError for a tag that the run's format cannot hold."""
    from pyserini_repbert.data.runs import check_format, default_tag

    tag = options.tag or default_tag(options.output)
    check_format(options.output_format, tag)
    return tag


def check_files(options: argparse.Namespace) -> None:
    """Raises InputError for an output that cannot be written.

    That is an output that is a folder, the same file as an input or another output, or in an index's folder, one with
    too long a name, and a plot in an unknown format. Pipes, devices, and inputs that are names are not checked.
    """
    written: dict[Path, str] = {}
    for name in _OUTPUTS:
        for path in _given(options, name):
            check_name(path)
            if path.is_dir():
                raise InputError(f'output {path} is a folder, a file name was expected')
            if name == 'plot':
                figure_format(path)
            if path.exists() and not path.is_file():
                continue
            place = path.resolve()
            if place in written:
                raise usage(f'{_flag(written[place])} and {_flag(name)} are one file, {path}: give two')
            written[place] = name
    for name in _INPUTS:
        for path in _given(options, name):
            if path.is_file() and (output := written.get(path.resolve())):
                raise usage(f'{_flag(output)} and {_flag(name)} are one file, {path}: give another output')
    indexes = {name: list(_given(options, name)) for name in ('index', 'sparse')}
    for place, output in written.items():
        for name, folders in indexes.items():
            for folder in folders:
                if folder.is_dir() and folder.resolve() in place.parents:
                    raise usage(f'{_flag(output)} lies in {_flag(name)} {folder}: give another')


def check_name(output: str | Path) -> None:
    """Raises InputError for a name too long for the files written beside an output: its record, a temporary file."""
    size = len(os.fsencode(Path(output).name))
    if size > _LONGEST:
        raise InputError(f'output {str(output)[:60]}…: its name has {size} bytes, at most {_LONGEST} were expected')


def check_outside(output: str, corpus: str | None) -> None:
    """Raises InputError for an output folder inside the corpus folder, where it would be read as part of the corpus.

    Raises what `check_name` raises, too.
    """
    check_name(output)
    if corpus is not None and Path(corpus).is_dir() and Path(corpus).resolve() in Path(output).resolve().parents:
        raise usage(f'--output {output} lies in the corpus folder {corpus}, and would be read with it: give another')


def _given(options: argparse.Namespace, name: str) -> Iterator[Path]:
    value = getattr(options, name, None)
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and one != '-':
            one = one.partition('@')[2] or one if name == 'sparse' else one
            named = name == 'runs' and not os.path.exists(one)  # NAME=FILE, as evaluate takes them
            yield Path(one.partition('=')[2] or one if named else one)


def _flag(name: str) -> str:
    words = {'runs': 'a run', 'scores': 'the saved scores'}
    return words.get(name) or f'--{name.replace("_", "-")}'


def costs_text(costs: Sequence[StageCost]) -> str:
    """The costs as lines of text, one a stage, with a line of sums where there are several stages."""
    lines = []
    for cost in costs:
        n = cost.queries or 1
        parts = [f'{cost.inferences_per_query:.1f} inferences', f'{cost.seconds / n:.3f} s']
        if cost.tokens is not None:
            parts.insert(1, f'{cost.tokens / n:.0f} tokens')
        notes = [] if cost.precision is None else [cost.precision]
        if cost.stored:
            notes.append(f'{100 * cost.stored / cost.candidates:.1f}% of candidates by stored vectors')
        if cost.truncated_share is not None:
            among = ' of the others' if cost.stored else ' of candidates'
            notes.append(f'{100 * cost.truncated_share:.1f}%{among} truncated')
        lines.append('; '.join([f'{cost.stage}: {", ".join(parts)} a query over {cost.queries} queries', *notes]))
    if len(costs) > 1:
        inferences = sum(cost.inferences_per_query for cost in costs)
        seconds = sum(cost.seconds / (cost.queries or 1) for cost in costs)
        lines.append(f'all stages: {inferences:.1f} inferences, {seconds:.3f} s a query')
    return '\n'.join(lines)
