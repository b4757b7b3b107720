"""`index ann`: make an approximate index."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags as add_common_flags

if TYPE_CHECKING:
    from pyserini_repbert.extensions.approximate.making import AnnSettings


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `index ann`."""
    add_common_flags(parser, 'overwrite')
    add = parser.add_argument
    add('--index', required=True, help='a collection, a dense index, or a catalog name')
    add('--encoder', help='the encoder of a catalog index, and of --topics')
    add('--ranking', default='dense', help='which vectors: dense, or multi of a collection')
    add(
        '--kind',
        choices=('pq', 'hnsw', 'ivf'),
        help='kind of index; default: pq, for multi ivf',
    )
    add(
        '--recall',
        type=command.finite_number,
        default=0.98,
        help="the share of exact search's hits to reach",
    )
    add(
        '--hits',
        type=command.positive_int,
        default=1000,
        help='the number of hits at which recall is measured',
    )
    add('--topics', help='queries to measure with; default: vectors of passages, with noise')
    add(
        '--threads',
        type=command.threads,
        default=1,
        help='threads of FAISS; with several, an hnsw index differs each time',
    )


def make_ann(options: argparse.Namespace) -> None:
    """Do `index ann`."""
    from pyserini_repbert.extensions.approximate.building import build_ann
    from pyserini_repbert.extensions.approximate.folders import ann_folder
    from pyserini_repbert.extensions.approximate.form import INDEX
    from pyserini_repbert.files import human_size
    from pyserini_repbert.names.indexes import ready_folder

    settings = _settings(options)
    folder = ready_folder(options.index, options.encoder)
    with command.progress(None, 'add', 'vectors', options.quiet) as bar:
        record = build_ann(
            folder,
            settings,
            ranking=options.ranking,
            overwrite=options.overwrite,
            on_progress=bar.update,
        )
    size = (ann_folder(folder, options.ranking) / INDEX).stat().st_size
    print(f'{options.index}: {record}, {human_size(size)}')


def _settings(options: argparse.Namespace) -> AnnSettings:
    """The recall to reach, with the encoded queries of --topics."""
    from pyserini_repbert.extensions.approximate.making import AnnSettings
    from pyserini_repbert.indexes.kind import SearchOptions, kind_of
    from pyserini_repbert.indexes.machine import Machine
    from pyserini_repbert.names.topics import load_topics

    queries = None
    if options.topics:
        index = kind_of(options.index).open(options.index, SearchOptions(encoder=options.encoder))
        with contextlib.closing(index):
            ranking: Any = index.ranking(options.ranking, Machine())
            queries = ranking.encode([topic.text for topic in load_topics(options.topics)])
    settings = command.pick_options(options, 'kind', 'recall', 'hits', 'threads')
    return AnnSettings(queries=queries, sample=options.topics, **settings)
