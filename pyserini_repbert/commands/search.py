"""`python -m pyserini_repbert.search`: answer questions, or write a run file for topics."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyserini_repbert.commands import command, recording
from pyserini_repbert.commands.advice import model_update
from pyserini_repbert.commands.encode import add_model_arguments
from pyserini_repbert.commands.fusion_flags import add_formula_arguments, check_provenance
from pyserini_repbert.commands.output_files import add_run_form, check_files, run_tag
from pyserini_repbert.commands.rerank import add_stage_arguments, report, rerank_update
from pyserini_repbert.commands.search_request import check_request, request_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyserini_repbert.explain.hits import HitReasons
    from pyserini_repbert.index.dense import DenseBundle
    from pyserini_repbert.names.indexes import NamedIndex
    from pyserini_repbert.pipeline.searching import Found, Opened, Request
    from pyserini_repbert.ranking import Query, Ranking
    from pyserini_repbert.search.exact import Search

_SHOWN_HITS = 3
_RUN_HITS = 1000


def make_parser() -> argparse.ArgumentParser:
    """The command's flags."""
    parser = command.parser(
        'search',
        'Dense, sparse or hybrid search: questions answered in the terminal, or a run file for topics. With --encoder '
        'the search is dense, with --sparse it is sparse, with both their rankings are fused; --rerank adds stages.',
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        '--query',
        action='append',
        type=command.utf8_text,
        metavar='TEXT',
        help='a question; may be given several times',
    )
    what.add_argument('--interactive', action='store_true', help='ask at a prompt, with a history')
    what.add_argument('--topics', help="a TSV, TREC or JSON lines file, a catalog name, or one of Pyserini's names")
    parser.add_argument(
        '--topics-format',
        default='default',
        choices=('default', 'kilt', 'raw_jsonl'),
        help="of the --topics file, as Pyserini names it; by default recognised by the file's beginning",
    )
    parser.add_argument('--index', help='an index folder or a catalog name; not needed where --sparse names one')
    parser.add_argument('--encoder', help='catalog name or checkpoint folder; by default the one the index names')
    parser.add_argument('--ann', action='store_true', help='search the approximate index: for few queries')
    parser.add_argument('--ray', metavar='ADDRESS', help="search on a Ray cluster: HOST:PORT, or 'auto'")
    parser.add_argument(
        '--sparse',
        action='append',
        metavar='NAME[@INDEX]|FOLDER',
        help='a sparse technique, or the folder of a Lucene index; repeatable',
    )
    parser.add_argument('--k1', type=command.finite_number, help="BM25's, if not that of the technique or index")
    parser.add_argument('--b', type=command.finite_number, help="BM25's, likewise")
    parser.add_argument('--download', action='store_true', help='fetch a prebuilt sparse index that is not here')
    parser.add_argument(
        '--fusion', '--method', choices=('interleave', 'rrf', 'interpolation'), help='default interleave'
    )
    parser.add_argument('--sparse-first', action='store_true', help='fuse with the sparse rankings first')
    add_formula_arguments(parser)
    parser.add_argument(
        '--explain',
        action='store_true',
        help='below each hit: its rank in each ranking, and what the last reranker saw in it',
    )
    parser.add_argument('--provenance', metavar='FILE', help="each hit's rank in each ranking, .tsv or .jsonl")
    parser.add_argument('--output', help='the run file to write, with --topics')
    add_run_form(parser)
    parser.add_argument(
        '--remove-duplicates', action='store_true', help='of a docid that an index has twice, keep the best hit'
    )
    parser.add_argument('--hits', type=command.positive_int, help=f'default {_RUN_HITS}, {_SHOWN_HITS} with --query')
    command.add_threads(parser)
    parser.add_argument('--batch-size', type=command.positive_int, default=512, help='topics searched together')
    parser.add_argument('--max-length', type=command.positive_int, help='wordpieces kept of a query')
    parser.add_argument('--build', action='store_true', help="build a catalog index that isn't there")
    parser.add_argument(
        '--corpus', help="with --build: where the catalog's collection lies; with --rerank: read passages there"
    )
    add_model_arguments(parser)
    parser.add_argument(
        '--device-dtype',
        default='float16',
        choices=('float16', 'float32'),
        help='what a GPU holds and multiplies the vectors in; on a CPU they are multiplied in float32',
    )
    add_stage_arguments(parser.add_argument_group('reranking'), '--rerank', precision_too=False)
    return parser


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = make_parser().parse_args(arguments)
    command.use_threads(options.threads)
    if (options.topics is None) != (options.output is None):
        raise command.usage('--output is for --topics: give both, or ask a --query')
    if options.topics_format != 'default' and options.topics is None:
        raise command.usage('--topics-format is for --topics')
    for flag in ('provenance', 'cost', 'pairs'):
        if getattr(options, flag) and options.topics is None:
            raise command.usage(f'--{flag} is for --topics')
    if options.explain and options.topics is not None:
        raise command.usage('--explain is for --query or --interactive: --provenance writes the ranks of a run')
    check_files(options)
    check_provenance(options.provenance)
    from pyserini_repbert.download import forbid_downloads

    forbid_downloads(options.offline)
    options.hits = options.hits or (_RUN_HITS if options.topics else _SHOWN_HITS)
    if options.topics:
        options.tag = run_tag(options)
    check_request(options)
    with contextlib.ExitStack() as held:
        if options.sparse:
            from pyserini_repbert.lucene.jvm import started_ahead

            held.enter_context(started_ahead(few_queries=bool(options.query)))
        request = request_of(options)
        if options.ray is not None:
            request = replace(request, spread=held.enter_context(_cluster(options)))
        _write_run(options, request) if options.topics else _answer(options, request)
    return 0


@contextlib.contextmanager
def _cluster(options: argparse.Namespace) -> Iterator[Callable[[DenseBundle], Search]]:
    """A function that makes the search of a bundle on the cluster of --ray, which stays connected meanwhile."""
    from pyserini_repbert.cluster.ray_fleet import connected
    from pyserini_repbert.cluster.searching import ClusterSearch

    with connected(options.ray, options.threads, options.device != 'cpu') as fleet:
        yield lambda bundle: ClusterSearch(fleet, bundle, options.device)


def _answer(options: argparse.Namespace, request: Request) -> None:
    from pyserini_repbert.commands.terminal import shown_hits
    from pyserini_repbert.pipeline.searching import opened, search
    from pyserini_repbert.ranking import Query

    _advise(options, len(options.query or ()))
    with _Watcher(options) as watcher:
        already = opened(request, watcher)
    shows_reasons = options.explain or options.interactive
    reasons_of = _reasons(request, already, options.explain) if shows_reasons else lambda query, found: []

    def answers(texts: Sequence[str]) -> list[tuple[Ranking, list[HitReasons]]]:
        topics = [Query(str(number), text) for number, text in enumerate(texts)]
        with _Watcher(options) as watcher:
            found = search(request, topics, options.hits, watcher, with_texts=True, already=already)
        return [(found.run[query.qid], reasons_of(query, found)) for query in topics]

    if options.interactive:
        from pyserini_repbert.commands.search_interactive import ask

        ask(lambda text: answers([text])[0])
        return
    found = zip(options.query, answers(options.query), strict=True)
    shown = [shown_hits(text, hits, reasons) for text, (hits, reasons) in found]
    print('\n\n'.join(shown))


def _reasons(request: Request, already: Opened, with_reranker: bool) -> Callable[[Query, Found], list[HitReasons]]:
    """A function that gives the reasons for a query's hits, `with_reranker` also those of the last reranker."""
    from pyserini_repbert.explain.hits import hit_reasons, reranker_reason
    from pyserini_repbert.pipeline.reranking import opened_here

    last = opened_here(already.stages[-1:], request.settings) if with_reranker else []
    reason = reranker_reason(last[0].reranker) if last else None

    def reasons(query: Query, found: Found) -> list[HitReasons]:
        inputs = [part[query.qid] for part in found.parts]
        return hit_reasons(query.text, found.run[query.qid], found.names, inputs, reason, last[0].k if last else 0)

    return reasons


def _write_run(options: argparse.Namespace, request: Request) -> None:
    from pyserini_repbert.data.runs import write_run
    from pyserini_repbert.data.topics import TopicsFormat
    from pyserini_repbert.fusion.origins import write_provenance
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.searching import search

    topics = load_topics(options.topics, TopicsFormat(options.topics_format))
    _advise(options, len(topics))
    with _Watcher(options) as watcher:
        found = search(request, topics, options.hits, watcher)
    write_run(options.output, found.run, options.output_format, options.tag)
    options.fusion, options.alpha, options.rrf_k = str(request.method), request.alpha, request.rrf_k
    recording.write(options, options.output, ('topics', 'corpus', 'index', 'sparse'), found.models, found.indexes)
    if options.provenance:
        write_provenance(options.provenance, found.names, found.parts, found.run)
    silent = sum(not ranking for ranking in found.run.values())
    without = f', {silent} without hits' if silent else ''
    searched = f'{found.milliseconds:.1f} ms each ({" + ".join(found.names)})'
    print(f'{options.output}: {len(topics)} topics{without}, {searched}')
    if found.reranked is not None:
        report(options, found.reranked, {'run': options.output, 'k1': request.stages[-1].k})


def _advise(options: argparse.Namespace, n_topics: int) -> None:
    """Say on stderr that exact search is faster, if --ann is given with many topics searched together."""
    if not options.ann or options.quiet:
        return
    from pyserini_repbert.search.ann import MANY

    together = min(n_topics, options.batch_size)
    if together >= MANY:
        print(f'{together} topics together: exact search is faster, and misses nothing: without --ann', file=sys.stderr)


class _Watcher(contextlib.ExitStack):
    """Says on stderr what is built, and shows one progress bar at a time."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self._options = options

    def building(self, index: NamedIndex | Path) -> Callable[[int], object]:
        from pyserini_repbert.names.indexes import NamedIndex

        if not isinstance(index, NamedIndex):
            print(f'building a Lucene index in {index}', file=sys.stderr)
            return int
        print(f"building index '{index.entry.name}' for encoder '{index.encoder}' in {index.folder}", file=sys.stderr)
        total = None if self._options.corpus else index.collection.values['passages']
        update = self.begins('encode', total, 'passages')
        return update if index.builds_itself else model_update(update, self._options)

    def begins(self, what: str, total: int | None, unit: str) -> Callable[[int], object]:
        self.close()
        bar = self.enter_context(command.progress(total, what, unit, self._options.quiet))
        update: Callable[[int], object] = bar.update
        return rerank_update(update, self._options) if what == 'rerank' else update
