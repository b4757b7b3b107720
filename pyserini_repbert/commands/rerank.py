"""`python -m pyserini_repbert.rerank`: rerank a run file, or make a run file from saved scores."""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import OutputFile, add_flags, parse_flags, record_output
from pyserini_repbert.commands.parts import recorded_by_parts
from pyserini_repbert.commands.reranking import (
    add_stage_arguments,
    connect_to_ray,
    report,
    spec_of,
)
from pyserini_repbert.commands.terminal import ProgressBars, say_device
from pyserini_repbert.errors import InputError
from pyserini_repbert.extension import add_flags_of, parts_of
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Ranker, Run
from pyserini_repbert.trace import Notes

logger = logging.getLogger(__name__)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser(
        'rerank', 'Rerank the hits of a run file, in one stage or several; report what it cost.'
    )
    add = parser.add_argument
    add('--run', help='the run file of the first stage')
    add_flags(parser, 'topics')
    add('--output', required=True, type=OutputFile, help='the run file to write')
    add_flags(parser, 'output_format', 'tag')
    add('--hits', type=command.positive_int, help='candidates written for each query; default: all')
    add_stage_arguments(parser, '--reranker')
    add(
        '--pairs',
        type=OutputFile,
        metavar='FILE.npz',
        help='save the scores, to try other settings without a model',
    )
    add_flags(parser, 'replay_k0')
    add_flags(parser, 'device', 'precision', 'batch_tokens', 'threads', 'ray')
    passages = parser.add_mutually_exclusive_group()
    passages.add_argument(
        '--corpus',
        help="the passages: file, folder or name; default: the corpus that the run's record names",
    )
    passages.add_argument('--index', help='the passages: an index that stores text')
    add('--download', action='store_true', help='download a missing prebuilt --index')
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
    add_flags_of('rerank', parser)
    return parser


def _check_flags(options: argparse.Namespace) -> None:
    """Raise InputError for flags that do not go together: of models, and of saved scores."""
    if options.from_pairs:
        command.refuse(
            options.stages or options.run, '--from-pairs needs no --run and no --reranker'
        )
        return
    is_whole = options.run and options.topics and options.stages
    command.refuse(not is_whole, 'a reranking takes --run, --topics and at least one --reranker')
    given = {word.partition('=')[0] for word in options.command}
    for flag in ('--k0', '--k1', '--method', '--samples', '--seed'):
        command.refuse(
            flag in given,
            f'{flag} is for --from-pairs; a stage has its own: NAME@K:sample=10,seed=1',
        )
    command.refuse(
        options.replay_k0 and not options.pairs, '--replay-k0 goes with --pairs: give both'
    )
    command.refuse(
        options.ray is not None and options.devices,
        '--devices does not go with --ray, whose workers have a device each: give --device',
    )
    for part in parts_of('rerank'):
        part.check(options)


def main(arguments: list[str]) -> None:
    """Write the reranked run of models or of saved scores, and print what it cost."""
    options = parse_flags(make_parser(), arguments)
    _check_flags(options)
    command.use_threads(options.threads)
    if options.from_pairs:
        _replay(options)
    else:
        say_device(options)
        _rerank(options)


def _rerank(options: argparse.Namespace) -> None:
    """Rerank a run with models."""
    from pyserini_repbert.data.runs import read_run, write_run
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.opening import open_pipeline
    from pyserini_repbert.pipeline.part_file import finished
    from pyserini_repbert.pipeline.pipeline import run_pipeline

    topics = load_topics(options.topics)
    run = read_run(options.run)
    if options.corpus is None and options.index is None:
        _find_passages(options)
    spec, machine = spec_of(
        options, index=None, texts_index=options.index, save_scores=bool(options.pairs)
    )
    _check_topics(topics, run)
    with contextlib.ExitStack() as held:
        machine = connect_to_ray(options, machine, held)
        opened = open_pipeline(spec, machine)
        pipeline = opened.pipeline
        held.enter_context(contextlib.closing(pipeline))
        _check_scores(options.run, pipeline)
        recorded = opened.recorded()
        bars = held.enter_context(ProgressBars(options))
        reranked = run_pipeline(
            pipeline,
            topics,
            run,
            options.hits,
            bars,
            output=options.output,
            resume=options.resume,
            overwrite=options.overwrite,
            about=_about_passages(options),
        )
    write_run(options.output, reranked, options.output_format, options.tag)
    record_output(
        options,
        options.output,
        ('run', 'topics', 'corpus', 'index'),
        models=recorded.models,
        rankers=recorded.rankers,
        used=recorded_by_parts('rerank', bars),
    )
    if options.pairs:
        _write_scores(options, spec, bars)
    report(options, pipeline.rerankers, bars)
    finished(options.output)


def _write_scores(options: argparse.Namespace, spec: PipelineSpec, notes: Notes) -> None:
    """Write the scores that rerankers reported."""
    from pyserini_repbert.systems.duobert.saved_scores import LAST_DEPTH, write_saved_scores

    saved: list[Any] = []
    costs = []
    for part in notes.walk():
        saved += part.kept.get('scores', {}).values()
        if part.cost:
            costs.append(part.cost.as_json())
    about = {'run': options.run, LAST_DEPTH: spec.stages[-1].k, 'costs': costs}
    write_saved_scores(options.pairs, saved, about)


def _about_passages(options: argparse.Namespace) -> dict[str, Any]:
    """What decides the texts that are read: compared where a reranking is resumed."""
    from pyserini_repbert.record import checksum

    passages = options.corpus or options.index
    return {
        'passages': passages,
        'passages_sha256': checksum(passages),
        'corpus_format': options.corpus_format,
        'fields': options.fields,
    }


def _find_passages(options: argparse.Namespace) -> None:
    """Fill in where the passages are, by the run's record.

    Raises InputError if no record says it.
    """
    from pyserini_repbert.indexes.recorded_passages import recorded_passages

    recorded = recorded_passages(options.run)
    if recorded is None:
        raise InputError(
            f'{options.run} has no record that says where its passages are: give --corpus or '
            f'--index'
        )
    options.corpus = recorded.corpus
    options.index = recorded.index
    options.corpus_format = recorded.corpus_format
    options.fields = list(recorded.fields)


def _check_topics(topics: Sequence[Query], run: Run) -> None:
    """Warn of queries that are not reranked.

    Raises InputError if none of the topics is a query of the run.
    """
    qids = {topic.qid for topic in topics}
    if run and not any(run.get(qid) for qid in qids):
        raise InputError(
            f'none of the {len(topics)} topics is a query of the run: give the topics it was made '
            f'for'
        )
    n_unknown = len(run.keys() - qids)
    if n_unknown:
        logger.warning('%d queries of the run are not among the topics: left out', n_unknown)


def _check_scores(path: str, pipeline: Ranker) -> None:
    """Raise InputError for a run file without scores, if the first stage reads them."""
    from pyserini_repbert.data.runs import RunFormat, run_format

    # A pipe can be read only once.
    if not pipeline.reads_scores or not Path(path).is_file():
        return
    if run_format(path) is RunFormat.MSMARCO:
        raise InputError(
            f'run file {path} has no scores, which the first reranker reads (weight=W, mmr): give '
            'a TREC run'
        )


def _replay(options: argparse.Namespace) -> None:
    """Rerank by saved scores, without a model."""
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.systems.duobert.aggregation import checked_method
    from pyserini_repbert.systems.duobert.saved_scores import (
        compared_depth,
        read_saved_scores,
        replay,
    )

    checked_method(options.method, options.samples)
    queries, about = read_saved_scores(options.from_pairs)
    settings = command.pick_options(options, 'method', 'samples', 'seed', 'drop_rest')
    run = {}
    for saved in queries:
        k0 = len(saved.scores) if options.k0 is None else options.k0
        k1 = compared_depth(saved, about) if options.k1 is None else options.k1
        ranking = replay(saved, k0, k1, **settings)
        run[saved.qid] = ranking[: options.hits]
    write_run(options.output, run, options.output_format, options.tag)
    record_output(options, options.output, ('from_pairs',))
    stages = ', '.join(stage.get('stage', '?') for stage in about.get('costs', []))
    print(f'{options.output}: {len(run)} queries replayed from {options.from_pairs} ({stages})')
