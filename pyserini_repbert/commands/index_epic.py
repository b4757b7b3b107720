"""The commands `index epic` and `index epic-prune`: a corpus to an EPIC bundle, a bundle to a smaller one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyserini_repbert.commands import planned, recording
from pyserini_repbert.commands.command import (
    add_corpus_form,
    add_threads,
    keep_memory_flat,
    positive_int,
    precision,
    progress,
    use_threads,
    zero_or_more,
)
from pyserini_repbert.commands.encode import add_model_arguments, going, stored
from pyserini_repbert.commands.output_files import check_outside

_WEIGHTS = {'fp16': 'float16', 'uint8': 'uint8'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument('--corpus', help='file, folder, Lucene index, ir_datasets:ID, or catalog name')
    add_corpus_form(parser)
    parser.add_argument('--encoder', help='an EPIC checkpoint: catalog name or folder')
    parser.add_argument('--output', required=True, help='the index folder')
    parser.add_argument('--prune', type=zero_or_more, default=1000, help='weights kept of a passage, 0 for all')
    parser.add_argument('--weights', choices=tuple(_WEIGHTS), default='fp16', help='how a weight is stored')
    parser.add_argument('--max-length', type=positive_int, help='wordpieces kept of a passage')
    parser.add_argument('--store-text', action='store_true', help='keep the passages, for explaining scores')
    parser.add_argument('--shard', default='0/1', metavar='I/N', help='encode the I-th of N parts, I from 0')
    parser.add_argument('--shard-size', type=positive_int, default=65536, help='passages in a shard')
    parser.add_argument('--batch-tokens', type=positive_int, help='padded tokens in a batch')
    add_threads(parser)
    parser.add_argument('--on-error', default='refuse', choices=('refuse', 'skip'), help='what an unusable line does')
    planned.add_arguments(parser)
    _add_begun_arguments(parser)
    add_model_arguments(parser)


def _add_begun_arguments(parser: argparse.ArgumentParser) -> None:
    begun = parser.add_mutually_exclusive_group()
    begun.add_argument('--resume', action='store_true', help='go on with a run that was stopped')
    begun.add_argument('--overwrite', action='store_true', help='remove an index that is there')


def run(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Build the bundle and say what it takes; `arguments` are the command's, as given."""
    about_a_plan = planned.check(options, arguments)
    use_threads(options.threads)
    keep_memory_flat()
    from pyserini_repbert.download import forbid_downloads
    from pyserini_repbert.encode.epic import EpicEncoder
    from pyserini_repbert.encode.epic_corpus import encode_epic_corpus, epic_encoding
    from pyserini_repbert.encode.sharding import Part
    from pyserini_repbert.formats.corpus_parts import check_can_be_cut
    from pyserini_repbert.models.checkpoints.used import used_models
    from pyserini_repbert.names.corpora import open_corpus

    forbid_downloads(options.offline)
    if about_a_plan:
        return 0 if planned.run(options, 'epic') is None else _report(options.output)
    part = Part.parse(options.shard)
    check_outside(options.output, options.corpus)
    corpus = open_corpus(options.corpus, options.corpus_format, options.fields, options.on_error)
    if options.plan or options.ray is not None:
        check_can_be_cut(corpus)
    encoder = EpicEncoder(options.encoder, options.device, precision(options), options.max_length)
    settings = {'prune': options.prune, 'weights': _WEIGHTS[options.weights], **stored(options)}
    if options.plan:
        return planned.plan(options, corpus, epic_encoding(encoder, **settings).settings)
    if options.ray is not None:
        planned.on_ray(options, corpus, epic_encoding(encoder, **settings).settings)
        recording.write(options, options.output, ('corpus',), used_models([encoder]))
        return _report(options.output)
    with progress(corpus.count_hint(), 'encode', 'passages', options.quiet) as bar:
        manifest = encode_epic_corpus(
            corpus,
            encoder,
            options.output,
            **settings,
            **going(options, part, bar.update),
        )
    skipped = f', {corpus.skipped} lines skipped' if corpus.skipped else ''
    if manifest is None:
        print(f'{options.output}: part {options.shard} is done{skipped}; other parts have shards to encode yet')
        return 0
    recording.write(options, options.output, ('corpus',), used_models([encoder]))
    return _report(options.output, skipped)


def _report(output: str, skipped: str = '') -> int:
    from pyserini_repbert.index.epic import EpicBundle

    bundle = EpicBundle(output, verify=False)
    prune = bundle.settings.prune
    kept = f'{prune} terms' if prune else 'all terms'
    print(f'{output}: {len(bundle)} passages x {kept}, {bundle.bytes_per_passage():,.0f} bytes a passage{skipped}')
    return 0


def add_prune_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `epic-prune`."""
    parser.add_argument('--index', required=True, help='an EPIC index')
    parser.add_argument('--output', required=True, help='the index folder to make')
    parser.add_argument('--prune', type=zero_or_more, help='weights kept of a passage, 0 for all; default: as before')
    parser.add_argument('--weights', choices=tuple(_WEIGHTS), help='how a weight is stored; default: as before')
    parser.add_argument('--shard-size', type=positive_int, help='passages in a shard; default: as before')
    _add_begun_arguments(parser)


def run_prune(options: argparse.Namespace) -> int:
    """Copy the bundle and say what it takes."""
    from pyserini_repbert.encode.epic_corpus import prune_epic_bundle
    from pyserini_repbert.index.epic import EpicBundle

    before = EpicBundle(options.index)
    prune = before.settings.prune if options.prune is None else options.prune
    weights = _WEIGHTS.get(options.weights, before.settings.weights)
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
    shards = f'{len(made.shards)} shards'
    print(f'{options.output}: {len(made)} passages in {shards}, {made.bytes_per_passage():,.0f} bytes a passage')
    return 0
