"""What a command writes: checked before any work is done, with a record beside it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands.command import usage
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pyserini_repbert.record import Input, Model

# Options of commands: input files, and output files.
_INPUTS = ('run', 'runs', 'reranked', 'reference', 'topics', 'qrels', 'corpus', 'from_pairs', 'scores', 'folds')
_OUTPUTS = ('output', 'provenance', 'pairs', 'cost', 'per_query', 'csv', 'plot')
# Options that are not settings: how a command runs, what else it writes, and checkpoints, which have their own entry.
_LEFT_OUT = frozenset(
    'command action shard shard_id shard_num finish quiet ray resume overwrite offline download build advised tag '
    'query output provenance cost pairs csv folder to_faiss install logs encoder model precision'.split()
)


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The options. Raises InputError for an output that cannot be written, or that is an input or another output.

    Pipes, devices, and inputs that are names are not checked. A plot without matplotlib raises MissingDependencyError.
    """
    from pyserini_repbert.evaluate.plots import figure_format, require_matplotlib

    options = parser.parse_args(arguments)
    written: dict[Path, str] = {}
    for name in _OUTPUTS:
        for path in _given(options, name):
            if path.is_dir():
                raise InputError(f'output {path} is a folder, a file name was expected')
            if name == 'plot':
                figure_format(path)
            if name == 'provenance' and not str(path).removesuffix('.gz').endswith(('.tsv', '.jsonl')):
                raise InputError(f"provenance file '{path}': a name that ends in .tsv or .jsonl was expected")
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
    if getattr(options, 'plot', None):
        require_matplotlib()
    return options


def check_outside(output: str, corpus: str | None) -> None:
    """Raises InputError for an output folder inside the corpus folder, where it would be read as part of the corpus."""
    if corpus is not None and Path(corpus).is_dir() and Path(corpus).resolve() in Path(output).resolve().parents:
        raise usage(f'--output {output} lies in the corpus folder {corpus}, and would be read with it: give another')


def _given(options: argparse.Namespace, name: str) -> Iterator[Path]:
    value = getattr(options, name, None)
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and one != '-':
            named = name == 'runs' and not os.path.exists(one)  # NAME=FILE, as evaluate takes them
            yield Path(one.partition('=')[2] or one if named else one)


def _flag(name: str) -> str:
    words = {'runs': 'a run', 'scores': 'the saved scores'}
    return words.get(name) or f'--{name.replace("_", "-")}'


def run_tag(options: argparse.Namespace) -> str:
    """The tag of the run that a command writes. Raises InputError for a tag that the run's format cannot hold."""
    from pyserini_repbert.data.runs import check_format, default_tag

    tag = options.tag or default_tag(options.output)
    check_format(options.output_format, tag)
    return tag


def write_values(path: str | None, header: Sequence[str], values: Mapping[Any, Any]) -> None:
    """Write the file of --csv, if one is given: a row for each number in nested mappings, after its keys."""
    from pyserini_repbert.evaluate.tables import write_csv

    if path:
        write_csv(path, header, _rows(values))


def _rows(values: Mapping[Any, Any]) -> Iterator[tuple[object, ...]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from ((key, *row) for row in _rows(value))
        else:
            yield key, f'{value:.6f}'


def record_output(
    options: argparse.Namespace,
    output: str,
    roles: Iterable[str],
    models: Iterable[Model] = (),
    inputs: Sequence[Input] = (),
    rankers: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the record of the command that has written `output`; does nothing for a pipe or a device.

    Parameters
    ----------
    options : as parsed, with defaults that depend on other values filled in
    roles : options that name inputs
    models : the checkpoints that ran
    inputs : inputs whose files cannot be found from their names; they replace options of the same role
    rankers : what identifies rankers of the user's own
    """
    from pyserini_repbert.names.inputs import input_of
    from pyserini_repbert.record import Record, checksum, decisive, plain, versions, write_record

    if (sha256 := checksum(output)) is None:
        return
    known = {one.role for one in inputs}
    named = list(inputs)
    for role in roles:
        given = () if role in known else getattr(options, role, None) or ()
        named += [input_of(role, name) for name in ([given] if isinstance(given, str) else given)]
    apart = {*_LEFT_OUT, *known, *roles}
    settings = {name: plain(value) for name, value in sorted(vars(options).items()) if name not in apart}
    settings |= {'rankers': plain(rankers)} if rankers else {}
    record = Record(decisive(options.command), sha256, tuple(models), tuple(named), settings, versions())
    write_record(output, record)
