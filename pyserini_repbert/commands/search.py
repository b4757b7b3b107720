"""`python -m pyserini_repbert.search`: answer questions, or write a run file for topics."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import FORMULA, add_flags, parsed, record_output
from pyserini_repbert.commands.rerank import add_stage_arguments, report, spec_of
from pyserini_repbert.commands.terminal import Bars, ask, cut_text, say_device, shown_hits
from pyserini_repbert.names.rankers import names_class
from pyserini_repbert.pipeline.spec import Machine, PipelineSpec
from pyserini_repbert.ranking import Query, check_question

_SHOWN_HITS = 3
_RUN_HITS = 1000
# from so many queries together on, exact search is faster (figures: docs/guides/own-corpus.md)
_MANY = 8


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    text = (
        'Answer questions in the terminal, or write a run file for topics. --index searches '
        'vectors, --sparse '
        'NAME@FOLDER a Lucene index; both are fused. --sparse NAME searches the passages of '
        '--index; add --encoder to '
        'fuse. --rerank reranks the best hits.'
    )
    parser = command.parser('search', text)
    what = parser.add_mutually_exclusive_group(required=True)
    add_flags(what, 'query', action='append', required=False, help='a question; repeatable')
    what.add_argument('--interactive', action='store_true', help='ask at a prompt, with a history')
    add_flags(what, 'topics')
    add = parser.add_argument
    names = "format of the topics, by Pyserini's names; 'default' tells it by the file"
    add('--topics-format', default='default', choices=('default', 'kilt', 'raw_jsonl'), help=names)
    add_flags(parser, 'index', 'encoder', 'ann', 'adapted', 'ray', 'sparse', 'k1', 'b', 'download')
    add_flags(parser, 'fusion', default=None)
    add_flags(parser, 'sparse_first', *FORMULA, 'depth')
    add(
        '--explain',
        action='store_true',
        help="show each hit's rank in each ranking, and what the reranker saw in it",
    )
    add('--provenance', metavar='FILE', help="each hit's rank in each ranking, .tsv or .jsonl")
    add('--output', help='with --topics: the run file to write')
    add_flags(parser, 'overwrite', 'output_format', 'tag', 'remove_duplicates')
    add(
        '--hits',
        type=command.positive_int,
        help=f'hits of each; default: {_RUN_HITS}, of a question {_SHOWN_HITS}',
    )
    add_flags(parser, 'threads', 'batch_size', 'max_length', 'build')
    add('--corpus', help="the catalog's collection, for --build; the passages, for --rerank")
    add_flags(parser, 'device', 'precision', 'offline', 'device_dtype')
    add_stage_arguments(parser.add_argument_group('reranking'), '--rerank')
    return parser


def main(arguments: list[str]) -> None:
    """Print the hits of questions, or write the run file of topics."""
    options = parsed(make_parser(), arguments)
    command.use_threads(options.threads)
    asks = options.topics is None
    options.hits = options.hits or (_SHOWN_HITS if asks else _RUN_HITS)
    for question in options.query or ():
        check_question(question)
    from pyserini_repbert.pipeline.adapted import with_adapted

    spec, machine = spec_of(options, ray=None)
    spec = with_adapted(spec)
    one = len(spec.sparse) + spec.is_dense < 2
    fuses = options.fusion or options.depth
    formula = spec.formula  # refuses a setting of another method
    options.fusion = options.fusion or 'interleave'
    options.alpha = None if spec.weights else formula['alpha']
    options.rrf_k = formula['rrf_k']
    dense = spec.is_dense or not spec.sparse
    exact = dense and not spec.ann
    reads_corpus = machine.build or spec.stages
    of_runs = options.provenance or options.cost or options.pairs
    for unfit, message in (
        (asks == bool(options.output), '--output is for --topics: give both, or ask a --query'),
        (asks and of_runs, '--provenance, --cost and --pairs are for --topics'),
        (
            options.explain and not asks,
            '--explain is for --query or --interactive: a run has --provenance',
        ),
        (
            fuses and one,
            '--fusion and --depth need two rankings: give --encoder with --sparse, or --sparse '
            'twice',
        ),
        ((spec.k1, spec.b) != (None, None) and not spec.sparse, '--k1 and --b are for --sparse'),
        (spec.ann and not dense, '--ann is for dense search: give --encoder with --sparse'),
        (
            options.ray is not None and not exact,
            '--ray is for exact dense search: give --encoder, and not --ann',
        ),
        (dense and spec.index is None, '--index names the dense index: a folder or a catalog name'),
        (
            spec.corpus and not reads_corpus,
            '--corpus is for --build, or for --rerank: an index is searched as it is',
        ),
    ):
        command.refuse(unfit, message)
    if (
        (options.provenance or options.explain or options.interactive)
        and spec.fusion == 'interleave'
        and not spec.ann
    ):
        # interleaving needs no more than --hits of each ranking; a hit's rank in each does
        deepest = max(options.hits, _RUN_HITS, *(stage.k for stage in spec.stages))
        spec = spec.model_copy(update={'depth': spec.depth or deepest})
    with contextlib.ExitStack() as held:
        if any(not names_class(name.partition('@')[0]) for name in spec.sparse):
            from pyserini_repbert.lucene.jvm import started_ahead

            held.enter_context(started_ahead(few_queries=bool(options.query)))
        if spec.is_dense or spec.stages:
            say_device(options)
        if options.ray is not None:
            from pyserini_repbert.pipeline.ray_workers import connected

            fleet = held.enter_context(
                connected(options.ray, options.threads, options.device not in ('cpu', 'auto'))
            )
            machine = machine.model_copy(update={'ray': fleet})
        _write_run(options, spec, machine) if options.topics else _answer(options, spec, machine)


def _answer(options: argparse.Namespace, spec: PipelineSpec, machine: Machine) -> None:
    """Show the hits of each question; with --explain also what the last reranker saw in them."""
    from pyserini_repbert.explain.explaining import hit_reasons
    from pyserini_repbert.pipeline.opening import open_pipeline
    from pyserini_repbert.rerank.base import Reranker

    with Bars(options) as watcher:
        pipeline = open_pipeline(spec, machine, watcher.building).pipeline
    rerankers = (
        [leaf for leaf in pipeline.leaves() if isinstance(leaf, Reranker)]
        if options.explain
        else []
    )
    last = rerankers[-1] if rerankers else None

    def answers(texts: Sequence[str]) -> Iterator[str]:
        topics = [Query(str(number), text) for number, text in enumerate(texts)]
        with Bars(options) as watcher:
            run = pipeline.rank(topics, None, options.hits, watcher)
        for topic in topics:
            hits = run[topic.qid]
            hits = hits.with_texts(dict(zip(hits.docids, pipeline.texts(hits.docids), strict=True)))
            reasons: Sequence[Sequence[str]] = ()
            if options.explain or options.interactive:
                searchers = watcher.parts[0].leaves()
                names = [part.name for part in searchers]
                inputs = [part.run[topic.qid] for part in searchers]
                reasons = hit_reasons(topic.text, hits, names, inputs, last, spec.depth)
            yield shown_hits(topic.text, hits, reasons)

    with contextlib.closing(pipeline):
        if options.interactive:
            ask(lambda text: next(answers([text])))
        else:
            print('\n\n'.join(answers(options.query)))


def _write_run(options: argparse.Namespace, spec: PipelineSpec, machine: Machine) -> None:
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.fusion.interleaving import write_provenance
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.opening import open_pipeline
    from pyserini_repbert.pipeline.pipeline import run_pipeline

    topics = load_topics(options.topics, options.topics_format)
    if (
        options.ann
        and (together := min(len(topics), options.batch_size)) >= _MANY
        and not options.quiet
    ):
        print(
            f'{together} topics together: exact search is faster, and misses nothing: without '
            f'--ann',
            file=sys.stderr,
        )
    with Bars(options) as watcher:
        opened = open_pipeline(spec, machine, watcher.building)
        with contextlib.closing(opened.pipeline):
            run = run_pipeline(
                opened.pipeline,
                topics,
                None,
                options.hits,
                watcher,
                batch_topics=machine.batch_size,
            )
            ended = time.perf_counter()
    write_run(options.output, run, options.output_format, options.tag)
    record_output(options, options.output, ('topics', 'corpus', 'index', 'sparse'), *opened[1:])
    parts = watcher.parts[0].leaves()  # of each searcher
    names = [part.name for part in parts]
    if options.provenance:
        write_provenance(options.provenance, names, [part.run for part in parts], run)
    silent = sum(not ranking for ranking in run.values())
    without = f', {silent} without hits' if silent else ''
    first = opened.pipeline.first.leaves() if opened.pipeline.first else ()
    without += ''.join(cut_text(getattr(leaf, 'query_encoder', None)) for leaf in first)
    times = _times_text(watcher.began, ended, len(topics), ' + '.join(names))
    print(f'{options.output}: {len(topics)} topics{without}, {times}')
    if 'rerank' in watcher.began:
        report(
            options,
            opened.pipeline.rerankers,
            watcher,
            {'run': options.output, 'k1': spec.stages[-1].k},
        )


def _times_text(began: Mapping[str, float], ended: float, n_topics: int, searchers: str) -> str:
    """'12.3 ms each (bm25)'; with a reranker the total, then what searching and reranking took.

    Parameters
    ----------
    began : when each step began, in seconds of `time.perf_counter`
    ended : when the last step ended
    n_topics : how many topics shared the time
    searchers : their names
    """

    def each(seconds: float) -> str:
        return f'{1000 * seconds / max(n_topics, 1):.1f}'

    total = each(ended - began['search'])
    if 'rerank' not in began:
        return f'{total} ms each ({searchers})'
    searching = each(began['rerank'] - began['search'])
    reranking = each(ended - began['rerank'])
    return f'{total} ms each: {searching} searching ({searchers}), {reranking} reranking'
