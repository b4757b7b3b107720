"""`python -m pyserini_repbert.encode`: a corpus to a dense bundle; also what `index epic` shares with it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command, planned, recording
from pyserini_repbert.commands.advice import model_update
from pyserini_repbert.commands.output_files import check_outside

if TYPE_CHECKING:
    from pyserini_repbert.encode.sharding import Encoding
    from pyserini_repbert.index.records import Manifest


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a command that runs an encoder: device, precision, offline."""
    parser.add_argument('--device', default='cpu', help='cpu, cuda, cuda:N or mps')
    command.add_precision_arguments(parser)
    parser.add_argument('--offline', action='store_true', help='never download')


def add_begun_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --resume and --overwrite, for a command that writes a bundle."""
    begun = parser.add_mutually_exclusive_group()
    begun.add_argument('--resume', action='store_true', help='go on with a run that was stopped')
    begun.add_argument('--overwrite', action='store_true', help='remove an index that is there')


def add_encoding_arguments(parser: argparse.ArgumentParser, encoder: str, store_text: str) -> None:
    """Add the flags of a command that encodes a corpus; `encoder` and `store_text` are the help of these two flags."""
    parser.add_argument('--corpus', help='file, folder, Lucene index, ir_datasets:ID, or catalog name')
    command.add_corpus_form(parser)
    parser.add_argument('--encoder', help=encoder)
    parser.add_argument('--output', required=True, help='the index folder')
    parser.add_argument('--max-length', type=command.positive_int, help='wordpieces kept of a passage')
    parser.add_argument('--store-text', action='store_true', help=store_text)
    parser.add_argument('--shard', default='0/1', metavar='I/N', help='encode the I-th of N parts, I from 0')
    parser.add_argument('--shard-size', type=command.positive_int, default=65536, help='passages in a shard')
    parser.add_argument('--batch-tokens', type=command.positive_int, help='padded tokens in a batch')
    command.add_threads(parser)
    parser.add_argument('--on-error', default='refuse', choices=('refuse', 'skip'), help='what to do with bad lines')
    planned.add_arguments(parser)
    add_begun_arguments(parser)
    add_model_arguments(parser)


def check_flags(options: argparse.Namespace) -> None:
    """Raises InputError for flags of `add_encoding_arguments` that do not go together."""
    planned.check(options)
    check_outside(options.output, options.corpus)


def encode(
    options: argparse.Namespace,
    kind: str,
    opened: Callable[..., Any],
    encoding_of: Callable[..., Encoding[Any]],
    told: Callable[[Manifest[Any]], str],
) -> None:
    """Do what the flags of `add_encoding_arguments` ask for: encode a corpus or a part of it, or carry out a plan.

    Parameters
    ----------
    kind : of the bundle: 'dense' or 'epic'
    opened : opens the encoder: `document_encoder` or `EpicEncoder`
    encoding_of : makes an encoding of the encoder: `dense_encoding` or `epic_encoding` with the command's settings
    told : describes a finished bundle to the user
    """
    command.use_threads(options.threads)
    command.keep_memory_flat()
    from pyserini_repbert.data.corpus_parts import check_can_be_cut
    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.encode.sharding import Part, build_bundle
    from pyserini_repbert.models.checkpoints.used import used_models
    from pyserini_repbert.names.corpora import open_corpus

    forbid_downloads(options.offline)
    if planned.is_about_a_plan(options):
        manifest = planned.run(options, kind)
        if manifest is not None:
            print(f'{options.output}: {told(manifest)}')
        return
    part = Part.parse(options.shard)
    corpus = open_corpus(options.corpus, options.corpus_format, options.fields, options.on_error)
    if options.plan or options.ray is not None:
        check_can_be_cut(corpus)
    encoder = opened(
        options.encoder, options.device, precision=command.precision(options), max_length=options.max_length
    )
    encoding = partial(
        encoding_of,
        encoder,
        store_text=options.store_text,
        shard_size=options.shard_size,
        token_budget=options.batch_tokens,
    )
    if options.plan:
        planned.plan(options, corpus, encoding().settings)
        return
    if options.ray is not None:
        manifest = planned.on_ray(options, corpus, encoding().settings)
    else:
        with command.progress(corpus.count_hint(), 'encode', 'passages', options.quiet) as bar:
            update = model_update(bar.update, options)
            manifest = build_bundle(
                corpus,
                options.output,
                encoding(on_progress=update),
                part=part,
                resume=options.resume,
                overwrite=options.overwrite,
                on_progress=update,
            )
    skipped = f', {corpus.skipped} lines skipped' if corpus.skipped else ''
    if manifest is None:
        print(f'{options.output}: part {options.shard} is done{skipped}; other parts have shards to encode yet')
        return
    recording.write(options, options.output, ('corpus',), used_models([encoder]))
    print(f'{options.output}: {told(manifest)}{skipped}')


def make_parser() -> argparse.ArgumentParser:
    """The command's flags."""
    parser = command.parser('encode', 'Encode a corpus into a dense bundle: an index folder for exact search.')
    add_encoding_arguments(
        parser, 'catalog name or checkpoint folder', 'keep the passages, for showing and reranking them'
    )
    parser.add_argument('--vector-dtype', default='float32', help='float32 or float16, of the stored vectors')
    return parser


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = make_parser().parse_args(arguments)
    check_flags(options)
    from pyserini_repbert.encode.corpus import dense_encoding
    from pyserini_repbert.encode.opening import document_encoder

    def told(manifest: Manifest[Any]) -> str:
        stored = f'{manifest.settings.dimension} {manifest.settings.dtype}'
        return f'{manifest.count} passages x {stored} in {command.counted(len(manifest.shards), "shard")}'

    encode(options, 'dense', document_encoder, partial(dense_encoding, dtype=options.vector_dtype), told)
    return 0
