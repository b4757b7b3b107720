"""`python -m pyserini_repbert.rerank`: rerank a run file, or make a run file from saved scores."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pyserini_repbert.commands import command, recording
from pyserini_repbert.commands.advice import model_update
from pyserini_repbert.commands.output_files import add_run_form, parsed, run_tag


def make_parser() -> argparse.ArgumentParser:
    """The command's flags."""
    parser = command.parser('rerank', 'Rerank the candidates of a run file, stage by stage; report what it cost.')
    parser.add_argument('--run', help='the run file of the first stage')
    parser.add_argument('--topics', help="a TSV, TREC or JSON lines file, a catalog name, or one of Pyserini's names")
    parser.add_argument('--output', required=True, help='the run file to write')
    add_run_form(parser)
    parser.add_argument('--hits', type=command.positive_int, help='candidates written for each query; default: all')
    add_stage_arguments(parser, '--reranker')
    parser.add_argument('--ray', metavar='ADDRESS', help="rerank on a Ray cluster: HOST:PORT, or 'auto'")
    passages = parser.add_mutually_exclusive_group()
    passages.add_argument(
        '--corpus',
        help='where the passages are: a file, a folder, ir_datasets:ID, a collection; default: as recorded of the run',
    )
    passages.add_argument('--index', help='where the passages are: an index that stores text')
    parser.add_argument('--download', action='store_true', help='fetch a prebuilt --index that is not here')
    command.add_corpus_form(parser)
    parser.add_argument('--from-pairs', metavar='FILE.npz', help='no model: replay the scores that --pairs saved')
    parser.add_argument(
        '--k0', type=command.zero_or_more, help='with --from-pairs: candidates of the first reranker; default: all'
    )
    parser.add_argument(
        '--k1', type=command.zero_or_more, help='with --from-pairs: candidates compared in pairs; default: as saved'
    )
    parser.add_argument('--method', default='sum', help='with --from-pairs: sum, binary, min, max or sample')
    parser.add_argument('--samples', type=command.positive_int, help="with --from-pairs: m of method 'sample'")
    parser.add_argument('--seed', type=command.whole_number, default=0, help="with --from-pairs: of method 'sample'")
    begun = parser.add_mutually_exclusive_group()
    begun.add_argument('--resume', action='store_true', help='go on with a reranking that was stopped')
    begun.add_argument('--overwrite', action='store_true', help='begin anew where one was stopped')
    parser.add_argument('--offline', action='store_true', help='never download')
    return parser


def add_stage_arguments(parser: argparse._ActionsContainer, flag: str, precision_too: bool = True) -> None:
    """Add the flags of a command that runs rerankers; `flag` is the one that names a stage.

    `precision_too` adds --device, --threads and the flags of precision, which a command that encodes has already.
    """
    parser.add_argument(
        flag,
        dest='stages',
        action='append',
        metavar='NAME@K[:OPTIONS]',
        help='a stage, several times for several: a reranker, how many candidates it takes, and for duoBERT the '
        'aggregation: monobert-large@1000, duobert-large@50:binary, FOLDER@50:sample=10,layout=code',
    )
    parser.add_argument('--devices', metavar='D,D', help='instead of --device: cuda:0,cuda:1 share the queries')
    if precision_too:
        parser.add_argument('--device', default='cpu', help='cpu, cuda, cuda:N or mps')
        command.add_precision_arguments(parser)
    parser.add_argument('--backend', default='torch', choices=('torch', 'onnx', 'onnx-int8'), help='what runs models')
    parser.add_argument('--batch-tokens', type=command.positive_int, help='padded tokens in a batch')
    if precision_too:
        command.add_threads(parser)
    parser.add_argument('--drop-rest', action='store_true', help='drop candidates that a stage does not take')
    parser.add_argument('--pairs', metavar='FILE.npz', help='save the scores, for other settings without a model')
    parser.add_argument(
        '--replay-k0',
        type=command.positive_int,
        nargs='+',
        default=[],
        metavar='K',
        help='with --pairs: also compare the pairs that these numbers of first-stage candidates would need',
    )
    parser.add_argument('--cost', metavar='FILE.json', help='write the cost report there, too')


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = parsed(make_parser(), arguments)
    command.use_threads(options.threads)
    from pyserini_repbert.download import forbid_downloads

    forbid_downloads(options.offline)
    tag = run_tag(options)
    if options.from_pairs:
        if options.stages or options.run:
            raise command.usage('--from-pairs needs no --run and no --reranker')
        _replay(options, tag)
        return 0
    if not (options.run and options.topics and options.stages):
        raise command.usage('a reranking takes --run, --topics and at least one --reranker')
    given = {word.partition('=')[0] for word in options.command}
    if replaying := sorted(given & {'--k0', '--k1', '--method', '--samples', '--seed'}):
        raise command.usage(f'{replaying[0]} is for --from-pairs; a stage has its own: NAME@K:sample=10,seed=1')
    if options.ray is not None and options.devices:
        raise command.usage('--devices does not go with --ray, whose workers have a device each: give --device')
    _rerank(options, tag)
    return 0


def stage_settings(options: argparse.Namespace) -> Any:
    """The settings for `run_stages` from the flags of `add_stage_arguments`.

    Raises InputError for --replay-k0 without --pairs.
    """
    from pyserini_repbert.pipeline.reranking import Settings

    if options.replay_k0 and not options.pairs:
        raise command.usage('--replay-k0 goes with --pairs')
    return Settings(
        tuple(options.devices.split(',')) if options.devices else (options.device,),
        command.precision(options),
        options.backend,
        options.batch_tokens,
        options.drop_rest,
        tuple(options.replay_k0) if options.pairs else None,
    )


def rerank_update(update: Callable[[int], object], options: argparse.Namespace) -> Callable[[int], object]:
    """`model_update` if PyTorch runs the models; else `update`: ONNX Runtime does not run them in bfloat16."""
    return model_update(update, options) if options.backend == 'torch' else update


def report(options: argparse.Namespace, reranked: Any, about: dict[str, Any]) -> None:
    """Write the scores (--pairs) and the cost report (--cost) if asked for; print the cost."""
    import json

    from pyserini_repbert.files import atomic_file
    from pyserini_repbert.pipeline.costs import shown
    from pyserini_repbert.rerank.saved_scores import write_saved_scores

    costs = [cost.as_json() for cost in reranked.costs]
    if options.pairs:
        write_saved_scores(options.pairs, reranked.saved, {**about, 'costs': costs})
    if options.cost:
        with atomic_file(options.cost) as stream:
            stream.write(json.dumps({'stages': costs}, indent=2) + '\n')
    print(shown(reranked.costs))


def _rerank(options: argparse.Namespace, tag: str) -> None:
    from pyserini_repbert.cluster.ray_fleet import connected
    from pyserini_repbert.cluster.reranking import ClusterRunner
    from pyserini_repbert.data.runs import read_run, write_run
    from pyserini_repbert.names.texts import texts_opener
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.reranking import run_stages
    from pyserini_repbert.pipeline.resume import finished
    from pyserini_repbert.pipeline.specs import parse_stage
    from pyserini_repbert.ranking import Ranking

    stages = [parse_stage(text) for text in options.stages]
    settings = stage_settings(options)
    topics = load_topics(options.topics)
    first = read_run(options.run)
    if options.corpus is None and options.index is None:
        _take_passages(options)
    texts = texts_opener(options.corpus, options.index, options.corpus_format, options.fields, options.download)

    with contextlib.ExitStack() as held:
        bar = held.enter_context(command.progress(None, 'rerank', 'inputs', options.quiet))

        def begin(total: int) -> Any:
            bar.reset(total)
            return rerank_update(bar.update, options)

        about = {'passages': options.corpus or options.index, 'fields': options.fields}
        if options.ray is not None:
            fleet = held.enter_context(connected(options.ray, gpu=options.device != 'cpu'))
            settings = replace(settings, spread=partial(ClusterRunner, fleet))
        reranked = run_stages(
            topics, first, stages, texts, settings, options.output, options.resume, options.overwrite, about, begin
        )
    k = options.hits
    run = {qid: Ranking(found.docids[:k], found.scores[:k]) for qid, found in reranked.run.items()}
    write_run(options.output, run, options.output_format, tag)
    recording.write(options, options.output, ('run', 'topics', 'corpus', 'index'), reranked.models)
    report(options, reranked, {'run': options.run, 'k1': stages[-1].k})
    finished(options.output)


def _take_passages(options: argparse.Namespace) -> None:
    """Set the options for passages from the record of the run. Raises InputError if there is none that names them."""
    from pyserini_repbert.names.inputs import recorded_passages

    found = recorded_passages(options.run)
    if found is None:
        raise command.usage(f'{options.run} has no record that says where its passages are: give --corpus or --index')
    options.corpus, options.index = found.corpus, found.index
    options.corpus_format, options.fields = found.corpus_format, list(found.fields)


def _replay(options: argparse.Namespace, tag: str) -> None:
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.ranking import Ranking
    from pyserini_repbert.rerank.aggregation import checked_method
    from pyserini_repbert.rerank.saved_scores import read_saved_scores, replay

    checked_method(options.method, options.samples)
    queries, about = read_saved_scores(options.from_pairs)
    stages = ', '.join(stage.get('stage', '?') for stage in about.get('costs', []))
    run = {}
    for saved in queries:
        k0 = len(saved.scores) if options.k0 is None else options.k0
        k1 = min(about.get('k1', len(saved.members)), len(saved.members)) if options.k1 is None else options.k1
        found = replay(saved, k0, k1, options.method, options.samples, options.seed, options.drop_rest)[: options.hits]
        run[saved.qid] = Ranking([item.docid for item in found], [item.score for item in found])
    write_run(options.output, run, options.output_format, tag)
    recording.write(options, options.output, ('from_pairs',))
    print(f'{options.output}: {len(run)} queries replayed from {options.from_pairs} ({stages})')
