"""`python -m pyserini_repbert.encode`: a corpus to a dense bundle, or one of term weights."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import command
from pyserini_repbert.commands.encoding import (
    EncodedIndex,
    add_encoding_arguments,
    check_encoding_flags,
    encode,
    term_weights_kind,
)

if TYPE_CHECKING:
    from pyserini_repbert.encode.text_encoder import TextDocumentEncoder


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's flags."""
    parser = command.parser('encode', 'Build an index of vectors from a corpus.')
    add_encoding_arguments(
        parser,
        encoder='catalog name or checkpoint folder',
        store_text='keep the passages, for showing and reranking them',
    )
    parser.add_argument(
        '--store',
        '--vector-dtype',
        choices=('float32', 'float16', 'int8'),
        default='float32',
        help='the type of stored vectors, or of the weights of a SparseEncoder; the command says '
        'what smaller vectors lose',
    )
    parser.add_argument(
        '--truncate-dim',
        type=command.positive_int,
        metavar='N',
        help='keep the first N values of each vector, for models that were trained for it '
        '(Matryoshka); searches shorten their queries automatically',
    )
    return parser


def main(arguments: list[str]) -> int:
    """Encode a corpus, or a part of it, into an index; returns the exit status."""
    options = make_parser().parse_args(arguments)
    check_encoding_flags(options)
    from pyserini_repbert.systems.sparse_encoder.folder import is_sparse_folder

    if options.finish:
        from pyserini_repbert.index.manifest import variant_of_parts
        from pyserini_repbert.systems.sparse_encoder.encoder import SparseTextEncoder

        gives_term_weights = variant_of_parts(options.output) == SparseTextEncoder.variant
    else:
        gives_term_weights = is_sparse_folder(options.encoder)
    if gives_term_weights:
        command.refuse(
            options.truncate_dim is not None,
            f"'{options.encoder}' gives term weights: leave --truncate-dim out, and use "
            '`index sparse --prune`',
        )
        command.refuse(
            options.store == 'int8',
            f"'{options.encoder}' gives term weights: take --store float16, or `index sparse "
            '--weights uint8`',
        )
        from pyserini_repbert.systems.sparse_encoder.encoder import SparseTextEncoder

        kind = term_weights_kind(SparseTextEncoder, prune=0, weights=options.store)
    else:
        kind = _dense_kind(options.store, options.truncate_dim)
    return encode(options, kind)


def _dense_kind(dtype: str, truncate_dim: int | None) -> EncodedIndex:
    """The index of dense vectors, stored in `dtype`, of their first `truncate_dim` values."""
    from pyserini_repbert.encode.dense import dense_encoding
    from pyserini_repbert.index.records import DenseSettings
    from pyserini_repbert.systems.encoders import document_encoder

    def open_encoder(name: str, device: str, **settings: Any) -> TextDocumentEncoder:
        encoder = document_encoder(name, device, **settings)
        return encoder if truncate_dim is None else encoder.truncated(truncate_dim)

    return EncodedIndex(
        settings=DenseSettings,
        open_encoder=open_encoder,
        encoding=partial(dense_encoding, dtype=dtype),
        describe=_describe,
    )


def _describe(manifest: Any) -> str:
    """What a dense index holds."""
    stored = f'{manifest.settings.dimension} {manifest.settings.dtype}'
    shards = command.count_text(len(manifest.shards), 'shard')
    return f'{manifest.count} passages x {stored} in {shards}'
