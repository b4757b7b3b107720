"""`python -m pyserini_repbert.search`: answer questions, or write a run file for topics."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from pyserini_repbert import command
from pyserini_repbert.encode.__main__ import add_model_arguments
from pyserini_repbert.fusion.__main__ import add_formula_arguments
from pyserini_repbert.rerank.__main__ import add_stage_arguments, report, rerank_update, stage_settings

if TYPE_CHECKING:
    from pyserini_repbert.passages import PassageTexts
    from pyserini_repbert.pipeline.reranking import Reranked
    from pyserini_repbert.ranking import Query
    from pyserini_repbert.runs import Run

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
    what.add_argument('--topics', help="a TSV, TREC or JSON lines file, a catalog name, or one of Pyserini's names")
    parser.add_argument('--index', help='an index folder or a catalog name; not needed where --sparse names one')
    parser.add_argument('--encoder', help='catalog name or checkpoint folder; by default the one the index names')
    parser.add_argument('--sparse', action='append', metavar='NAME[@INDEX]', help='a sparse technique; repeatable')
    parser.add_argument('--download', action='store_true', help='fetch a prebuilt sparse index that is not here')
    parser.add_argument('--fusion', choices=('interleave', 'rrf', 'interpolation'), help='default interleave')
    parser.add_argument('--sparse-first', action='store_true', help='fuse with the sparse rankings first')
    add_formula_arguments(parser)
    parser.add_argument('--provenance', metavar='FILE', help="each hit's rank in each ranking, .tsv or .jsonl")
    parser.add_argument('--output', help='the run file to write, with --topics')
    parser.add_argument('--output-format', default='trec', choices=('trec', 'msmarco'), help='of the run file')
    parser.add_argument('--tag', help="the run's tag; by default the name of the output file")
    parser.add_argument('--hits', type=command.positive_int, help=f'default {_RUN_HITS}, {_SHOWN_HITS} with --query')
    parser.add_argument('--threads', type=command.threads, default=1, help="1 leaves PyTorch's own setting")
    parser.add_argument('--batch-size', type=command.positive_int, default=512, help='topics searched together')
    parser.add_argument('--max-length', type=command.positive_int, help='wordpieces kept of a query')
    parser.add_argument('--build', action='store_true', help="build a catalog index that isn't there")
    parser.add_argument(
        '--corpus', help="with --build: where the catalog's collection lies; with --rerank: read passages there"
    )
    add_model_arguments(parser)
    add_stage_arguments(parser.add_argument_group('reranking'), '--rerank', precision_too=False)
    return parser


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = make_parser().parse_args(arguments)
    if (options.topics is None) != (options.output is None):
        raise command.usage('--output is for --topics: give both, or ask a --query')
    if options.provenance and options.topics is None:
        raise command.usage('--provenance is for --topics')
    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.runs import check_format, default_tag

    forbid_downloads(options.offline)
    if options.query:
        _answer(options)
        return 0
    tag = options.tag or default_tag(options.output)
    check_format(options.output_format, tag)
    _write_run(options, tag)
    return 0


def _answer(options: argparse.Namespace) -> None:
    from pyserini_repbert.ranking import Candidate, Query
    from pyserini_repbert.search.opening import open_searchers
    from pyserini_repbert.search.terminal import shown_hits

    texts = _corpus_texts(options)
    searchers = open_searchers(options)
    hits = options.hits or _SHOWN_HITS
    for number, text in enumerate(options.query):
        run, _ = searchers.search([Query('0', text)], _depth(options, hits), options.threads)
        if options.stages and run['0'].docids:
            run = _reranked(options, [Query('0', text)], run, texts or searchers).run
        found = [Candidate(docid, score) for docid, score in zip(*run['0'], strict=True)][:hits]
        print(('\n' if number else '') + shown_hits(text, found, searchers.texts([hit.docid for hit in found])))


def _depth(options: argparse.Namespace, hits: int) -> int:
    """Hits asked of the first stage: those wanted, and those that the first reranker takes."""
    from pyserini_repbert.pipeline.specs import parse_stage

    return max([hits, *(parse_stage(stage).k for stage in (options.stages or [])[:1])])


def _corpus_texts(options: argparse.Namespace) -> Callable[[Iterable[str]], PassageTexts] | None:
    """The passages of --corpus, opened before any model is loaded; None where the searchers' own are reranked."""
    if not options.stages or not options.corpus or options.build:
        return None
    from pyserini_repbert.pipeline.texts import texts_opener

    return texts_opener(options.corpus, None)


def _reranked(
    options: argparse.Namespace,
    topics: Sequence[Query],
    run: Run,
    texts: PassageTexts | Callable[[Iterable[str]], PassageTexts],
) -> Reranked:
    from pyserini_repbert.pipeline.reranking import run_stages
    from pyserini_repbert.pipeline.specs import parse_stage

    stages = [parse_stage(stage) for stage in options.stages]
    with command.progress(None, 'rerank', 'inputs', options.quiet) as bar:

        def begin(total: int) -> Callable[[int], object]:
            bar.reset(total)
            return rerank_update(bar.update, options)

        return run_stages(topics, run, stages, texts, stage_settings(options), on_total=begin)


def _write_run(options: argparse.Namespace, tag: str) -> None:
    from pyserini_repbert.fusion.origins import write_provenance
    from pyserini_repbert.pipeline.specs import parse_stage
    from pyserini_repbert.pyserini_bridge.topics import load_topics
    from pyserini_repbert.runs import RankedList, write_run
    from pyserini_repbert.search.opening import open_searchers

    hits = options.hits or _RUN_HITS
    depth = _depth(options, hits)
    topics = load_topics(options.topics)
    texts = _corpus_texts(options)
    searchers = open_searchers(options)
    run: Run = {}
    parts: list[Run] = [{} for _ in searchers.names]
    start = time.perf_counter()
    with command.progress(len(topics), 'search', 'topics', options.quiet) as bar:
        for first in range(0, len(topics), options.batch_size):
            batch = topics[first : first + options.batch_size]
            found, own = searchers.search(batch, depth, options.threads)
            run |= found
            for part, more in zip(parts, own, strict=True):
                part |= more
            bar.update(len(batch))
    milliseconds = 1000 * (time.perf_counter() - start) / len(topics)
    reranked = _reranked(options, topics, run, texts or searchers) if options.stages else None
    if reranked is not None:
        run = reranked.run
    run = {qid: RankedList(ranked.docids[:hits], ranked.scores[:hits]) for qid, ranked in run.items()}
    write_run(options.output, run, options.output_format, tag)
    if options.provenance:
        write_provenance(options.provenance, searchers.names, parts, run)
    silent = sum(not ranked.docids for ranked in run.values())
    without = f', {silent} without hits' if silent else ''
    searched = f'{milliseconds:.1f} ms each ({" + ".join(searchers.names)})'
    print(f'{options.output}: {len(topics)} topics{without}, {searched}')
    if reranked is not None:
        report(options, reranked, {'run': options.output, 'k1': parse_stage(options.stages[-1]).k})


if __name__ == '__main__':
    sys.exit(command.run(main))
