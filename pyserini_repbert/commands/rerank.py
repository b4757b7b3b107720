"""`python -m pyserini_repbert.rerank`: rerank a run file, or make a run file from saved scores."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
from typing import Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags, parsed, record_output
from pyserini_repbert.commands.terminal import Bars, costs_text, say_device, stages_text
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import atomic_file
from pyserini_repbert.pipeline.spec import Machine, PipelineSpec
from pyserini_repbert.ranking import Ranker
from pyserini_repbert.trace import Notes

logger = logging.getLogger(__name__)


def main(arguments: list[str]) -> None:
    """Write the reranked run of models or of saved scores, and print what it cost."""
    parser = command.parser(
        'rerank', 'Rerank the hits of a run file, in one stage or several; report what it cost.'
    )
    add = parser.add_argument
    add('--run', help='the run file of the first stage')
    add_flags(parser, 'topics')
    add('--output', required=True, help='the run file to write')
    add_flags(parser, 'output_format', 'tag')
    add('--hits', type=command.positive_int, help='candidates written for each query; default: all')
    add_stage_arguments(parser, '--reranker')
    add_flags(parser, 'device', 'precision', 'threads', 'ray')
    passages = parser.add_mutually_exclusive_group()
    passages.add_argument(
        '--corpus', help="the passages: file, folder or name; default: by the run's record"
    )
    passages.add_argument('--index', help='the passages: an index that stores text')
    add('--download', action='store_true', help='fetch a prebuilt --index that is missing')
    add_flags(parser, 'corpus_format', 'fields')
    add(
        '--from-pairs',
        metavar='FILE.npz',
        help='rerank by the scores that --pairs saved, without a model',
    )
    add(
        '--k0',
        type=command.zero_or_more,
        help='with --from-pairs: candidates of the first reranker; default: all',
    )
    add(
        '--k1',
        type=command.zero_or_more,
        help='with --from-pairs: candidates compared in pairs; default: as saved',
    )
    add('--method', default='sum', help='with --from-pairs: sum, binary, min, max or sample')
    add('--samples', type=command.positive_int, help="with --from-pairs: m of method 'sample'")
    add(
        '--seed',
        type=command.whole_number,
        default=0,
        help="with --from-pairs: seed of method 'sample'",
    )
    add_flags(parser, 'begun', 'offline')
    options = parsed(parser, arguments)
    command.use_threads(options.threads)
    say_device(options)
    (_replay if options.from_pairs else _rerank)(options)


def add_stage_arguments(parser: argparse._ActionsContainer, flag: str) -> None:
    """Add the flags of a command that runs rerankers; `flag` is the one that names a stage."""
    add_flags(parser, 'stages', flag=flag)
    parser.add_argument(
        '--devices', metavar='D,D', help='share the queries between devices, as cuda:0,cuda:1'
    )
    add_flags(parser, 'backend', 'drop_rest', 'batch_tokens', 'workers')
    parser.add_argument(
        '--pairs', metavar='FILE.npz', help='save the scores, to try other settings without a model'
    )
    add_flags(parser, 'replay_k0')
    parser.add_argument('--cost', metavar='FILE.json', help='also write the cost report, as JSON')


def spec_of(options: argparse.Namespace, **changes: Any) -> tuple[PipelineSpec, Machine]:
    """What the flags ask for, and where it runs; `changes` are fields of the spec whose flags
    have another meaning.
    """
    from pyserini_repbert.models.tokenizer import usual_workers

    command.refuse(options.replay_k0 and not options.pairs, '--replay-k0 goes with --pairs')
    device = options.devices or options.device
    workers = (
        usual_workers(device) if options.topics and options.stages and options.ray is None else 0
    )
    given = vars(options) | {
        'workers': workers if options.workers is None else options.workers,
        'save_scores': bool(options.pairs),
        'devices': options.devices.split(',') if options.devices else [options.device],
        **changes,
    }
    fields = PipelineSpec.model_fields
    machine = Machine.model_fields
    spec = PipelineSpec.of({name: value for name, value in given.items() if name in fields})
    return spec, Machine.of({name: value for name, value in given.items() if name in machine})


def report(
    options: argparse.Namespace, rerankers: Ranker | None, notes: Notes, about: dict[str, Any]
) -> None:
    """Write the scores (--pairs) and the cost report (--cost) if asked for; print the cost, and
    what stages took.
    """
    from pyserini_repbert.pipeline.pipeline import Chain
    from pyserini_repbert.systems.duobert.saved_scores import write_saved_scores

    costs = [part.cost for part in notes.walk() if part.cost]
    stages = [cost.as_json() for cost in costs]
    if options.pairs:
        saved = [query for part in notes.walk() for query in part.kept.get('scores', {}).values()]
        write_saved_scores(options.pairs, saved, {**about, 'costs': stages})
    if options.cost:
        with atomic_file(options.cost) as stream:
            stream.write(json.dumps({'stages': stages}, indent=2) + '\n')
    print(costs_text(costs))
    if (
        isinstance(rerankers, Chain)
        and rerankers.times.seconds.get('computing')
        and not options.quiet
    ):
        print(stages_text(rerankers.times, rerankers.tokenizers), file=sys.stderr)


def _rerank(options: argparse.Namespace) -> None:
    whole = options.run and options.topics and options.stages
    command.refuse(not whole, 'a reranking takes --run, --topics and at least one --reranker')
    given = {word.partition('=')[0] for word in options.command}
    for flag in ('--k0', '--k1', '--method', '--samples', '--seed'):
        command.refuse(
            flag in given,
            f'{flag} is for --from-pairs; a stage has its own: NAME@K:sample=10,seed=1',
        )
    twice = options.ray is not None and options.devices
    command.refuse(
        twice, '--devices does not go with --ray, whose workers have a device each: give --device'
    )
    from pyserini_repbert.data.runs import read_run, write_run
    from pyserini_repbert.names.inputs import recorded_passages
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.opening import open_pipeline
    from pyserini_repbert.pipeline.part_file import finished
    from pyserini_repbert.pipeline.pipeline import run_pipeline
    from pyserini_repbert.pipeline.ray_workers import connected

    topics = load_topics(options.topics)
    run = read_run(options.run)
    if options.corpus is None and options.index is None:
        if (recorded := recorded_passages(options.run)) is None:
            raise InputError(
                f'{options.run} has no record that says where its passages are: give --corpus or '
                f'--index'
            )
        options.corpus = recorded.corpus
        options.index = recorded.index
        options.corpus_format = recorded.corpus_format
        options.fields = list(recorded.fields)
    spec, machine = spec_of(options, index=None, texts_index=options.index, ray=None)
    asked = {topic.qid for topic in topics}
    if run and not any(run.get(qid) for qid in asked):
        raise InputError(
            f'none of the {len(topics)} topics is a query of the run: give the topics it was made '
            f'for'
        )
    if unknown := len(run.keys() - asked):
        logger.warning('%d queries of the run are not among the topics: left out', unknown)
    about = {'passages': options.corpus or options.index, 'fields': options.fields}
    with contextlib.ExitStack() as held:
        if options.ray is not None:
            fleet = held.enter_context(
                connected(options.ray, options.threads, options.device not in ('cpu', 'auto'))
            )
            machine = machine.model_copy(update={'ray': fleet})
        opened = open_pipeline(spec, machine)
        held.enter_context(contextlib.closing(opened.pipeline))
        bars = held.enter_context(Bars(options))
        stored = (options.output, options.resume, options.overwrite, about)
        reranked = run_pipeline(opened.pipeline, topics, run, options.hits, bars, *stored)
    write_run(options.output, reranked, options.output_format, options.tag)
    record_output(
        options,
        options.output,
        ('run', 'topics', 'corpus', 'index'),
        opened.models,
        (),
        opened.rankers,
    )
    report(options, opened.pipeline.rerankers, bars, {'run': options.run, 'k1': spec.stages[-1].k})
    finished(options.output)


def _replay(options: argparse.Namespace) -> None:
    command.refuse(options.stages or options.run, '--from-pairs needs no --run and no --reranker')
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.systems.duobert.aggregation import checked_method
    from pyserini_repbert.systems.duobert.saved_scores import (
        read_saved_scores,
        replay,
    )

    checked_method(options.method, options.samples)
    queries, about = read_saved_scores(options.from_pairs)
    stages = ', '.join(stage.get('stage', '?') for stage in about.get('costs', []))
    run = {}
    for saved in queries:
        k0 = len(saved.scores) if options.k0 is None else options.k0
        k1 = (
            min(about.get('k1', len(saved.members)), len(saved.members))
            if options.k1 is None
            else options.k1
        )
        settings = command.picked(options, 'method', 'samples', 'seed', 'drop_rest')
        run[saved.qid] = replay(saved, k0, k1, **settings)[: options.hits]
    write_run(options.output, run, options.output_format, options.tag)
    record_output(options, options.output, ('from_pairs',))
    print(f'{options.output}: {len(run)} queries replayed from {options.from_pairs} ({stages})')
