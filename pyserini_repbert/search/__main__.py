"""`python -m pyserini_repbert.search`: answer questions, or write a run file for topics."""

from __future__ import annotations

import argparse
import sys
import time

from pyserini_repbert import command
from pyserini_repbert.encode.__main__ import add_model_arguments

_SHOWN_HITS = 3
_RUN_HITS = 1000


def make_parser() -> argparse.ArgumentParser:
    """The command's flags."""
    parser = command.parser(
        'search',
        'Dense, sparse or hybrid search: questions answered in the terminal, or a run file for topics. With --encoder '
        'the search is dense, with --sparse it is sparse, with both their rankings are fused.',
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--query', action='append', metavar='TEXT', help='a question; may be given several times')
    what.add_argument('--topics', help="a TSV, TREC or JSON lines file, a catalog name, or one of Pyserini's names")
    parser.add_argument('--index', required=True, help='an index folder or a catalog name')
    parser.add_argument('--encoder', help='catalog name or checkpoint folder; by default the one the index names')
    parser.add_argument('--sparse', action='append', metavar='NAME[@INDEX]', help='a sparse technique; repeatable')
    parser.add_argument('--fusion', choices=('interleave', 'rrf', 'interpolation'), help='default interleave')
    parser.add_argument('--sparse-first', action='store_true', help='interleave from the first sparse ranking on')
    parser.add_argument('--provenance', metavar='FILE', help="each hit's rank in each ranking, .tsv or .jsonl")
    parser.add_argument('--output', help='the run file to write, with --topics')
    parser.add_argument('--output-format', default='trec', choices=('trec', 'msmarco'), help='of the run file')
    parser.add_argument('--tag', help="the run's tag; by default the name of the output file")
    parser.add_argument('--hits', type=command.positive_int, help=f'default {_RUN_HITS}, {_SHOWN_HITS} with --query')
    parser.add_argument('--threads', type=command.positive_int, default=1, help="1 leaves PyTorch's own setting")
    parser.add_argument('--batch-size', type=command.positive_int, default=512, help='topics searched together')
    parser.add_argument('--max-length', type=command.positive_int, help='wordpieces kept of a query')
    parser.add_argument('--build', action='store_true', help="build a catalog index that isn't there")
    parser.add_argument('--corpus', help="with --build: use this corpus instead of the catalog's")
    add_model_arguments(parser)
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

    searchers = open_searchers(options)
    for number, text in enumerate(options.query):
        run, _ = searchers.search([Query('0', text)], options.hits or _SHOWN_HITS, options.threads)
        hits = [Candidate(docid, score) for docid, score in zip(*run['0'], strict=True)]
        print(('\n' if number else '') + shown_hits(text, hits, searchers.texts(run['0'].docids)))


def _write_run(options: argparse.Namespace, tag: str) -> None:
    from pyserini_repbert.fusion.origins import write_provenance
    from pyserini_repbert.pyserini_bridge.topics import load_topics
    from pyserini_repbert.runs import Run, write_run
    from pyserini_repbert.search.opening import open_searchers

    topics = load_topics(options.topics)
    searchers = open_searchers(options)
    run: Run = {}
    parts: list[Run] = [{} for _ in searchers.names]
    start = time.perf_counter()
    with command.progress(len(topics), 'search', 'topics', options.quiet) as bar:
        for first in range(0, len(topics), options.batch_size):
            batch = topics[first : first + options.batch_size]
            found, own = searchers.search(batch, options.hits or _RUN_HITS, options.threads)
            run |= found
            for part, more in zip(parts, own, strict=True):
                part |= more
            bar.update(len(batch))
    milliseconds = 1000 * (time.perf_counter() - start) / len(topics)
    write_run(options.output, run, options.output_format, tag)
    if options.provenance:
        write_provenance(options.provenance, searchers.names, parts, run)
    silent = sum(not ranked.docids for ranked in run.values())
    without = f', {silent} without hits' if silent else ''
    print(
        f'{options.output}: {len(topics)} topics{without}, {milliseconds:.1f} ms each ({" + ".join(searchers.names)})'
    )


if __name__ == '__main__':
    sys.exit(command.run(main))
