"""`python -m pyserini_repbert.index`: bring collections up to date; build EPIC and Lucene
indexes; check and export indexes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.command import EXIT_UNREAD, Action
from pyserini_repbert.commands.console import printable
from pyserini_repbert.commands.encoding import (
    add_encoding_arguments,
    check_encoding_flags,
    encode,
    term_weights_kind,
)
from pyserini_repbert.commands.flags import add_flags, check_outside, record_output
from pyserini_repbert.commands.outputs import OutputPath
from pyserini_repbert.commands.terminal import say_encodings, say_unread, skipped_text
from pyserini_repbert.data.word_forms import WordForms
from pyserini_repbert.extension import commands_below
from pyserini_repbert.extension_words import refuse_missing_command
from pyserini_repbert.lucene.languages import ENGLISH, LANGUAGES

if TYPE_CHECKING:
    from pyserini_repbert.data.passages import Corpus

# Values of --weights: dtypes of a bundle of term weights; EPIC's are rounded.
WEIGHTS = {'fp32': 'float32', 'fp16': 'float16', 'uint8': 'uint8'}
_EPIC_WEIGHTS = ('fp16', 'uint8')
_VARIANTS = ('bm25', 'doc2query', 'docTTTTTquery', 'deepct', 'epic-impact')
_FLAGS_OF_IMPACTS: tuple[str, ...] = ('vectors', 'encoder')
_FLAGS_OF_CORPORA: tuple[str, ...] = (
    'corpus',
    'predictions',
    'weights',
    'topk',
    'sqrt',
    'language',
    'unite_words',
)


def make_parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of the command's flags.

    With `arguments`, it has only the flags of the actions that they name: the flags of all take
    longer to make than many an action does.
    """
    parser = command.parser(
        'index',
        'Keep collections up to date. Build, check and export indexes.',
    )
    actions = parser.add_subparsers(required=True, metavar='ACTION')
    for name, action in all_actions().items():
        description = f'{action.help[0].upper()}{action.help[1:]}.'
        flags = actions.add_parser(name, help=action.help, description=description)
        flags.add_argument(
            '--quiet', action='store_true', default=argparse.SUPPRESS, help='no progress bars'
        )
        flags.set_defaults(action=action.act)
        if arguments is None or name in arguments:
            action.add_flags(flags)
    return parser


def all_actions() -> dict[str, Action]:
    """The actions by name: extensions', then ours."""
    actions: dict[str, Action] = {
        name: Action(found.command.help, found.add_flags, found.run)
        for name, found in commands_below('index').items()
    }
    return {**actions, **ACTIONS}


def main(arguments: list[str]) -> int:
    """Do what the first argument names: make, prune, check or export an index.

    Returns the exit status.
    """
    if arguments:
        refuse_missing_command(f'index {arguments[0]}')
    options = make_parser(arguments).parse_args(arguments)
    return int(options.action(options) or 0)


def _add_check_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--index', required=True, help='an index folder or a catalog name')
    parser.add_argument('--encoder', help='the encoder of a catalog index')


def _check(options: argparse.Namespace) -> None:
    from pyserini_repbert.indexes.kind import kind_of
    from pyserini_repbert.names.indexes import ready_folder

    folder = ready_folder(options.index, options.encoder)
    print(kind_of(options.index).verify(folder, lambda text: print(printable(text))))


def _add_export_flags(parser: argparse.ArgumentParser) -> None:
    _add_check_flags(parser)
    parser.add_argument(
        '--to-faiss',
        required=True,
        type=OutputPath,
        metavar='FOLDER',
        help='the folder to write',
    )
    parser.add_argument(
        '--install', metavar='NAME', help='also make it a prebuilt index of Pyserini by this name'
    )
    add_flags(parser, 'overwrite')


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


def _add_epic_flags(parser: argparse.ArgumentParser) -> None:
    add_encoding_arguments(
        parser,
        encoder='an EPIC checkpoint: catalog name or folder',
        store_text='keep the passages, for explaining scores',
    )
    parser.add_argument(
        '--prune',
        type=command.pruned_to,
        default=1000,
        help="weights to keep of each passage, 'all' or 0 for all",
    )
    parser.add_argument(
        '--weights', choices=_EPIC_WEIGHTS, default='fp16', help='how a weight is stored'
    )


def _epic(options: argparse.Namespace) -> int:
    check_encoding_flags(options)
    from pyserini_repbert.index.term_weights import TermWeightsBundle
    from pyserini_repbert.systems.epic.encoder import EpicEncoder

    def describe(manifest: Any) -> str:
        bundle = TermWeightsBundle(options.output, verify=False)
        terms = f'{bundle.settings.prune} terms' if bundle.settings.prune else 'all terms'
        size = f'{bundle.bytes_per_passage():,.0f} bytes a passage'
        return f'{len(bundle)} passages x {terms}, {size}'

    kind = term_weights_kind(EpicEncoder, options.prune, WEIGHTS[options.weights])
    return encode(options, replace(kind, describe=describe))


def _add_sparse_flags(parser: argparse.ArgumentParser) -> None:
    add_encoding_arguments(
        parser,
        encoder='a SparseEncoder of sentence-transformers, such as SPLADE: its folder',
        store_text='keep the passages, for showing and reranking them',
    )
    parser.add_argument(
        '--prune',
        type=command.pruned_to,
        default=0,
        help="weights to keep of each passage, 'all' or 0 for all; default: all",
    )
    parser.add_argument(
        '--weights', choices=tuple(WEIGHTS), default='fp32', help='how a weight is stored'
    )


def _sparse(options: argparse.Namespace) -> int:
    check_encoding_flags(options)
    from pyserini_repbert.systems.sparse_encoder.encoder import SparseTextEncoder

    kind = term_weights_kind(SparseTextEncoder, options.prune, WEIGHTS[options.weights])
    return encode(options, kind)


def _add_prune_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('--index', required=True, help='an index of term weights: EPIC or SparseEncoder')
    add('--output', required=True, type=OutputPath, help='the index folder to write')
    add(
        '--prune',
        type=command.pruned_to,
        help="weights to keep of each passage, 'all' or 0 for all; default: as before",
    )
    add('--weights', choices=tuple(WEIGHTS), help='how a weight is stored; default: as before')
    add('--shard-size', type=command.positive_int, help='passages in a shard; default: as before')
    add_flags(parser, 'begun')


def _prune(options: argparse.Namespace) -> None:
    from pyserini_repbert.encode.pruning import prune_bundle
    from pyserini_repbert.index.term_weights import TermWeightsBundle

    before = TermWeightsBundle(options.index)
    prune = before.settings.prune if options.prune is None else options.prune
    weights = WEIGHTS.get(options.weights, before.settings.weights)
    settings = command.pick_options(options, 'output', 'shard_size', 'resume', 'overwrite')
    with command.progress(len(before), 'prune', 'passages', options.quiet) as bar:
        pruned = prune_bundle(
            before, prune=prune, weights=weights, on_progress=bar.update, **settings
        )
    record_output(options, options.output, ('index',))
    shards = command.count_text(len(pruned.shards), 'shard')
    print(
        f'{options.output}: {len(pruned)} passages in {shards}, {pruned.bytes_per_passage():,.0f} '
        f'bytes a passage'
    )


def _add_lucene_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add('--corpus', help='file, folder, Lucene index, ir_datasets:ID, or a catalog name')
    add('--output', required=True, type=OutputPath, help='folder of the new index')
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
        help="DeepCT's test_results.tsv, or JSON lines with repeated terms",
    )
    add('--sqrt', action='store_true', help='DeepCT: term frequency round(100 sqrt(y))')
    add(
        '--vectors',
        metavar='INDEX',
        help='epic-impact: the index of term weights (EPIC or SparseEncoder) that become impacts',
    )
    add('--encoder', help='epic-impact: the checkpoint of --vectors; default: the one it names')
    add(
        '--language',
        choices=LANGUAGES,
        metavar='CODE',
        help=f"language of the corpus, for Lucene's analyzer: {', '.join(LANGUAGES)}; default: en",
    )
    add(
        '--unite-words',
        action='store_true',
        help='index words in one form, however their characters are written: accents as separate '
        'characters, soft hyphens, full width; default: as they are written',
    )
    add('--threads', type=command.threads, default=1, help='documents analysed at a time')
    add_flags(parser, 'corpus_format', 'fields', 'on_error', 'overwrite')


def _check_variant(options: argparse.Namespace, is_impact: bool) -> None:
    """Raise InputError if a flag is missing, or is one of other variants."""
    needed = 'vectors' if is_impact else 'corpus'
    of_others = _FLAGS_OF_CORPORA if is_impact else _FLAGS_OF_IMPACTS
    foreign = [name for name in of_others if getattr(options, name)]
    hint = f'; --{foreign[0]} is for others' if foreign else ''
    is_missing = not getattr(options, needed)
    command.refuse(foreign or is_missing, f'variant {options.variant} takes --{needed}{hint}')


def _lucene(options: argparse.Namespace) -> int:
    check_outside(options.output, options.corpus)
    is_impact = options.variant == 'epic-impact'
    _check_variant(options, is_impact)
    if options.threads > 1:
        from pyserini_repbert.lucene.jvm import start_for_several_threads

        start_for_several_threads()
    if is_impact:
        text = _build_impact_index(options)
        record_output(options, options.output, ('vectors',))
        print(f'{options.output}: {text}')
        return 0
    corpus = _open_corpus(options)
    text = _build_text_index(options, corpus)
    record_output(options, options.output, ('corpus', 'predictions', 'weights'))
    print(f'{options.output}: {text}{skipped_text(corpus.skipped)}')
    say_unread(corpus.unread, corpus.unread.broken)
    say_encodings(corpus.encodings)
    return EXIT_UNREAD if corpus.unread.broken else 0


def _build_impact_index(options: argparse.Namespace) -> str:
    """Index the weights of a bundle; returns what the new index holds."""
    from pyserini_repbert.index.impact_index import build_impact_index
    from pyserini_repbert.index.term_weights import TermWeightsBundle
    from pyserini_repbert.indexes.term_weights.opening import term_names_of

    with command.progress(None, 'indexing', 'passages', options.quiet) as bar:
        bundle = TermWeightsBundle(options.vectors)
        n_passages = build_impact_index(
            bundle,
            term_names_of(bundle, options.encoder),
            options.output,
            options.threads,
            overwrite=options.overwrite,
            on_progress=bar.update,
        )
    return f'{command.count_text(n_passages, "passage")} ({options.variant})'


def _open_corpus(options: argparse.Namespace) -> Corpus:
    from pyserini_repbert.names.corpora import open_corpus

    return open_corpus(
        options.corpus,
        options.corpus_format,
        options.fields,
        options.on_error,
        keep_empty=options.variant != 'bm25',
    )


def _build_text_index(options: argparse.Namespace, corpus: Corpus) -> str:
    """Index the words of a corpus; returns what the new index holds."""
    from pyserini_repbert.index.lucene import build_lucene_index

    with command.progress(None, 'indexing', 'passages', options.quiet) as bar:
        n_passages = build_lucene_index(
            corpus,
            options.output,
            variant=options.variant,
            predictions=options.predictions,
            weights=options.weights,
            topk=options.topk,
            sqrt=options.sqrt,
            threads=options.threads,
            overwrite=options.overwrite,
            on_progress=bar.update,
            language=options.language or ENGLISH,
            word_forms=WordForms.UNITED if options.unite_words else WordForms.WRITTEN,
        )
    return f'{command.count_text(n_passages, "passage")} ({options.variant})'


ACTIONS = {
    'check': Action('compare every file of an index with its checksum', _add_check_flags, _check),
    'export': Action("write a dense index as Pyserini's FAISS layout", _add_export_flags, _export),
    'epic': Action("build an index of EPIC's vectors from a corpus", _add_epic_flags, _epic),
    'sparse': Action(
        "build an index of a SparseEncoder's weights from a corpus", _add_sparse_flags, _sparse
    ),
    'epic-prune': Action(
        'build a smaller index of term weights, of EPIC or a SparseEncoder',
        _add_prune_flags,
        _prune,
    ),
    'lucene': Action('build a Lucene index, expanded or not', _add_lucene_flags, _lucene),
}
