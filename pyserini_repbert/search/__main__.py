"""`python -m pyserini_repbert.search`: answer questions, or write a run file for topics."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from pyserini_repbert import command
from pyserini_repbert.encode.__main__ import add_model_arguments

if TYPE_CHECKING:
    from pyserini_repbert.search.dense import RepBertSearcher

_SHOWN_HITS = 3
_RUN_HITS = 1000


def make_parser() -> argparse.ArgumentParser:
    """The command's flags."""
    parser = command.parser('search', 'Dense search: one question in the terminal, or a run file for topics.')
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--query', action='append', metavar='TEXT', help='a question; may be given several times')
    what.add_argument('--topics', help="a TSV, TREC or JSON lines file, a catalog name, or one of Pyserini's names")
    parser.add_argument('--index', required=True, help='an index folder or a catalog name')
    parser.add_argument('--encoder', help='catalog name or checkpoint folder; by default the one the index names')
    parser.add_argument('--output', help='the run file to write, with --topics')
    parser.add_argument('--output-format', default='trec', choices=('trec', 'msmarco'), help='of the run file')
    parser.add_argument('--tag', help="the run's tag; by default the name of the output file")
    parser.add_argument('--hits', type=command.positive_int, help=f'default {_RUN_HITS}, {_SHOWN_HITS} with --query')
    parser.add_argument('--threads', type=command.positive_int, default=1, help="1 leaves PyTorch's own setting")
    parser.add_argument('--batch-size', type=command.positive_int, default=512, help='topics searched together')
    parser.add_argument('--build', action='store_true', help="build a catalog index that isn't there")
    parser.add_argument('--corpus', help="with --build: use this corpus instead of the catalog's")
    add_model_arguments(parser)
    return parser


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = make_parser().parse_args(arguments)
    if (options.topics is None) != (options.output is None):
        raise command.usage('--output is for --topics: give both, or ask a --query')
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


def _open(options: argparse.Namespace) -> RepBertSearcher:
    from pyserini_repbert.encode.encoders import RepBertQueryEncoder
    from pyserini_repbert.search.dense import RepBertSearcher
    from pyserini_repbert.search.named_index import ready_folder

    folder = ready_folder(
        options.index,
        options.encoder,
        options.device,
        options.build,
        options.corpus,
        options.precision,
        lambda named: _building(named, options),
    )
    encoder = None
    if options.encoder:
        encoder = RepBertQueryEncoder(options.encoder, options.device, precision=options.precision or 'float32')
    return RepBertSearcher(folder, encoder, options.device)


def _building(named: Any, options: argparse.Namespace) -> Any:
    from pyserini_repbert import catalog

    print(f"building index '{named.entry.name}' for encoder '{named.encoder}' in {named.folder}", file=sys.stderr)
    collection = catalog.get('collections', named.entry.values['collection'])
    total = None if options.corpus else collection.values['passages']
    return command.progress(total, 'encode', 'passages', options.quiet).update


def _answer(options: argparse.Namespace) -> None:
    from pyserini_repbert.search.terminal import shown_hits

    searcher = _open(options)
    for number, query in enumerate(options.query):
        hits = searcher.search(query, options.hits or _SHOWN_HITS)
        print(('\n' if number else '') + shown_hits(query, hits, searcher.texts([hit.docid for hit in hits])))


def _write_run(options: argparse.Namespace, tag: str) -> None:
    from pyserini_repbert.pyserini_bridge.topics import load_topics
    from pyserini_repbert.runs import RankedList, write_run

    topics = load_topics(options.topics)
    searcher = _open(options)
    run = {}
    start = time.perf_counter()
    with command.progress(len(topics), 'search', 'topics', options.quiet) as bar:
        for first in range(0, len(topics), options.batch_size):
            batch = topics[first : first + options.batch_size]
            found = searcher.batch_search(
                [query.text for query in batch],
                [query.qid for query in batch],
                options.hits or _RUN_HITS,
                options.threads,
                on_progress=bar.update,
            )
            for qid, hits in found.items():
                run[qid] = RankedList([hit.docid for hit in hits], [hit.score for hit in hits])
    seconds = time.perf_counter() - start
    write_run(options.output, run, options.output_format, tag)
    rate = 1000 * seconds / len(topics)
    print(f'{options.output}: {len(topics)} topics, {rate:.1f} ms each')


if __name__ == '__main__':
    sys.exit(command.run(main))
