"""What `search` and `rerank` share: the flags of rerankers, the spec that flags ask for, Ray, and
the report of what reranking cost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import Any

from pyserini_repbert.commands.flags import OutputFile, add_flags
from pyserini_repbert.commands.terminal import costs_text, stages_text
from pyserini_repbert.files import atomic_file
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.trace import Notes


def add_stage_arguments(parser: argparse._ActionsContainer, flag: str) -> None:
    """Add the flags of a command that runs rerankers; `flag` is the one that names a stage."""
    add = parser.add_argument
    add_flags(parser, 'stages', flag=flag)
    add('--devices', metavar='D,D', help='share the queries between devices, such as cuda:0,cuda:1')
    add_flags(parser, 'backend', 'drop_rest', 'workers')
    add(
        '--cost',
        type=OutputFile,
        metavar='FILE.json',
        help='also write the cost report, as JSON',
    )


def spec_of(options: argparse.Namespace, **changes: Any) -> tuple[PipelineSpec, Machine]:
    """What the flags ask for, and where it runs; `changes` are fields of the spec whose flags
    have another meaning.
    """
    values = vars(options) | {
        'devices': options.devices.split(',') if options.devices else [options.device],
        'workers': _workers(options),
        **changes,
    }
    spec = {name: value for name, value in values.items() if name in PipelineSpec.model_fields}
    machine = {name: value for name, value in values.items() if name in Machine.model_fields}
    return PipelineSpec.of(spec), Machine.of(machine)


def _workers(options: argparse.Namespace) -> int:
    """How many processes tokenise for rerankers, if --workers does not say: none for questions,
    and on Ray.
    """
    if options.workers is not None:
        return int(options.workers)
    if not options.topics or not options.stages or options.ray is not None:
        return 0
    from pyserini_repbert.models.tokenizer import usual_workers

    return usual_workers(options.devices or options.device)


def connect_to_ray(
    options: argparse.Namespace, machine: Machine, held: contextlib.ExitStack
) -> Machine:
    """The machine, connected to the Ray cluster if one is named; `held` ends the connection."""
    if options.ray is None:
        return machine
    from pyserini_repbert.pipeline.ray_workers import ray_worker_pool

    on_gpus = options.device not in ('cpu', 'auto')
    cluster = held.enter_context(ray_worker_pool(options.ray, options.threads, on_gpus))
    return machine.model_copy(update={'ray': cluster})


def report(options: argparse.Namespace, rerankers: Ranker | None, notes: Notes) -> None:
    """Write the cost report (--cost) if asked for; print the cost, and what stages took.

    Parameters
    ----------
    options : the command's flags
    rerankers : the pipeline's
    notes : what the pipeline reported
    """
    from pyserini_repbert.pipeline.pipeline import RerankerChain

    costs = [part.cost for part in notes.walk() if part.cost]
    if options.cost:
        stages = [cost.as_json() for cost in costs]
        with atomic_file(options.cost) as stream:
            stream.write(json.dumps({'stages': stages}, indent=2) + '\n')
    print(costs_text(costs))
    if options.quiet or not isinstance(rerankers, RerankerChain):
        return
    if rerankers.times.seconds.get('computing'):
        print(stages_text(rerankers.times, rerankers.tokenizers), file=sys.stderr)
