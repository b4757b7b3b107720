"""`python -m pyserini_repbert.index lucene`: a Lucene index of a corpus, plain, expanded or reweighted."""

from __future__ import annotations

import argparse

from pyserini_repbert.commands import recording
from pyserini_repbert.commands.command import add_corpus_form, positive_int, progress, threads, usage
from pyserini_repbert.commands.output_files import check_outside

VARIANTS = ('bm25', 'doc2query', 'docTTTTTquery', 'deepct', 'epic-impact')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument('--corpus', help='file, folder, Lucene index, ir_datasets:ID, or a catalog name')
    parser.add_argument('--output', required=True, help='folder of the new index')
    parser.add_argument('--variant', choices=VARIANTS, default='bm25', help='what Lucene sees of a passage')
    parser.add_argument(
        '--predictions', nargs='+', metavar='FILE', help='predicted queries, in the order of the corpus'
    )
    parser.add_argument('--topk', type=positive_int, help='predicted queries of each passage to append (default all)')
    parser.add_argument(
        '--weights', nargs='+', metavar='FILE', help="DeepCT's test_results.tsv, or weighted JSON lines"
    )
    parser.add_argument('--sqrt', action='store_true', help='DeepCT: term frequency round(100 sqrt(y))')
    parser.add_argument('--vectors', metavar='INDEX', help='epic-impact: the EPIC index whose weights become impacts')
    parser.add_argument('--encoder', help='epic-impact: the checkpoint of --vectors; default: the one it names')
    parser.add_argument('--threads', type=threads, default=1, help='documents analysed at a time')
    add_corpus_form(parser)
    parser.add_argument('--on-error', choices=('refuse', 'skip'), default='refuse', help='what to do with bad lines')


def run(arguments: argparse.Namespace) -> None:
    """Build the index, and print how many passages it holds."""
    check_outside(arguments.output, arguments.corpus)
    if arguments.variant == 'epic-impact':
        _run_epic_impact(arguments)
        return
    if arguments.corpus is None or arguments.encoder or arguments.vectors:
        raise usage(f'variant {arguments.variant} takes --corpus; --vectors and --encoder are for epic-impact')
    from pyserini_repbert.index.lucene import build_lucene_index
    from pyserini_repbert.names.corpora import open_corpus

    expanded = arguments.variant != 'bm25'
    corpus = open_corpus(
        arguments.corpus, arguments.corpus_format, arguments.fields, arguments.on_error, keep_empty=expanded
    )
    predictions = arguments.predictions
    if predictions is not None and len(predictions) == 1:
        predictions = predictions[0]
    with progress(None, 'indexing', 'passages', arguments.quiet) as bar:
        count = build_lucene_index(
            corpus,
            arguments.output,
            arguments.variant,
            predictions,
            arguments.weights,
            arguments.topk,
            arguments.sqrt,
            arguments.threads,
            bar.update,
        )
    recording.write(arguments, arguments.output, ('corpus', 'predictions', 'weights'))
    print(f'{arguments.output}: {count} passages ({arguments.variant})')


def _run_epic_impact(arguments: argparse.Namespace) -> None:
    unused = ('predictions', 'weights', 'topk', 'sqrt', 'corpus')
    given = [name for name in unused if getattr(arguments, name)]
    if arguments.vectors is None or given:
        raise usage('variant epic-impact takes --vectors' + (f'; --{given[0]} is for others' if given else ''))
    from pyserini_repbert.index.epic import EpicBundle
    from pyserini_repbert.index.epic_impact import build_impact_index, vocabulary_of

    bundle = EpicBundle(arguments.vectors)
    tokens = vocabulary_of(bundle, arguments.encoder)
    with progress(len(bundle), 'indexing', 'passages', arguments.quiet) as bar:
        count = build_impact_index(bundle, tokens, arguments.output, arguments.threads, on_progress=bar.update)
    recording.write(arguments, arguments.output, ('vectors',))
    print(f'{arguments.output}: {count} passages (epic-impact)')
