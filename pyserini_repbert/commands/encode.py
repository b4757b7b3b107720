"""`python -m pyserini_repbert.encode`: a corpus into a dense bundle."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command, planned, recording
from pyserini_repbert.commands.advice import model_update
from pyserini_repbert.commands.output_files import check_outside

if TYPE_CHECKING:
    from pyserini_repbert.encode.sharding import Part
    from pyserini_repbert.index.records import Manifest


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of a command that runs an encoder: device, precision, offline."""
    parser.add_argument('--device', default='cpu', help='cpu, cuda, cuda:N or mps')
    command.add_precision_arguments(parser)
    parser.add_argument('--offline', action='store_true', help='never download')


def stored(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of how a bundle is stored, dense or EPIC."""
    return {
        'store_text': options.store_text,
        'shard_size': options.shard_size,
        'token_budget': options.batch_tokens,
    }


def going(options: argparse.Namespace, part: Part, update: Callable[[int], object]) -> dict[str, Any]:
    """Settings of how its encoding proceeds."""
    return {
        'part': part,
        'resume': options.resume,
        'overwrite': options.overwrite,
        'on_progress': model_update(update, options),
    }


def make_parser() -> argparse.ArgumentParser:
    """The command's flags."""
    parser = command.parser('encode', 'Encode a corpus into a dense bundle: an index folder for exact search.')
    parser.add_argument('--corpus', help='file, folder, Lucene index, ir_datasets:ID, or catalog name')
    command.add_corpus_form(parser)
    parser.add_argument('--encoder', help='catalog name or checkpoint folder')
    parser.add_argument('--output', required=True, help='the index folder')
    parser.add_argument('--max-length', type=command.positive_int, help='wordpieces kept of a passage')
    parser.add_argument('--vector-dtype', default='float32', help='float32 or float16, of the stored vectors')
    parser.add_argument('--store-text', action='store_true', help='keep the passages, for showing and reranking them')
    parser.add_argument('--shard', default='0/1', metavar='I/N', help='encode the I-th of N parts, I from 0')
    parser.add_argument('--shard-size', type=command.positive_int, default=65536, help='passages in a shard')
    parser.add_argument('--batch-tokens', type=command.positive_int, help='padded tokens in a batch')
    command.add_threads(parser)
    parser.add_argument('--on-error', default='refuse', choices=('refuse', 'skip'), help='what an unusable line does')
    planned.add_arguments(parser)
    begun = parser.add_mutually_exclusive_group()
    begun.add_argument('--resume', action='store_true', help='go on with a run that was stopped')
    begun.add_argument('--overwrite', action='store_true', help='remove an index that is there')
    add_model_arguments(parser)
    return parser


def main(arguments: list[str]) -> int | None:
    """Run the command."""
    options = make_parser().parse_args(arguments)
    about_a_plan = planned.check(options, arguments)
    check_outside(options.output, options.corpus)
    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.encode.corpus import dense_encoding, encode_corpus
    from pyserini_repbert.encode.opening import document_encoder
    from pyserini_repbert.encode.sharding import Part
    from pyserini_repbert.formats.corpus_parts import check_can_be_cut
    from pyserini_repbert.models.checkpoints.used import used_models
    from pyserini_repbert.names.corpora import open_corpus

    forbid_downloads(options.offline)
    command.use_threads(options.threads)
    command.keep_memory_flat()
    if about_a_plan:
        manifest = planned.run(options, 'dense')
        return _report(options.output, manifest) if manifest is not None else 0
    part = Part.parse(options.shard)
    corpus = open_corpus(options.corpus, options.corpus_format, options.fields, options.on_error)
    if options.plan or options.ray is not None:
        check_can_be_cut(corpus)
    encoder = document_encoder(
        options.encoder, options.device, precision=command.precision(options), max_length=options.max_length
    )
    settings = {'dtype': options.vector_dtype, **stored(options)}
    if options.plan:
        return planned.plan(options, corpus, dense_encoding(encoder, **settings).settings)
    if options.ray is not None:
        manifest = planned.on_ray(options, corpus, dense_encoding(encoder, **settings).settings)
        recording.write(options, options.output, ('corpus',), used_models([encoder]))
        return _report(options.output, manifest)
    with command.progress(corpus.count_hint(), 'encode', 'passages', options.quiet) as bar:
        manifest = encode_corpus(
            corpus,
            encoder,
            options.output,
            **settings,
            **going(options, part, bar.update),
        )
    skipped = f', {corpus.skipped} lines skipped' if corpus.skipped else ''
    if manifest is not None:
        recording.write(options, options.output, ('corpus',), used_models([encoder]))
        return _report(options.output, manifest, skipped)
    print(f'{options.output}: part {options.shard} is done{skipped}; other parts have shards to encode yet')
    return 0


def _report(output: str, manifest: Manifest[Any], skipped: str = '') -> int:
    stored = f'{manifest.settings.dimension} {manifest.settings.dtype}'
    print(f'{output}: {manifest.count} passages x {stored} in {len(manifest.shards)} shards{skipped}')
    return 0
