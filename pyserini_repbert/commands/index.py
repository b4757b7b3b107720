"""`python -m pyserini_repbert.index`: build EPIC, Lucene and approximate indexes; check and
export indexes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encode import add_encoding_arguments, check_flags, encode
from pyserini_repbert.commands.flags import add_flags, check_outside, record_output
from pyserini_repbert.commands.terminal import skipped_text

WEIGHTS = {'fp16': 'float16', 'uint8': 'uint8'}  # values of --weights: dtypes of an EPIC bundle
_VARIANTS = ('bm25', 'doc2query', 'docTTTTTquery', 'deepct', 'epic-impact')


def main(arguments: list[str]) -> None:
    """Do what the first argument names: make, prune, check or export an index."""
    flags = command.parser(
        'index', 'Make Lucene, EPIC and approximate indexes; check and export indexes.'
    )
    actions = flags.add_subparsers(required=True, metavar='ACTION')

    def action(name: str, act: Callable[[argparse.Namespace], None], text: str) -> command.Parser:
        new: command.Parser = actions.add_parser(
            name, help=text, description=f'{text[0].upper()}{text[1:]}.'
        )
        new.add_argument(
            '--quiet', action='store_true', default=argparse.SUPPRESS, help='no progress bars'
        )
        new.set_defaults(action=act)
        return new

    check = action('check', _check, 'compare every file of an index with its checksum')
    export = action('export', _export, "write a dense index as Pyserini's FAISS layout")
    for one in (check, export):
        one.add_argument('--index', required=True, help='an index folder or a catalog name')
        one.add_argument('--encoder', help='of a catalog index')
    export.add_argument('--to-faiss', required=True, metavar='FOLDER', help='the folder to write')
    export.add_argument(
        '--install', metavar='NAME', help='also make it a prebuilt index of Pyserini by this name'
    )
    add_flags(export, 'overwrite')

    ann = action('ann', _ann, 'make an approximate index for a dense index')
    add_flags(ann, 'overwrite')
    add = ann.add_argument
    add('--index', required=True, help='a dense index or a catalog name')
    add('--encoder', help='of a catalog index, and of --topics')
    add('--kind', default='pq', choices=('pq', 'hnsw', 'ivf'), help='kind of index')
    add(
        '--recall',
        type=command.finite_number,
        default=0.98,
        help='share of the hits of exact search to reach',
    )
    add('--hits', type=command.positive_int, default=1000, help='hits at which recall is measured')
    add('--topics', help='queries to measure on; default: passages with noise')
    add(
        '--threads',
        type=command.threads,
        default=1,
        help='of FAISS; with several, an hnsw differs each time',
    )

    epic = action('epic', _epic, "make an index of EPIC's vectors from a corpus")
    encoder = 'an EPIC checkpoint: catalog name or folder'
    store_text = 'keep the passages, for explaining scores'
    add_encoding_arguments(epic, encoder, store_text)
    epic.add_argument(
        '--prune',
        type=command.pruned_to,
        default=1000,
        help="weights kept of a passage, 'all' or 0 for all",
    )
    epic.add_argument(
        '--weights', choices=tuple(WEIGHTS), default='fp16', help='how a weight is stored'
    )

    smaller = action('epic-prune', _prune, 'make a smaller EPIC index')
    add = smaller.add_argument
    add('--index', required=True, help='an EPIC index')
    add('--output', required=True, help='the index folder to make')
    add(
        '--prune',
        type=command.pruned_to,
        help="weights kept of a passage, 'all' or 0 for all; default: as before",
    )
    add('--weights', choices=tuple(WEIGHTS), help='how a weight is stored; default: as before')
    add('--shard-size', type=command.positive_int, help='passages in a shard; default: as before')
    add_flags(smaller, 'begun')

    lucene = action('lucene', _lucene, 'make a Lucene index, expanded or not')
    add = lucene.add_argument
    add('--corpus', help='file, folder, Lucene index, ir_datasets:ID, or a catalog name')
    add('--output', required=True, help='folder of the new index')
    add(
        '--variant',
        choices=_VARIANTS,
        default='bm25',
        help='which words and weights Lucene indexes',
    )
    add(
        '--predictions',
        nargs='+',
        metavar='FILE',
        help='predicted queries, in the order of the corpus',
    )
    add(
        '--topk',
        type=command.positive_int,
        help='predicted queries of each passage to append; default: all',
    )
    add(
        '--weights',
        nargs='+',
        metavar='FILE',
        help="DeepCT's test_results.tsv, or JSON lines with terms repeated",
    )
    add('--sqrt', action='store_true', help='DeepCT: term frequency round(100 sqrt(y))')
    add(
        '--vectors',
        metavar='INDEX',
        help='epic-impact: the EPIC index whose weights become impacts',
    )
    add('--encoder', help='epic-impact: the checkpoint of --vectors; default: the one it names')
    add('--threads', type=command.threads, default=1, help='documents analysed at a time')
    add_flags(lucene, 'corpus_format', 'fields', 'on_error', 'overwrite')
    options = flags.parse_args(arguments)
    options.action(options)


def _check(options: argparse.Namespace) -> None:
    from pyserini_repbert.index.check import check_index
    from pyserini_repbert.names.indexes import ready_folder

    print(check_index(ready_folder(options.index, options.encoder)))


def _export(options: argparse.Namespace) -> None:
    from pyserini_repbert.index.dense import DenseBundle
    from pyserini_repbert.index.faiss_layout import export_faiss
    from pyserini_repbert.interop.pyserini import check_index_name, install_index
    from pyserini_repbert.names.indexes import ready_folder

    if options.install:
        check_index_name(options.install)
    bundle = DenseBundle(ready_folder(options.index, options.encoder))
    with command.progress(len(bundle), 'export', 'passages', options.quiet) as bar:
        export_faiss(bundle, options.to_faiss, bar.update, options.overwrite)
    record_output(options, options.to_faiss, ('index',))
    print(
        f'{options.to_faiss}: {len(bundle)} passages x {bundle.settings.dimension} '
        f'{bundle.settings.dtype}'
    )
    if options.install:
        print(f'{options.install}: {install_index(options.to_faiss, options.install)}')


def _ann(options: argparse.Namespace) -> None:
    from pyserini_repbert.files import human_size
    from pyserini_repbert.index.ann import ANN, INDEX
    from pyserini_repbert.index.dense import DenseBundle
    from pyserini_repbert.names.indexes import ready_folder
    from pyserini_repbert.names.topics import load_topics
    from pyserini_repbert.pipeline.opening import open_searcher
    from pyserini_repbert.pipeline.spec import PipelineSpec
    from pyserini_repbert.search.ann import build_ann

    bundle = DenseBundle(ready_folder(options.index, options.encoder))
    queries = None
    if options.topics:
        searcher = open_searcher(PipelineSpec(index=options.index, encoder=options.encoder))
        queries = searcher.encode([topic.text for topic in load_topics(options.topics)])
    with command.progress(len(bundle), 'add', 'vectors', options.quiet) as bar:
        settings = command.picked(options, 'kind', 'recall', 'hits', 'threads', 'overwrite')
        record = build_ann(
            bundle, queries=queries, sample=options.topics, on_progress=bar.update, **settings
        )
    print(f'{options.index}: {record}, {human_size((bundle.folder / ANN / INDEX).stat().st_size)}')


def _epic(options: argparse.Namespace) -> None:
    check_flags(options)
    from pyserini_repbert.index.epic import EpicBundle
    from pyserini_repbert.index.records import EpicSettings
    from pyserini_repbert.systems.epic.encoder import EpicEncoder
    from pyserini_repbert.systems.epic.encoding import epic_encoding

    def described(manifest: Any) -> str:
        bundle = EpicBundle(options.output, verify=False)
        kept = f'{bundle.settings.prune} terms' if bundle.settings.prune else 'all terms'
        return f'{len(bundle)} passages x {kept}, {bundle.bytes_per_passage():,.0f} bytes a passage'

    encoding_of = partial(epic_encoding, prune=options.prune, weights=WEIGHTS[options.weights])
    encode(options, EpicSettings, EpicEncoder, encoding_of, described)


def _prune(options: argparse.Namespace) -> None:
    from pyserini_repbert.index.epic import EpicBundle
    from pyserini_repbert.systems.epic.encoding import prune_epic_bundle

    before = EpicBundle(options.index)
    prune = before.settings.prune if options.prune is None else options.prune
    weights = WEIGHTS.get(options.weights, before.settings.weights)
    settings = command.picked(options, 'output', 'shard_size', 'resume', 'overwrite')
    with command.progress(len(before), 'prune', 'passages', options.quiet) as bar:
        pruned = prune_epic_bundle(
            before, prune=prune, weights=weights, on_progress=bar.update, **settings
        )
    record_output(options, options.output, ('index',))
    shards = command.counted(len(pruned.shards), 'shard')
    print(
        f'{options.output}: {len(pruned)} passages in {shards}, {pruned.bytes_per_passage():,.0f} '
        f'bytes a passage'
    )


def _lucene(options: argparse.Namespace) -> None:
    check_outside(options.output, options.corpus)
    impact = options.variant == 'epic-impact'
    needed, *more = (
        ('vectors', 'encoder') if impact else ('corpus', 'predictions', 'weights', 'topk', 'sqrt')
    )
    given = command.picked(
        options, 'vectors', 'encoder', 'corpus', 'predictions', 'weights', 'topk', 'sqrt'
    )
    foreign = [name for name, value in given.items() if value and name not in (needed, *more)]
    other = f'; --{foreign[0]} is for others' if foreign else ''
    command.refuse(other or not given[needed], f'variant {options.variant} takes --{needed}{other}')
    skipped = ''
    with command.progress(None, 'indexing', 'passages', options.quiet) as bar:
        if impact:
            from pyserini_repbert.index.epic import EpicBundle
            from pyserini_repbert.index.epic_impact import build_impact_index, vocabulary_of

            bundle = EpicBundle(options.vectors)
            tokens = vocabulary_of(bundle, options.encoder)
            count = build_impact_index(
                bundle,
                tokens,
                options.output,
                options.threads,
                overwrite=options.overwrite,
                on_progress=bar.update,
            )
        else:
            from pyserini_repbert.index.lucene import build_lucene_index
            from pyserini_repbert.names.corpora import open_corpus

            read = (options.corpus, options.corpus_format, options.fields, options.on_error)
            corpus = open_corpus(*read, keep_empty=options.variant != 'bm25')
            settings = command.picked(
                options,
                'output',
                'variant',
                'predictions',
                'weights',
                'topk',
                'sqrt',
                'threads',
                'overwrite',
            )
            count = build_lucene_index(corpus, on_progress=bar.update, **settings)
            skipped = skipped_text(corpus)
    record_output(
        options, options.output, ('vectors',) if impact else ('corpus', 'predictions', 'weights')
    )
    passages = command.counted(count, 'passage')
    print(f'{options.output}: {passages} ({options.variant}){skipped}')
