"""The flags of `search`: whether they go together, and the request they ask for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pyserini_repbert.commands import command
from pyserini_repbert.commands.fusion_flags import formula
from pyserini_repbert.commands.rerank import stage_settings

if TYPE_CHECKING:
    from pyserini_repbert.pipeline.searching import Request


def check_request(options: argparse.Namespace) -> None:
    """Raises InputError for flags that do not go together; imports nothing slow."""
    sparse = tuple(options.sparse or ())
    dense = bool(options.encoder) or not sparse
    if (options.fusion or options.depth) and len(sparse) + dense < 2:
        flag = '--fusion' if options.fusion else '--depth'
        raise command.usage(f'{flag} needs two rankings: give --encoder with --sparse, or --sparse twice')
    if (options.k1, options.b) != (None, None) and not sparse:
        raise command.usage('--k1 and --b are for --sparse')
    if options.ann and not dense:
        raise command.usage('--ann is for dense search: give --encoder with --sparse')
    if options.ray is not None and (options.ann or not dense):
        raise command.usage('--ray is for exact dense search: give --encoder, and not --ann')
    if dense and options.index is None:
        raise command.usage('--index names the dense index: a folder or a catalog name')
    if options.corpus and not options.build and not options.stages:
        raise command.usage('--corpus is for --build, or for --rerank: an index is searched as it is')


def request_of(options: argparse.Namespace) -> Request:
    """The request that the flags ask for. Raises InputError for a malformed stage, or flags that do not fit."""
    from pyserini_repbert.fusion.methods import FusionMethod
    from pyserini_repbert.pipeline.searching import Request
    from pyserini_repbert.pipeline.specs import parse_stage

    method = FusionMethod(options.fusion or FusionMethod.INTERLEAVE)
    alpha, rrf_k = formula(method, options)
    return Request(
        options.index,
        options.encoder,
        tuple(options.sparse or ()),
        options.sparse_first,
        options.ann,
        method,
        alpha,
        rrf_k,
        options.depth,
        tuple(parse_stage(stage) for stage in options.stages or ()),
        stage_settings(options),
        options.corpus,
        options.build,
        options.download,
        options.max_length,
        options.threads or 1,
        options.batch_size,
        options.k1,
        options.b,
        options.device_dtype,
        remove_duplicates=options.remove_duplicates,
    )
