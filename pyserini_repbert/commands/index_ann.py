"""The command `index ann`: an approximate index for a dense bundle, in its folder."""

from __future__ import annotations

import argparse

from pyserini_repbert.commands.command import finite_number, positive_int, progress, threads


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument('--index', required=True, help='a dense bundle or a catalog name')
    parser.add_argument('--encoder', help='of a catalog index, and of --topics')
    parser.add_argument('--kind', default='pq', choices=('pq', 'hnsw', 'ivf'), help='pq by default')
    parser.add_argument('--recall', type=finite_number, default=0.98, help='of exact search, 0.98 by default')
    parser.add_argument('--hits', type=positive_int, default=1000, help='that recall is measured at, 1000 by default')
    parser.add_argument('--topics', help='queries to measure on; by default passages with noise')
    parser.add_argument('--threads', type=threads, default=1, help='of FAISS; an hnsw of several differs each time')
    parser.add_argument('--overwrite', action='store_true', help='replace an approximate index that is there')


def run(options: argparse.Namespace) -> None:
    """Build the approximate index; print its settings, the recall that it reaches and its size."""
    from pyserini_repbert.files import human_size
    from pyserini_repbert.index.ann import ANN, INDEX
    from pyserini_repbert.index.dense import DenseBundle
    from pyserini_repbert.names.indexes import existing_folder
    from pyserini_repbert.search.ann_building import build_ann

    folder = existing_folder(options.index, options.encoder)
    bundle = DenseBundle(folder)
    queries = None
    if options.topics:
        from pyserini_repbert.names.topics import load_topics
        from pyserini_repbert.search.dense import RepBertSearcher

        searcher = RepBertSearcher(folder, options.encoder, verify=False)
        queries = searcher.encode([topic.text for topic in load_topics(options.topics)])
    with progress(len(bundle), 'add', 'vectors', options.quiet) as bar:
        record = build_ann(
            bundle,
            options.kind,
            options.recall,
            options.hits,
            queries,
            options.topics,
            options.threads,
            options.overwrite,
            bar.update,
        )
    size = human_size((folder / ANN / INDEX).stat().st_size)
    print(f'{options.index}: {record}, {size}')
