"""Flags that several commands have, here or as fields of PipelineSpec or Machine; checks and
records of outputs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from pyserini_repbert.commands import command
from pyserini_repbert.commands.outputs import OutputPath, outputs_of
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import check_link, descriptor
from pyserini_repbert.fusion.methods import ALPHA, SETTINGS

if TYPE_CHECKING:
    from pyserini_repbert.pipeline.spec import PipelineSpec
    from pyserini_repbert.ranking import Run
    from pyserini_repbert.record import Input, Model


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


_Name = TypeVar('_Name')
FUSION_SETTINGS = tuple(SETTINGS)
_STORE = {'action': 'store_true'}
# The flags that need no import of a spec.
_FLAGS: dict[str, dict[str, Any]] = {
    'topics': {
        'help': "a TSV, TREC or JSON lines file, a catalog name, or one of Pyserini's names"
    },
    'qrels': {
        'required': True,
        'help': 'judgments: a file, or a name in the catalog or in Pyserini',
    },
    'runs': {
        'nargs': '+',
        'required': True,
        'metavar': 'RUN',
        'help': 'run files, each as FILE or NAME=FILE',
    },
    'measures': {
        'nargs': '+',
        'default': ('nDCG@10', 'MRR@10', 'R@1000'),
        'help': "as AP(rel=2)@1000, or by trec_eval's names",
    },
    'measure': {'help': "as AP(rel=2)@1000, or by trec_eval's name"},
    'hits': {
        'type': command.zero_or_more,
        'default': 1000,
        'help': 'hits to keep for each query, 0 for all',
    },
    'csv': {
        'type': OutputFile,
        'metavar': 'FILE',
        'help': 'write the values as CSV; default: beside --plot, if given',
    },
    'plot': {
        'type': PlotFile,
        'metavar': 'FILE',
        'help': 'draw .png, .pdf or .svg, one column of a paper wide (needs matplotlib)',
    },
    'output_format': {
        'default': 'trec',
        'choices': ('trec', 'msmarco'),
        'help': 'format of the run file',
    },
    'tag': {'flags': ['--runtag'], 'help': "the run's tag; default: the name of the output file"},
    'corpus_format': {
        'default': 'auto',
        'help': 'auto, jsonl, tsv, trec, trec-disks, clueweb, cedr, text, html, ir_datasets or '
        'lucene',
    },
    'fields': {
        'nargs': '+',
        'default': [],
        'help': 'text fields of JSON lines, to be joined by a space',
    },
    'on_error': {
        'default': 'refuse',
        'choices': ('refuse', 'skip'),
        'help': 'what to do with bad lines',
    },
    'query': {'required': True, 'type': command.utf8_text, 'metavar': 'TEXT', 'help': 'the query'},
    'device': {'default': 'auto', 'help': 'auto (a GPU if there is one), cpu, cuda, cuda:N or mps'},
    'threads': {
        'type': command.threads,
        'help': 'CPU threads to use at most; default: $OMP_NUM_THREADS',
    },
    'workers': {
        'type': command.zero_or_more,
        'help': 'processes that tokenise, 0 for none; default: 0; with a GPU, the number '
        'of cores minus one, at most 8',
    },
    'offline': {**_STORE, 'help': 'never download'},
    'ray': {'metavar': 'ADDRESS', 'help': "run on a Ray cluster: HOST:PORT, or 'auto'"},
    'overwrite': {**_STORE, 'help': 'replace an existing output, once the new one is finished'},
}
# Options that name input files.
_INPUTS = (
    'run',
    'add',
    'skeleton',
    'runs',
    'reranked',
    'reference',
    'topics',
    'qrels',
    'corpus',
    'from_pairs',
    'scores',
    'folds',
)
# Options that are not settings of a record: how a command runs, what else it writes, and
# checkpoints, which have their own entry.
_LEFT_OUT = frozenset(
    'command action shard shard_id shard_num finish quiet ray resume overwrite offline download '
    'build tag query output provenance cost pairs csv folder to_faiss install logs encoder model '
    'precision'.split()
)


def add_flags(
    parser: argparse._ActionsContainer, *names: str, of: Any = None, **changes: Any
) -> None:
    """Add flags by the names of their options: --rrf-k for `rrf_k`.

    Two names mean several flags that exclude each other: `precision` and `begun` (--resume,
    --overwrite).

    Parameters
    ----------
    parser : gets the flags
    names : names of this module, and of fields of PipelineSpec and Machine, or of `of`
    of : settings whose fields are flags
    changes : `flag`, another name of the flag, and keyword arguments of `add_argument`
    """
    for name in names:
        if name == 'precision':
            _add_precision(parser)
        elif name == 'begun':
            group = parser.add_mutually_exclusive_group()
            group.add_argument('--resume', action='store_true', help='continue an interrupted run')
            add_flags(group, 'overwrite')
        elif of is None and name in _FLAGS:
            _add_flag(parser, name, _FLAGS[name] | changes)
        else:
            _add_flag(parser, name, _field_settings(name, of) | changes)


def _add_flag(parser: argparse._ActionsContainer, name: str, settings: Mapping[str, Any]) -> None:
    """Add one flag; `settings` are `flag`, `flags`, and keyword arguments of `add_argument`."""
    keywords = dict(settings)
    first = keywords.pop('flag', f'--{name.replace("_", "-")}')
    others = keywords.pop('flags', ())
    parser.add_argument(first, *others, dest=name, **keywords)


def _add_precision(parser: argparse._ActionsContainer) -> None:
    """Add --precision, and the short flags for its values."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        '--precision',
        default='float32',
        choices=('float32', 'bfloat16', 'float16', 'auto'),
        help='number format in which models compute; auto: bfloat16 if it is faster on this '
        'machine',
    )
    for flag, value in {'--fp16': 'float16', '--bf16': 'bfloat16'}.items():
        group.add_argument(
            flag, action='store_const', const=value, dest='precision', help=f'--precision {value}'
        )


def _field_settings(name: str, of: Any) -> dict[str, Any]:
    """What `add_argument` needs to know of a field of PipelineSpec or Machine, or of `of`."""
    if of is None:
        from pyserini_repbert.indexes.machine import Machine
        from pyserini_repbert.pipeline.spec import PipelineSpec

        of = PipelineSpec if name in PipelineSpec.model_fields else Machine
    field = of.model_fields[name]
    given = {'help': field.description, 'default': field.default, **(field.json_schema_extra or {})}
    if field.annotation is bool:
        return _STORE | given
    kinds = get_args(field.annotation) or (field.annotation,)
    for kind in (field.annotation, *kinds):
        if get_origin(kind) is Literal:
            return {'choices': get_args(kind)} | given
    text = OutputPath if OutputPath in field.metadata else str
    number = _number_type(kinds)
    if get_origin(field.annotation) is not tuple:
        return {'type': number or text} | given
    if number is None and 'nargs' not in given:
        return given | {'action': 'append', 'default': None}
    return given | {'nargs': '+', 'type': number or str, 'default': []}


def _number_type(kinds: Sequence[Any]) -> Callable[[str], Any] | None:
    """What reads a value of these types, if it is a number."""
    if int in kinds:
        return command.positive_int
    return command.finite_number if float in kinds else None


def named_paths(texts: Sequence[str]) -> dict[str, str]:
    """name -> run file: 'BM25=runs/bm25.txt' names the run, otherwise its name is the file's
    without suffixes.
    """
    from pyserini_repbert.data.runs import default_tag

    paths: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition('=')
        if not equals or Path(text).exists():
            name = default_tag(text)
            path = text
        if not name or name in paths:
            raise InputError(f"two runs have the name '{name}': tell them apart as NAME={path}")
        paths[name] = path
    return paths


def read_named(
    paths: Mapping[_Name, str], quiet: bool, depth: int | None = None
) -> Iterator[tuple[_Name, Run]]:
    """(name, run) of each run file, with a progress bar; of each query the best `depth` hits,
    None: all.
    """
    from pyserini_repbert.data.runs import read_run

    with command.progress(len(paths), 'runs', 'run', quiet) as bar:
        for name, path in paths.items():
            yield name, read_run(path, depth)
            bar.update()


def parse_flags(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The options, with the tag of the run that is written.

    Raises InputError for an output that cannot be written, that is an input or another output, or
    that exists.
    """
    options = parser.parse_args(arguments)
    if hasattr(options, 'output_format') and options.output:
        from pyserini_repbert.data.runs import check_format, default_tag

        options.tag = options.tag or default_tag(options.output)
        check_format(options.output_format, options.tag)
    if getattr(options, 'plot', None) and getattr(options, 'csv', None) is None:
        options.csv = _csv_beside(Path(options.plot))
    _check_outputs(options)
    return options


def _csv_beside(plot: Path) -> OutputFile | None:
    """The file of the values that a plot shows; None if the plot goes to a pipe."""
    if plot.exists() and not plot.is_file():
        return None
    return OutputFile(plot.with_suffix('.csv'))


def _check_outputs(options: argparse.Namespace) -> None:
    """Raise InputError for an output file that cannot be written, or must not be."""
    inputs: set[Path] = set()
    for name in _INPUTS:
        inputs.update(path.resolve() for path in _input_paths(options, name) if path.is_file())
    flag_of: dict[Path, str] = {}
    for flag, output in outputs_of(options, OutputFile):
        output.check_name()
        path = Path(output)
        is_pipe = path.exists() and not path.is_file()
        if is_pipe:
            continue
        command.refuse(
            path.resolve() in inputs, f'{flag} {path} is an input, too: give another output'
        )
        other = flag_of.setdefault(path.resolve(), flag)
        command.refuse(other != flag, f'{other} and {flag} are one file, {path}: give two')
        _check_replaced(path, options)


def _input_paths(options: argparse.Namespace, name: str) -> Iterator[Path]:
    """The paths that an option names: several, one, or none."""
    value = getattr(options, name, None)
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str):
            continue
        if name == 'runs' and not os.path.exists(text):
            # NAME=FILE, as evaluate takes them.
            yield Path(text.partition('=')[2] or text)
        else:
            yield Path(text)


def _check_replaced(path: Path, options: argparse.Namespace) -> None:
    """Raise InputError for an output that exists, unless the command resumes or overwrites it."""
    if not path.exists() or descriptor(path) is not None:
        return
    if not options.overwrite and not getattr(options, 'resume', False):
        raise InputError(
            f'{path} exists: choose another output, or overwrite it', parameters=('overwrite',)
        )


def used_fusion(spec: PipelineSpec) -> dict[str, Any]:
    """The settings of fusion that are used, by the names of their flags, for the record.

    Raises InputError for a setting of another method.
    """
    settings = spec.fusion_settings
    alpha = None
    if not spec.weights:
        alpha = ALPHA if spec.alpha is None else spec.alpha
    return {'alpha': alpha, 'rrf_k': settings.rrf_k, 'normalize': str(settings.normalize)}


def check_outside(output: str, corpus: str | None, flag: str = '--output') -> None:
    """Raise InputError for an output folder inside the corpus folder, where it would be read as
    part of the corpus.

    `flag` is the one that names the output.
    """
    if not corpus or not Path(corpus).is_dir():
        return
    is_inside = Path(corpus).resolve() in Path(output).resolve().parents
    command.refuse(is_inside, f'{flag} {output} is inside the corpus folder {corpus}: give another')


def write_values(path: str | None, header: Sequence[str], values: Mapping[Any, Any]) -> None:
    """Write the file of --csv, if one is given: a row for each number in nested mappings, after
    its keys.
    """
    from pyserini_repbert.evaluate.tables import write_csv

    if path:
        write_csv(path, header, _value_rows(values))


def _value_rows(values: Mapping[Any, Any]) -> Iterator[tuple[object, ...]]:
    """The keys of each number in nested mappings, then the number."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            for row in _value_rows(value):
                yield (key, *row)
        else:
            yield (key, f'{value:.6f}')


def _precision_reason(device: str) -> str:
    """Why '--precision auto' chooses its precision on the device of a flag."""
    from pyserini_repbert.models.precision import auto_reason, usable_device

    return auto_reason(usable_device(device))


def record_output(
    options: argparse.Namespace,
    output: str,
    roles: Iterable[str],
    models: Iterable[Model] = (),
    inputs: Sequence[Input] = (),
    rankers: Sequence[Mapping[str, Any]] = (),
    used: Mapping[str, Any] | None = None,
) -> None:
    """Write the record of the command that has written `output`; does nothing for a pipe or a
    device.

    Parameters
    ----------
    options : the command's flags
    output : the file or folder that it has written
    roles : options that name inputs
    models : the checkpoints that it used
    inputs : inputs whose files cannot be found from their names; they replace options of the same
        role
    rankers : what identifies rankers of the user's own
    used : the values of flags that a user did not set, or whose meaning was resolved
    """
    from pyserini_repbert.record import (
        CODE,
        Record,
        checksum,
        code_version,
        decisive,
        plain,
        versions,
        write_record,
    )

    sha256 = checksum(output)
    if sha256 is None:
        return
    roles = list(roles)
    known = {entry.role for entry in inputs}
    by_option = _inputs_of(options, [role for role in roles if role not in known])
    apart = {*_LEFT_OUT, *known, *roles}
    values = {**vars(options), **(used or {})}
    settings = {name: plain(value) for name, value in sorted(values.items()) if name not in apart}
    if rankers:
        settings['rankers'] = plain(rankers)
    models = tuple(models)
    if models and values.get('precision') == 'auto':
        settings['precision_reason'] = _precision_reason(str(values.get('device') or 'cpu'))
    record = Record(
        decisive(options.command),
        sha256,
        models,
        (*inputs, *by_option),
        settings,
        {**versions(), CODE: code_version()},
    )
    write_record(output, record)


def _inputs_of(options: argparse.Namespace, roles: Iterable[str]) -> list[Input]:
    """The inputs that options name."""
    from pyserini_repbert.names.inputs import input_of

    inputs = []
    for role in roles:
        value = getattr(options, role, None) or ()
        names = [value] if isinstance(value, str) else value
        inputs += [input_of(role, name) for name in names]
    return inputs
