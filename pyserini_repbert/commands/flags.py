"""Flags that several commands have: each stands once, here or as a field of PipelineSpec or Machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pyserini_repbert.commands.command import finite_number, positive_int, progress, threads, utf8_text, zero_or_more
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from pyserini_repbert.ranking import Run

FORMULA = ('alpha', 'weights', 'normalize', 'rrf_k')
_STORE = {'action': 'store_true'}
_FLAGS: dict[str, dict[str, Any]] = {  # those that need no import of a spec
    'topics': {'help': "a TSV, TREC or JSON lines file, a catalog name, or one of Pyserini's names"},
    'qrels': {'required': True, 'help': 'judgments: a file, or a name in the catalog or in Pyserini'},
    'runs': {'nargs': '+', 'required': True, 'metavar': 'RUN', 'help': 'run files, each as FILE or NAME=FILE'},
    'measures': {
        'nargs': '+', 'default': ('nDCG@10', 'MRR@10', 'R@1000'), 'help': "as AP(rel=2)@1000, or by trec_eval's names"
    },
    'measure': {'help': "as AP(rel=2)@1000, or by trec_eval's name"},
    'hits': {'type': zero_or_more, 'default': 1000, 'help': 'hits to keep for each query, 0 for all'},
    'csv': {'metavar': 'FILE', 'help': 'write the values as CSV'},
    'plot': {'metavar': 'FILE', 'help': 'write a plot, .png, .pdf or .svg (needs matplotlib)'},
    'output_format': {'default': 'trec', 'choices': ('trec', 'msmarco'), 'help': 'format of the run file'},
    'tag': {'flags': ['--runtag'], 'help': "the run's tag; default: the name of the output file"},
    'corpus_format': {
        'default': 'auto', 'help': 'auto, jsonl, tsv, trec, trec-disks, clueweb, cedr, html, ir_datasets or lucene'
    },
    'fields': {'nargs': '+', 'default': [], 'help': 'text fields of JSON lines, to be joined by a space'},
    'on_error': {'default': 'refuse', 'choices': ('refuse', 'skip'), 'help': 'what to do with bad lines'},
    'query': {'required': True, 'type': utf8_text, 'metavar': 'TEXT', 'help': 'the query'},
    'device': {'default': 'auto', 'help': 'auto (a GPU if there is one), cpu, cuda, cuda:N or mps'},
    'threads': {'type': threads, 'help': 'most CPU threads to use; default: $OMP_NUM_THREADS'},
    'workers': {
        'type': zero_or_more,
        'help': 'processes that tokenise, 0 for none; default: 0, with a GPU the number of cores less one, at most 8',
    },
    'offline': {**_STORE, 'help': 'never download'},
    'ray': {'metavar': 'ADDRESS', 'help': "run on a Ray cluster: HOST:PORT, or 'auto'"},
    'overwrite': {**_STORE, 'help': 'replace an existing output, once the new one is finished'},
}  # fmt: skip


def add_flags(parser: argparse._ActionsContainer, *names: str, of: Any = None, **changes: Any) -> None:
    """Add flags by the names of their options: --rrf-k for `rrf_k`.

    Two names stand for several flags that exclude each other: `precision` and `begun` (--resume, --overwrite).

    Parameters
    ----------
    of : the settings whose fields the names are; None: PipelineSpec's and Machine's, and what stands here
    changes : `flag`, another name of the flag, and keyword arguments of `add_argument`
    """
    for name in names:
        if name == 'precision':
            _add_precision(parser)
        elif name == 'begun':
            group = parser.add_mutually_exclusive_group()
            group.add_argument('--resume', action='store_true', help='continue an interrupted run')
            add_flags(group, 'overwrite')
        else:
            settings = {**(_of_field(name, of) if of or name not in _FLAGS else _FLAGS[name]), **changes}
            flags = [settings.pop('flag', f'--{name.replace("_", "-")}'), *settings.pop('flags', ())]
            parser.add_argument(*flags, dest=name, **settings)


def _add_precision(parser: argparse._ActionsContainer) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        '--precision',
        choices=('float32', 'bfloat16', 'float16', 'auto'),
        help='what models compute in; default: float32; auto: bfloat16 if the machine computes in it natively',
    )
    for flag, name in (('--fp16', 'float16'), ('--bf16', 'bfloat16'), ('--fp32', 'float32')):
        group.add_argument(flag, action='store_const', const=name, dest='precision', help=f'--precision {name}')


def _of_field(name: str, of: Any) -> dict[str, Any]:
    """What `add_argument` needs to know of a field."""
    if of is None:
        from pyserini_repbert.pipeline.spec import Machine, PipelineSpec

        of = PipelineSpec if name in PipelineSpec.model_fields else Machine
    field: FieldInfo = of.model_fields[name]
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return {'help': field.description, **_form(field), **extra}


def _form(field: FieldInfo) -> dict[str, Any]:
    types: dict[Any, Any] = {int: positive_int, float: finite_number, str: str}
    kinds = [kind for kind in get_args(field.annotation) or [field.annotation] if kind is not type(None)]
    if field.annotation is bool:
        return dict(_STORE)
    if get_origin(field.annotation) is Literal:
        return {'choices': get_args(field.annotation), 'default': field.default}
    if get_origin(field.annotation) is tuple:
        numbers = next((types[kind] for kind in (int, float) if kind in kinds), None)
        return {'nargs': '+', 'type': numbers, 'default': []} if numbers else {'action': 'append'}
    return {'type': types.get(kinds[0], str), 'default': field.default}


def precision(options: argparse.Namespace) -> str:
    """The precision that the flags ask for; 'float32' by default, on every machine."""
    return options.precision or 'float32'


def named_paths(texts: Sequence[str]) -> dict[str, str]:
    """name -> run file: 'BM25=runs/bm25.txt' names the run, else its name is the file's without suffixes.

    Raises InputError for two runs with one name.
    """
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
