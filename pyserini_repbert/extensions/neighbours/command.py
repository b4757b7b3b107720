"""`index neighbours`: find the nearest documents of each document of an index."""

from __future__ import annotations

import argparse
import contextlib

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags as add_common_flags


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `index neighbours`."""
    add_common_flags(parser, 'overwrite')
    add = parser.add_argument
    add('--index', required=True, help='a collection, a dense index, or a catalog name')
    add('--encoder', help='the encoder of a catalog index')
    add(
        '--neighbours',
        type=command.positive_int,
        default=16,
        help='neighbours of each document',
    )
    add(
        '--ranking',
        default='dense',
        help='the ranking that finds them: dense, or bm25 of a collection',
    )
    add(
        '--threads',
        type=command.threads,
        default=1,
        help='CPU threads, or queries that Lucene answers at a time',
    )


def make_graph(options: argparse.Namespace) -> None:
    """Do `index neighbours`."""
    from pyserini_repbert.extensions.neighbours.building import build_neighbours
    from pyserini_repbert.indexes.kind import SearchOptions, kind_of
    from pyserini_repbert.indexes.machine import Machine
    from pyserini_repbert.names.indexes import ready_folder

    folder = ready_folder(options.index, options.encoder)
    machine = Machine(threads=options.threads)
    index = kind_of(str(folder)).open(str(folder), SearchOptions())
    with contextlib.closing(index):
        total = index.n_hits(machine)
        with command.progress(total, 'neighbours', 'documents', options.quiet) as bar:
            record = build_neighbours(
                index,
                machine,
                options.ranking,
                options.neighbours,
                overwrite=options.overwrite,
                on_progress=bar.update,
            )
    print(f'{options.index}: {record}, {total} documents')
