"""The commands `index epic`, a corpus to an EPIC bundle, and `index epic-prune`, a bundle to a smaller one."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from pyserini_repbert.commands import recording
from pyserini_repbert.commands.command import counted, positive_int, progress, zero_or_more
from pyserini_repbert.commands.encode import add_begun_arguments, add_encoding_arguments, check_flags, encode

if TYPE_CHECKING:
    from pyserini_repbert.index.records import Manifest

WEIGHTS = {'fp16': 'float16', 'uint8': 'uint8'}  # values of --weights: dtypes of a bundle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `epic`."""
    add_encoding_arguments(
        parser, 'an EPIC checkpoint: catalog name or folder', 'keep the passages, for explaining scores'
    )
    parser.add_argument('--prune', type=zero_or_more, default=1000, help='weights kept of a passage, 0 for all')
    parser.add_argument('--weights', choices=tuple(WEIGHTS), default='fp16', help='how a weight is stored')


def run(options: argparse.Namespace) -> None:
    """Build the bundle, and print how many bytes a passage takes."""
    check_flags(options)
    from pyserini_repbert.encode.epic import EpicEncoder
    from pyserini_repbert.encode.epic_corpus import epic_encoding
    from pyserini_repbert.index.epic import EpicBundle
    from pyserini_repbert.index.records import EpicSettings

    def told(manifest: Manifest[Any]) -> str:
        bundle = EpicBundle(options.output, verify=False)
        kept = f'{bundle.settings.prune} terms' if bundle.settings.prune else 'all terms'
        return f'{len(bundle)} passages x {kept}, {bundle.bytes_per_passage():,.0f} bytes a passage'

    encoding_of = partial(epic_encoding, prune=options.prune, weights=WEIGHTS[options.weights])
    encode(options, EpicSettings, EpicEncoder, encoding_of, told)


def add_prune_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `epic-prune`."""
    parser.add_argument('--index', required=True, help='an EPIC index')
    parser.add_argument('--output', required=True, help='the index folder to make')
    parser.add_argument('--prune', type=zero_or_more, help='weights kept of a passage, 0 for all; default: as before')
    parser.add_argument('--weights', choices=tuple(WEIGHTS), help='how a weight is stored; default: as before')
    parser.add_argument('--shard-size', type=positive_int, help='passages in a shard; default: as before')
    add_begun_arguments(parser)


def run_prune(options: argparse.Namespace) -> None:
    """Write the smaller bundle, and print how many bytes a passage takes."""
    from pyserini_repbert.encode.epic_corpus import prune_epic_bundle
    from pyserini_repbert.index.epic import EpicBundle

    before = EpicBundle(options.index)
    prune = before.settings.prune if options.prune is None else options.prune
    weights = WEIGHTS.get(options.weights, before.settings.weights)
    with progress(len(before), 'prune', 'passages', options.quiet) as bar:
        made = prune_epic_bundle(
            before,
            options.output,
            prune,
            weights,
            options.shard_size,
            bar.update,
            resume=options.resume,
            overwrite=options.overwrite,
        )
    recording.write(options, options.output, ('index',))
    shards = counted(len(made.shards), 'shard')
    print(f'{options.output}: {len(made)} passages in {shards}, {made.bytes_per_passage():,.0f} bytes a passage')
