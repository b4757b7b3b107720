"""What `encode`, `index epic` and `index sparse` share.

These are the flags of an encoding, their checks, and its way from a corpus to an index.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.command import EXIT_UNREAD
from pyserini_repbert.commands.flags import add_flags, check_outside, record_output
from pyserini_repbert.commands.outputs import OutputPath
from pyserini_repbert.commands.terminal import (
    cut_text,
    say_device,
    say_encodings,
    say_unread,
    skipped_text,
    stages_text,
)
from pyserini_repbert.data.passages import Corpus

_ARENA_MAX = -8  # M_ARENA_MAX of GNU's <malloc.h>
_FLAGS_WITH_FINISH = ('--output', '--finish', '--overwrite', '--quiet')
_FLAGS_WITHOUT_RAY = ('--shard', '--shard-id', '--resume', '--workers')


@dataclass(frozen=True)
class EncodedIndex:
    """What differs between the indexes that are encoded from a corpus.

    Attributes
    ----------
    settings : the class of the index's settings
    open_encoder : opens an encoder by its name, on a device; also takes `precision` and
        `max_length`
    encoding : makes what `build_bundle` takes, from an encoder; also takes `token_budget`,
        `store_text`, `shard_size` and `on_progress`
    describe : says of a manifest what the index holds
    """

    settings: type[Any]
    open_encoder: Callable[..., Any]
    encoding: Callable[..., Any]
    describe: Callable[[Any], str]


def term_weights_kind(encoder_class: Any, prune: int, weights: str) -> EncodedIndex:
    """An index of term weights.

    Parameters
    ----------
    encoder_class : a subclass of `TermWeightsEncoder`
    prune : weights kept of a passage, 0 for all
    weights : their dtype
    """
    from pyserini_repbert.index.records import TermWeightsSettings

    return EncodedIndex(
        settings=TermWeightsSettings,
        open_encoder=encoder_class,
        encoding=partial(encoder_class.encoding, prune=prune, weights=weights),
        describe=_describe_weights,
    )


def _describe_weights(manifest: Any) -> str:
    """What an index of term weights holds."""
    settings = manifest.settings
    terms = f'{settings.prune} terms' if settings.prune else 'all terms'
    shards = command.count_text(len(manifest.shards), 'shard')
    return f'{manifest.count} passages x {terms} {settings.weights} in {shards}'


def add_encoding_arguments(parser: argparse.ArgumentParser, encoder: str, store_text: str) -> None:
    """Add the flags of a command that encodes a corpus; `encoder` and `store_text` are the help
    of these two flags.
    """
    add = parser.add_argument
    add('--corpus', help='file, folder, Lucene index, ir_datasets:ID, or catalog name')
    add_flags(parser, 'corpus_format', 'fields')
    add('--encoder', help=encoder)
    add('--output', required=True, type=OutputPath, help='the index folder to write')
    add('--max-length', type=command.positive_int, help='wordpieces of a passage to read at most')
    add('--store-text', action='store_true', help=store_text)
    add(
        '--shard',
        metavar='I/N',
        help='encode only part I of N parts of the corpus, counted from 0',
    )
    add(
        '--shard-id',
        type=command.zero_or_more,
        metavar='I',
        help="Pyserini's flag for the I of --shard",
    )
    add(
        '--shard-num',
        type=command.positive_int,
        metavar='N',
        help="Pyserini's flag for the N of --shard; with --ray, the number of parts",
    )
    together = parser.add_mutually_exclusive_group()
    together.add_argument(
        '--finish', action='store_true', help='check the parts in --output, and join them'
    )
    add_flags(together, 'ray')
    add('--shard-size', type=command.positive_int, default=65536, help='passages in a shard')
    add('--batch-tokens', type=command.positive_int, help='tokens in a batch, padding included')
    add_flags(parser, 'threads', 'workers', 'on_error', 'begun', 'device', 'precision', 'offline')


def check_encoding_flags(options: argparse.Namespace) -> None:
    """Fill in `shard` from Pyserini's flags. Raises InputError for flags that do not go
    together.
    """
    flags = [word.partition('=')[0] for word in options.command if word.startswith('--')]
    if options.finish or options.ray is not None:
        # If it is repeated unchanged, the command continues.
        command.Parser.resumable = None
    if options.finish:
        _check_finish(flags)
        return
    missing = [f'--{name}' for name in ('corpus', 'encoder') if getattr(options, name) is None]
    command.refuse(missing, f'the following arguments are required: {", ".join(missing)}')
    if options.ray is not None:
        _check_ray(flags)
    else:
        _fill_in_shard(options)
    check_outside(options.output, options.corpus)


def _check_finish(flags: Sequence[str]) -> None:
    for flag in flags:
        command.refuse(
            flag not in _FLAGS_WITH_FINISH,
            f'{flag} does not go with --finish, which takes its settings from the parts',
        )


def _check_ray(flags: Sequence[str]) -> None:
    for flag in _FLAGS_WITHOUT_RAY:
        command.refuse(
            flag in flags,
            f'{flag} does not go with --ray, whose workers make all missing parts, and '
            'tokenise themselves',
        )


def _fill_in_shard(options: argparse.Namespace) -> None:
    """Fill in `shard` from --shard-id and --shard-num."""
    number = options.shard_id
    of = options.shard_num
    if number is None and of is None:
        return
    command.refuse(
        options.shard or number is None or of is None,
        '--shard-id and --shard-num go together, and without --shard: give both',
    )
    options.shard = f'{number}/{of}'


def encode(options: argparse.Namespace, kind: EncodedIndex) -> int:
    """Do what the flags of `add_encoding_arguments` ask for: encode a corpus or a part of it, or
    put parts together. Returns the exit status.
    """
    command.use_threads(options.threads)
    _use_one_arena()
    say_device(options)
    if options.finish:
        _join_parts(options, kind)
        return 0
    return _encode_corpus(options, kind)


def _use_one_arena() -> None:
    """Let threads share freed memory: by default, GNU's malloc keeps it for the thread that freed
    it.
    """
    if sys.platform == 'linux':
        libc = ctypes.CDLL(None)
        if hasattr(libc, 'mallopt'):
            libc.mallopt(_ARENA_MAX, 1)


def _join_parts(options: argparse.Namespace, kind: EncodedIndex) -> None:
    """Join the parts in --output, with the record of one of them."""
    from pyserini_repbert.encode.parts import finish_parts
    from pyserini_repbert.record import checksum, read_record, write_record

    output = options.output
    # Read first: the parts go when they are joined.
    first_parts = [path for path in Path(output).glob('part-0-of-*') if path.is_dir()]
    record = read_record(first_parts[0]) if first_parts else None
    manifest = finish_parts(output, kind.settings, options.overwrite)
    if record is not None:
        write_record(output, replace(record, output=str(checksum(output))))
    print(f'{output}: {kind.describe(manifest)}')
    _print_overlap(manifest)


def _print_overlap(manifest: Any) -> None:
    """Say what smaller vectors lose, in one line."""
    overlap = manifest.overlap
    if overlap is not None:
        passages = command.count_text(overlap.queries, 'passage')
        print(
            f'  {overlap.at_10:.4f} of the best 10 hits of float32 stay, {overlap.at_100:.4f} of '
            f'the best 100 ({passages} as queries)'
        )


def _encode_corpus(options: argparse.Namespace, kind: EncodedIndex) -> int:
    """Encode a corpus, or a part of it, here or on a Ray cluster; returns the exit status."""
    from pyserini_repbert.encode.parts import EncodingPart, part_folder
    from pyserini_repbert.models.checkpoints.checkpoint import used_models
    from pyserini_repbert.names.corpora import open_corpus

    part = EncodingPart.parse(options.shard or '0/1')
    corpus = open_corpus(options.corpus, options.corpus_format, options.fields, options.on_error)
    encoder = kind.open_encoder(
        options.encoder, options.device, precision=options.precision, max_length=options.max_length
    )
    encoding = partial(
        kind.encoding,
        encoder,
        token_budget=options.batch_tokens,
        store_text=options.store_text,
        shard_size=options.shard_size,
    )
    output = options.output
    if part.of > 1:
        corpus = corpus.part(part.index, part.of, options.shard_size)
        output = part_folder(output, part, options.overwrite)
    if options.ray is not None:
        manifest = _encode_on_ray(options, corpus, encoding().settings)
    else:
        manifest = _encode_here(options, corpus, encoder, encoding, output)
    record_output(options, str(output), ('corpus',), used_models(encoder))
    if part.of > 1:
        text = f'part {options.shard} is done, {manifest.count} passages'
    else:
        text = kind.describe(manifest)
    besides = skipped_text(corpus.skipped) + cut_text(encoder)
    print(f'{options.output}: {text}{besides}')
    say_unread(corpus.unread, corpus.unread.broken)
    say_encodings(corpus.encodings)
    _print_overlap(manifest)
    return EXIT_UNREAD if corpus.unread.broken else 0


def _encode_here(
    options: argparse.Namespace,
    corpus: Corpus,
    encoder: Any,
    encoding: Callable[..., Any],
    output: Any,
) -> Any:
    """Encode a corpus on this machine into the folder `output`; returns the manifest."""
    from pyserini_repbert.encode.sharding import build_bundle
    from pyserini_repbert.models.tokenizer import share_workers, usual_workers

    tokenizers = [encoder.tokenizer] if hasattr(encoder, 'tokenizer') else []
    workers = options.workers
    if workers is None:
        workers = usual_workers(options.device)
    share_workers(tokenizers, workers)
    with command.progress(corpus.count_hint(), 'encode', 'passages', options.quiet) as bar:
        stages = encoding(on_progress=bar.update)
        manifest = build_bundle(
            corpus, output, stages, resume=options.resume, overwrite=options.overwrite
        )
    if not options.quiet:
        print(stages_text(stages.times, tokenizers), file=sys.stderr)
    return manifest


def _encode_on_ray(options: argparse.Namespace, corpus: Corpus, settings: Any) -> Any:
    """Encode a corpus in parts on a Ray cluster; returns the manifest of the whole index."""
    from pyserini_repbert.pipeline.ray_parts import EncodeParts, encode_parts
    from pyserini_repbert.pipeline.ray_workers import ray_worker_pool

    n_files = len(getattr(corpus, 'paths', []))
    # Rows of a single file are counted exactly: no part may be empty.
    n_passages = corpus.count_hint() if n_files > 1 else None
    if not n_passages:
        n_passages = sum(1 for _ in corpus)
    n_parts = options.shard_num
    if n_parts is None:
        n_shards = -(-n_passages // options.shard_size)
        n_parts = n_files if n_files > 1 else max(1, n_shards)
    work = EncodeParts(
        output=str(Path(options.output).absolute()),
        parts=n_parts,
        corpus=_absolute(options.corpus),
        fields=tuple(options.fields or ()),
        encoder=_absolute(options.encoder),
        settings=settings,
        **command.pick_options(
            options, 'corpus_format', 'on_error', 'batch_tokens', 'device', 'offline'
        ),
    )
    on_gpus = options.device not in ('cpu', 'auto')
    with (
        ray_worker_pool(options.ray, options.threads, on_gpus) as cluster,
        command.progress(n_passages, 'encode', 'passages', options.quiet) as bar,
    ):
        return encode_parts(cluster, work, options.overwrite, bar.update)


def _absolute(name: str) -> str:
    """The absolute path of a file or folder; any other name unchanged."""
    return str(Path(name).absolute()) if Path(name).exists() else name
