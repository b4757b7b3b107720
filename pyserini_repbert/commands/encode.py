"""`python -m pyserini_repbert.encode`: a corpus to a dense bundle."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encoding import (
    IndexKind,
    add_encoding_arguments,
    check_encoding_flags,
    encode,
)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser('encode', 'Make an index of vectors from a corpus.')
    add_encoding_arguments(
        parser,
        encoder='catalog name or checkpoint folder',
        store_text='keep the passages, for showing and reranking them',
    )
    parser.add_argument(
        '--vector-dtype',
        choices=('float32', 'float16'),
        default='float32',
        help='of stored vectors',
    )
    return parser


def main(arguments: list[str]) -> None:
    """Encode a corpus, or a part of it, into a dense index, and print what it holds."""
    options = make_parser().parse_args(arguments)
    check_encoding_flags(options)
    from pyserini_repbert.encode.dense import dense_encoding
    from pyserini_repbert.index.records import Settings
    from pyserini_repbert.systems.encoders import document_encoder

    kind = IndexKind(
        settings=Settings,
        open_encoder=document_encoder,
        encoding=partial(dense_encoding, dtype=options.vector_dtype),
        describe=_describe,
    )
    encode(options, kind)


def _describe(manifest: Any) -> str:
    """What a dense index holds."""
    stored = f'{manifest.settings.dimension} {manifest.settings.dtype}'
    shards = command.count_text(len(manifest.shards), 'shard')
    return f'{manifest.count} passages x {stored} in {shards}'
