"""`python -m pyserini_repbert.search`: answer questions, or write a run file for topics.

The way of a query: the flags become a `PipelineSpec` (the request) and a `Machine` (where it runs).
`resolve` decides what is searched, and opens the index. `open_resolved` opens its rankings. The
pipeline ranks all questions or topics together. Their hits are printed, or written as a run.
"""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import (
    FUSION_SETTINGS,
    OutputFile,
    RanksFile,
    add_flags,
    parse_flags,
    used_fusion,
)
from pyserini_repbert.commands.reranking import add_stage_arguments, connect_to_ray, spec_of
from pyserini_repbert.commands.search_steps import RUN_HITS, shows_ranks
from pyserini_repbert.commands.terminal import say_device
from pyserini_repbert.extension import add_flags_of, parts_of
from pyserini_repbert.indexes.machine import Machine
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import check_question
from pyserini_repbert.search.scans import scans

if TYPE_CHECKING:
    from pyserini_repbert.pipeline.resolving import ResolvedSearch

_SHOWN_HITS = 3

_EXAMPLES = """\
examples, on the collection of the extra 'demo':
  %(prog)s --index demo --query 'who got the first nobel prize in physics'
  %(prog)s --index demo --sparse bm25@demo --rerank monobert-demo@20 \\
    --query 'what is the main mineral in lithium batteries'
  %(prog)s --index demo --topics demo --output run.txt
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser(
        'search',
        'Answer questions in the terminal, or write a run file for topics. Without a question, '
        'ask at a prompt, or read questions from a pipe, one on each line. '
        '--index adds one ranking. Each --sparse NAME@INDEX adds one more, such '
        'as bm25@FOLDER or bm25@demo. All rankings are fused, '
        'including the rankings of a collection. --rerank reranks the best hits.',
    )
    _add_questions(parser.add_argument_group('what is asked'))
    _add_searched(parser.add_argument_group('what is searched'))
    fused = parser.add_argument_group('how rankings are fused')
    add_flags(fused, 'fusion', default=None)
    add_flags(fused, 'sparse_first', *FUSION_SETTINGS, 'depth')
    add_stage_arguments(parser.add_argument_group('reranking'), '--rerank')
    _add_answers(parser.add_argument_group('what is shown or written'))
    add_flags_of('search', parser)
    _add_machine(parser.add_argument_group('where it runs'))
    parser.epilog = _EXAMPLES
    return parser


def _add_questions(flags: argparse._ArgumentGroup) -> None:
    what = flags.add_mutually_exclusive_group()
    add_flags(what, 'query', action='append', required=False, help='a question; repeatable')
    what.add_argument(
        '--like',
        action='append',
        metavar='DOCID',
        type=command.utf8_text,
        help='find documents like the one with this docid; repeatable',
    )
    add_flags(what, 'topics')
    flags.add_argument(
        '--topics-format',
        default='default',
        choices=('default', 'kilt', 'raw_jsonl'),
        help="format of the topics, by Pyserini's names; 'default' recognises the format",
    )


def _add_searched(flags: argparse._ArgumentGroup) -> None:
    add_flags(flags, 'index', action='append')
    add_flags(flags, 'encoder', 'sparse', 'rankings', 'aggregate', *scans(), 'adapted')
    add_flags(flags, 'prf', 'k1', 'b', 'language', 'max_length', 'download', 'build')
    flags.add_argument(
        '--corpus', help="the catalog's collection, for --build; the passages, for --rerank"
    )


def _add_answers(flags: argparse._ArgumentGroup) -> None:
    add = flags.add_argument
    add(
        '--hits',
        type=command.positive_int,
        help=f'hits of each query; default: {RUN_HITS} for topics, {_SHOWN_HITS} for a question',
    )
    add(
        '--explain',
        action='store_true',
        help="show each hit's rank in each ranking, and what the rankings and rerankers saw in it",
    )
    add('--output', type=OutputFile, help='with --topics: the run file to write')
    add_flags(flags, 'overwrite', 'output_format', 'tag', 'remove_duplicates')
    add(
        '--provenance',
        type=RanksFile,
        metavar='FILE',
        help="write each hit's rank in each ranking, as FILE.tsv or FILE.jsonl",
    )


def _add_machine(flags: argparse._ArgumentGroup) -> None:
    add_flags(flags, 'device', 'precision', 'device_dtype', 'batch_size', 'ray')
    add_flags(
        flags,
        'threads',
        type=command.threads_or_auto,
        help='CPU threads to use at most; auto: as many as compute one question fastest; default: '
        '$OMP_NUM_THREADS',
    )
    add_flags(flags, 'offline')


def _check_outputs(options: argparse.Namespace) -> None:
    """Raise InputError for flags of runs beside a question, and for flags of questions beside
    topics.
    """
    asks = options.topics is None
    command.refuse(
        asks == bool(options.output), '--output is for --topics: give both, or ask a --query'
    )
    command.refuse(
        asks and (options.provenance or options.cost),
        '--provenance and --cost describe a run: give --topics and --output',
    )
    command.refuse(
        options.explain and not asks,
        '--explain is for questions: a run has --provenance',
    )
    for part in parts_of('search'):
        part.check(options)


def _check_searchers(
    options: argparse.Namespace, resolved: ResolvedSearch, machine: Machine
) -> None:
    """Raise InputError for flags of searchers that are not asked, and for a setting of another
    method of fusion.
    """
    spec = resolved.spec
    used_fusion(spec)
    command.refuse(
        (options.fusion or options.depth) and spec.n_rankings < 2,
        '--fusion and --depth need two rankings: give --index with --sparse, --sparse twice, or '
        'two --rankings of a collection',
    )
    command.refuse(
        spec.bm25_constants and not resolved.searches_words,
        '--k1 and --b are for --sparse: add it, or leave them out',
    )
    reads_corpus = machine.build or spec.stages
    command.refuse(
        spec.corpus and not reads_corpus,
        '--corpus is for --build, or for --rerank: an index is searched as it is',
    )


def _check_index_flags(options: argparse.Namespace, spec: PipelineSpec) -> None:
    """Raise InputError for a missing --index, and for flags of another one."""
    command.refuse(
        spec.index is None and not spec.adapted and (spec.encoder or not spec.sparse),
        'there is nothing to search: name a folder or a catalog index as --index',
    )
    names_index = spec.index is not None or spec.adapted is not None
    command.refuse(
        spec.scan and not names_index, f'--{spec.scan} is for the vectors of an --index: name one'
    )
    command.refuse(
        options.ray is not None and (not names_index or spec.scan),
        '--ray is for the exact search of an --index: name one, or leave --ray out',
    )
    command.refuse(
        options.like and spec.stages,
        'a reranker reads a question, and --like is a document: leave one out',
    )


def main(arguments: list[str]) -> None:
    """Print the hits of questions, or write the run file of topics."""
    options = parse_flags(make_parser(), arguments)
    measures_threads = options.threads == 'auto'
    if measures_threads:
        command.refuse(
            options.topics,
            '--threads auto is for questions: topics are ranked together, so give a number',
        )
        options.threads = None
    command.use_threads(options.threads)
    options.hits = options.hits or (RUN_HITS if options.topics else _SHOWN_HITS)
    for question in options.query or ():
        check_question(question)
    from pyserini_repbert.pipeline.resolving import resolve

    spec, machine = spec_of(options)
    _check_outputs(options)
    _check_index_flags(options, spec)
    with contextlib.ExitStack() as held:
        resolved = resolve(spec, machine)
        held.callback(resolved.close)
        if options.like:
            # The collection's own rerankers read a question.
            resolved = resolved.without_stages()
        _check_searchers(options, resolved, machine)
        resolved = _rank_deeper(resolved, options)
        if measures_threads and _runs_a_model(resolved):
            command.use_fastest_threads()
        machine = _start_engines(options, resolved, machine, held)
        if options.topics:
            from pyserini_repbert.commands.search_run import write_topics_run

            write_topics_run(options, resolved, machine)
        else:
            from pyserini_repbert.commands.search_answers import show_answers

            show_answers(options, resolved, machine)


def _rank_deeper(resolved: ResolvedSearch, options: argparse.Namespace) -> ResolvedSearch:
    """The search, with deeper rankings where ranks are shown.

    Interleaving needs no more than --hits of each ranking. A hit's rank in each needs more.
    """
    spec = resolved.spec
    if not shows_ranks(options) or spec.fusion != 'interleave' or spec.scan:
        return resolved
    deepest = max(options.hits, RUN_HITS, *(stage.k for stage in spec.stages))
    return resolved.with_depth(spec.depth or deepest)


def _start_engines(
    options: argparse.Namespace,
    resolved: ResolvedSearch,
    machine: Machine,
    held: contextlib.ExitStack,
) -> Machine:
    """The machine, connected to the Ray cluster if one is named; Java starts meanwhile if needed.

    Parameters
    ----------
    options : the command's flags
    resolved : what is searched
    machine : where
    held : closes what was opened
    """
    if resolved.needs_java:
        from pyserini_repbert.lucene.jvm import started_ahead

        held.enter_context(started_ahead(few_queries=bool(options.query or options.like)))
    if _runs_a_model(resolved):
        say_device(options)
        if options.topics:
            from pyserini_repbert.encode.text_network import use_pytorch

            # A run has the same digits however many topics it has.
            use_pytorch()
    return connect_to_ray(options, machine, held)


def _runs_a_model(resolved: ResolvedSearch) -> bool:
    """Whether a ranking encodes the query, or candidates are reranked."""
    if resolved.spec.stages:
        return True
    index = resolved.index
    if index is None:
        return False
    return not index.offered.of_models.isdisjoint(index.rankings)
