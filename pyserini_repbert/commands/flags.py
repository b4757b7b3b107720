"""Flags that several commands have, here or as fields of PipelineSpec or Machine; checks and
records of outputs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from pyserini_repbert.commands import command
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import check_link, descriptor
from pyserini_repbert.fusion.methods import SETTINGS

if TYPE_CHECKING:
    from pyserini_repbert.ranking import Run
    from pyserini_repbert.record import Input, Model

_Name = TypeVar('_Name')
FORMULA = tuple(SETTINGS)
_STORE = {'action': 'store_true'}
_FLAGS: dict[str, dict[str, Any]] = {  # those that need no import of a spec
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
    'csv': {'metavar': 'FILE', 'help': 'write the values as CSV'},
    'plot': {'metavar': 'FILE', 'help': 'write a plot, .png, .pdf or .svg (needs matplotlib)'},
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
        'help': 'most CPU threads to use; default: $OMP_NUM_THREADS',
    },
    'workers': {
        'type': command.zero_or_more,
        'help': 'processes that tokenise, 0 for none; default: 0, with a GPU the number of cores '
        'less one, at most 8',
    },
    'offline': {**_STORE, 'help': 'never download'},
    'ray': {'metavar': 'ADDRESS', 'help': "run on a Ray cluster: HOST:PORT, or 'auto'"},
    'overwrite': {**_STORE, 'help': 'replace an existing output, once the new one is finished'},
}
# Options of commands: input files, and output files.
_INPUTS = (
    'run',
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
_OUTPUTS = ('output', 'provenance', 'pairs', 'cost', 'per_query', 'csv', 'plot')
# Options that are not settings: how a command runs, what else it writes, and checkpoints, which
# have their own entry.
_LEFT_OUT = frozenset(
    'command action shard shard_id shard_num finish quiet ray resume overwrite offline download '
    'build tag '
    'query output provenance cost pairs csv folder to_faiss install logs encoder model '
    'precision'.split()
)


def add_flags(
    parser: argparse._ActionsContainer, *names: str, of: Any = None, **changes: Any
) -> None:
    """Add flags by the names of their options: --rrf-k for `rrf_k`.

    Two names stand for several flags that exclude each other: `precision` and `begun` (--resume,
    --overwrite). Names are of this module and of fields of PipelineSpec and Machine, or of the
    settings `of`. `changes` are `flag`, another name of the flag, and keyword arguments of
    `add_argument`.
    """
    for name in names:
        if name == 'precision':
            group = parser.add_mutually_exclusive_group()
            text = 'what models compute in; auto: bfloat16 if the machine computes in it natively'
            choices = ('float32', 'bfloat16', 'float16', 'auto')
            group.add_argument('--precision', default='float32', choices=choices, help=text)
            for flag, value in (
                ('--fp16', 'float16'),
                ('--bf16', 'bfloat16'),
                ('--fp32', 'float32'),
            ):
                group.add_argument(
                    flag, action='store_const', const=value, dest=name, help=f'--precision {value}'
                )
        elif name == 'begun':
            group = parser.add_mutually_exclusive_group()
            group.add_argument('--resume', action='store_true', help='continue an interrupted run')
            add_flags(group, 'overwrite')
        else:
            settings = {
                **(_of_field(name, of) if of or name not in _FLAGS else _FLAGS[name]),
                **changes,
            }
            flags = [
                settings.pop('flag', f'--{name.replace("_", "-")}'),
                *settings.pop('flags', ()),
            ]
            parser.add_argument(*flags, dest=name, **settings)


def _of_field(name: str, of: Any) -> dict[str, Any]:
    """What `add_argument` needs to know of a field."""
    if of is None:
        from pyserini_repbert.pipeline.spec import Machine, PipelineSpec

        of = PipelineSpec if name in PipelineSpec.model_fields else Machine
    field = of.model_fields[name]
    said: dict[str, Any] = {
        'help': field.description,
        'default': field.default,
        **(field.json_schema_extra or {}),
    }
    if field.annotation is bool:
        return _STORE | said
    if get_origin(field.annotation) is Literal:
        return {'choices': get_args(field.annotation)} | said
    kinds = get_args(field.annotation) or [field.annotation]
    number = (
        command.positive_int if int in kinds else command.finite_number if float in kinds else None
    )
    if get_origin(field.annotation) is not tuple:
        return {'type': number or str} | said
    if number is None:
        return said | {'action': 'append', 'default': None}
    return said | {'nargs': '+', 'type': number, 'default': []}


def named_paths(texts: Sequence[str]) -> dict[str, str]:
    """name -> run file: 'BM25=runs/bm25.txt' names the run, else its name is the file's without
    suffixes.
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


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The options, with the tag of the run that is written.

    Raises InputError for an output that cannot be written, that is an input or another output, or
    that exists.
    """
    options = parser.parse_args(arguments)
    if hasattr(options, 'output_format') and options.output:
        from pyserini_repbert.data.runs import check_format, default_tag

        options.tag = options.tag or default_tag(options.output)
        check_format(options.output_format, options.tag)
    inputs = {
        path.resolve() for name in _INPUTS for path in _given(options, name) if path.is_file()
    }
    written: dict[Path, str] = {}
    for name in _OUTPUTS:
        flag = f'--{name.replace("_", "-")}'
        for path in _given(options, name):
            _check_name(path, name)
            if path.exists() and not path.is_file():
                continue  # a pipe or a device
            command.refuse(
                path.resolve() in inputs, f'{flag} {path} is an input, too: give another output'
            )
            other = written.setdefault(path.resolve(), flag)
            command.refuse(other != flag, f'{other} and {flag} are one file, {path}: give two')
            _check_replaced(path, options)
    return options


def _check_name(path: Path, name: str) -> None:
    """Raises InputError for an output file that cannot have this name."""
    from pyserini_repbert.evaluate.plots import figure_format, require_matplotlib

    if path.is_dir():
        raise InputError(f'output {path} is a folder, a file name was expected')
    check_link(path)
    if name == 'plot':
        figure_format(path)
        require_matplotlib()
    is_table = str(path).removesuffix('.gz').endswith(('.tsv', '.jsonl'))
    if name == 'provenance' and not is_table:
        raise InputError(
            f"provenance file '{path}': a name that ends in .tsv or .jsonl was expected"
        )


def _check_replaced(path: Path, options: argparse.Namespace) -> None:
    """Raises InputError for an output that exists, unless the command resumes or overwrites it."""
    if not path.exists() or descriptor(path) is not None:
        return
    if not options.overwrite and not getattr(options, 'resume', False):
        raise InputError(
            f'{path} exists: choose another output, or overwrite it', parameters=('overwrite',)
        )


def check_outside(output: str, corpus: str | None) -> None:
    """Raises InputError for an output folder inside the corpus folder, where it would be read as
    part of the corpus.
    """
    inside = (
        corpus
        and Path(corpus).is_dir()
        and Path(corpus).resolve() in Path(output).resolve().parents
    )
    command.refuse(inside, f'--output {output} lies in the corpus folder {corpus}: give another')


def _given(options: argparse.Namespace, name: str) -> Iterator[Path]:
    value = getattr(options, name, None)
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str):
            named = name == 'runs' and not os.path.exists(one)  # NAME=FILE, as evaluate takes them
            yield Path(one.partition('=')[2] or one if named else one)


def write_values(path: str | None, header: Sequence[str], values: Mapping[Any, Any]) -> None:
    """Write the file of --csv, if one is given: a row for each number in nested mappings, after
    its keys.
    """
    from pyserini_repbert.evaluate.tables import write_csv

    def rows(values: Mapping[Any, Any]) -> Iterator[tuple[object, ...]]:
        for key, value in values.items():
            nested = rows(value) if isinstance(value, Mapping) else [(f'{value:.6f}',)]
            yield from ((key, *row) for row in nested)

    if path:
        write_csv(path, header, rows(values))


def record_output(
    options: argparse.Namespace,
    output: str,
    roles: Iterable[str],
    models: Iterable[Model] = (),
    inputs: Sequence[Input] = (),
    rankers: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the record of the command that has written `output`; does nothing for a pipe or a
    device.

    `roles` are the options that name inputs. `inputs`, whose files cannot be found from their
    names, replace options of the same role. `rankers` are those of the user's own.
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
    settings = {
        name: plain(value) for name, value in sorted(vars(options).items()) if name not in apart
    }
    settings |= {'rankers': plain(rankers)} if rankers else {}
    write_record(
        output,
        Record(
            decisive(options.command), sha256, tuple(models), tuple(named), settings, versions()
        ),
    )
