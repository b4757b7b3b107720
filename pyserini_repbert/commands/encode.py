"""`python -m pyserini_repbert.encode`: a corpus to a dense bundle; also what `index epic` shares
with it.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.flags import add_flags, check_outside, record_output
from pyserini_repbert.commands.terminal import cut_text, say_device, skipped_text, stages_text
from pyserini_repbert.data.passages import Corpus
from pyserini_repbert.names.corpora import open_corpus

_ARENA_MAX = -8  # M_ARENA_MAX of GNU's <malloc.h>


def add_encoding_arguments(parser: argparse.ArgumentParser, encoder: str, store_text: str) -> None:
    """Add the flags of a command that encodes a corpus; `encoder` and `store_text` are the help
    of these two flags.
    """
    add = parser.add_argument
    add('--corpus', help='file, folder, Lucene index, ir_datasets:ID, or catalog name')
    add_flags(parser, 'corpus_format', 'fields')
    add('--encoder', help=encoder)
    add('--output', required=True, help='the index folder to make')
    add('--max-length', type=command.positive_int, help='wordpieces kept of a passage')
    add('--store-text', action='store_true', help=store_text)
    add('--shard', metavar='I/N', help='encode the I-th of N parts of the corpus, I from 0')
    add(
        '--shard-id',
        type=command.zero_or_more,
        metavar='I',
        help="the I of --shard, by Pyserini's flag",
    )
    add(
        '--shard-num',
        type=command.positive_int,
        metavar='N',
        help='the N of --shard; with --ray, how many parts',
    )
    together = parser.add_mutually_exclusive_group()
    together.add_argument(
        '--finish', action='store_true', help='check the parts in --output, and join them'
    )
    add_flags(together, 'ray')
    add('--shard-size', type=command.positive_int, default=65536, help='passages in a shard')
    add('--batch-tokens', type=command.positive_int, help='padded tokens in a batch')
    add_flags(parser, 'threads', 'workers', 'on_error', 'begun', 'device', 'precision', 'offline')


def check_flags(options: argparse.Namespace) -> None:
    """Fill in `shard` from Pyserini's flags. Raises InputError for flags that do not go
    together.
    """
    flags = [given.partition('=')[0] for given in options.command if given.startswith('--')]
    if options.finish or options.ray is not None:
        # Said again as it was, the command goes on.
        command.Parser.resumable = None
    if options.finish:
        for flag in flags:
            fits = flag in ('--output', '--finish', '--overwrite', '--quiet')
            command.refuse(
                not fits,
                f'{flag} does not go with --finish, which takes its settings from the parts',
            )
        return
    missing = [f'--{name}' for name in ('corpus', 'encoder') if getattr(options, name) is None]
    command.refuse(missing, f'the following arguments are required: {", ".join(missing)}')
    for flag in (
        ('--shard', '--shard-id', '--resume', '--workers') if options.ray is not None else ()
    ):
        why = 'which makes all parts that are missing, by workers that tokenise themselves'
        command.refuse(flag in flags, f'{flag} does not go with --ray, {why}')
    if options.ray is None and (options.shard_id, options.shard_num) != (None, None):
        alone = options.shard or options.shard_id is None or options.shard_num is None
        command.refuse(
            alone, '--shard-id and --shard-num go together, and without --shard: give both'
        )
        options.shard = f'{options.shard_id}/{options.shard_num}'
    check_outside(options.output, options.corpus)


def encode(
    options: argparse.Namespace,
    settings: type[Any],  # of the bundle
    opened: Callable[..., Any],  # opens the encoder
    encoding_of: Callable[..., Any],
    described: Callable[[Any], str],  # what the user reads of a finished bundle
) -> None:
    """Do what the flags of `add_encoding_arguments` ask for: encode a corpus or a part of it, or
    put parts together.
    """
    command.use_threads(options.threads)
    if sys.platform == 'linux' and hasattr(libc := ctypes.CDLL(None), 'mallopt'):
        libc.mallopt(
            _ARENA_MAX, 1
        )  # by default memory freed in one thread is not used again by the others
    from pyserini_repbert.encode.parts import EncodingPart, finish_parts, part_folder
    from pyserini_repbert.encode.sharding import build_bundle
    from pyserini_repbert.models.checkpoints.checkpoint import used_models
    from pyserini_repbert.models.tokenizer import share_workers, usual_workers
    from pyserini_repbert.record import checksum, read_record, write_record

    say_device(options)
    if options.finish:
        recorded = [
            read_record(path) for path in Path(options.output).glob('part-0-of-*') if path.is_dir()
        ]
        manifest = finish_parts(options.output, settings, options.overwrite)
        if recorded and recorded[0] is not None:
            write_record(options.output, replace(recorded[0], output=str(checksum(options.output))))
        print(f'{options.output}: {described(manifest)}')
        return
    part = EncodingPart.parse(options.shard or '0/1')
    corpus = open_corpus(options.corpus, options.corpus_format, options.fields, options.on_error)
    encoder = opened(
        options.encoder, options.device, precision=options.precision, max_length=options.max_length
    )
    stored = command.picked(options, 'store_text', 'shard_size')
    encoding = partial(encoding_of, encoder, token_budget=options.batch_tokens, **stored)
    output = options.output
    if options.ray is not None:
        manifest = _on_ray(options, corpus, encoding().settings)
    else:
        tokenizers = [encoder.tokenizer] if hasattr(encoder, 'tokenizer') else []
        share_workers(
            tokenizers,
            usual_workers(options.device) if options.workers is None else options.workers,
        )
        if part.of > 1:
            corpus = corpus.part(part.index, part.of, options.shard_size)
            output = part_folder(output, part, options.overwrite)
        with command.progress(corpus.count_hint(), 'encode', 'passages', options.quiet) as bar:
            staged = encoding(on_progress=bar.update)
            manifest = build_bundle(
                corpus, output, staged, resume=options.resume, overwrite=options.overwrite
            )
        if not options.quiet:
            print(stages_text(staged.times, tokenizers), file=sys.stderr)
    record_output(options, str(output), ('corpus',), used_models(encoder))
    text = (
        f'part {options.shard} is done, {manifest.count} passages'
        if part.of > 1
        else described(manifest)
    )
    print(f'{options.output}: {text}{skipped_text(corpus)}{cut_text(encoder)}')


def _on_ray(options: argparse.Namespace, corpus: Corpus, settings: Any) -> Any:
    from pyserini_repbert.pipeline.ray_shards import EncodeParts, encode_parts
    from pyserini_repbert.pipeline.ray_workers import connected

    def shared(name: str) -> str:
        return str(Path(name).absolute()) if Path(name).exists() else name

    paths = getattr(corpus, 'paths', [])
    # Rows of a single file are counted exactly: no part may be empty.
    passages = (corpus.count_hint() if len(paths) > 1 else None) or sum(1 for _ in corpus)
    parts = options.shard_num or (
        len(paths) if len(paths) > 1 else max(1, -(-passages // options.shard_size))
    )
    work = EncodeParts(
        output=str(Path(options.output).absolute()),
        parts=parts,
        corpus=shared(options.corpus),
        fields=tuple(options.fields or ()),
        encoder=shared(options.encoder),
        settings=settings,
        **command.picked(options, 'corpus_format', 'on_error', 'batch_tokens', 'device', 'offline'),
    )
    with (
        connected(options.ray, options.threads, options.device not in ('cpu', 'auto')) as fleet,
        command.progress(passages, 'encode', 'passages', options.quiet) as bar,
    ):
        return encode_parts(fleet, work, options.overwrite, bar.update)


def main(arguments: list[str]) -> None:
    """Encode a corpus, or a part of it, into a dense index, and print what it holds."""
    parser = command.parser('encode', 'Make an index of vectors from a corpus.')
    encoder = 'catalog name or checkpoint folder'
    store_text = 'keep the passages, for showing and reranking them'
    add_encoding_arguments(parser, encoder, store_text)
    parser.add_argument(
        '--vector-dtype',
        choices=('float32', 'float16'),
        default='float32',
        help='of stored vectors',
    )
    options = parser.parse_args(arguments)
    check_flags(options)
    from pyserini_repbert.encode.dense import dense_encoding
    from pyserini_repbert.index.records import Settings
    from pyserini_repbert.systems.encoders import document_encoder

    def described(manifest: Any) -> str:
        stored = f'{manifest.settings.dimension} {manifest.settings.dtype}'
        return (
            f'{manifest.count} passages x {stored} in '
            f'{command.counted(len(manifest.shards), "shard")}'
        )

    encode(
        options,
        Settings,
        document_encoder,
        partial(dense_encoding, dtype=options.vector_dtype),
        described,
    )
