"""The flags --plan, --plan-shard, --finish and --ray, which `encode` and `index epic` share."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert import catalog
from pyserini_repbert.commands import command, recording

if TYPE_CHECKING:
    from pyserini_repbert.data.corpus import Corpus
    from pyserini_repbert.encode.plan import Plan
    from pyserini_repbert.index.records import BundleSettings, Manifest

WEIGHTS = {'fp16': 'float16', 'uint8': 'uint8'}  # values of --weights: dtypes of an EPIC bundle
_SHARED = ('--output', '--quiet', '--offline')
_WORKERS = ('--plan-shard', '--corpus', '--encoder', '--device', '--threads', *_SHARED)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    planned = parser.add_mutually_exclusive_group()
    planned.add_argument('--plan', action='store_true', help='read the corpus once, write OUTPUT/plan.json, no more')
    planned.add_argument(
        '--plan-shard', metavar='K[-L]', help='encode these shards of the plan in --output, reading only their bytes'
    )
    planned.add_argument('--finish', action='store_true', help='check the planned shards and write the manifest')
    planned.add_argument('--ray', metavar='ADDRESS', help="all three on a Ray cluster: HOST:PORT, or 'auto'")


def is_about_a_plan(options: argparse.Namespace) -> bool:
    """Whether the flags use an existing plan: --plan-shard or --finish."""
    return options.finish or options.plan_shard is not None


def check(options: argparse.Namespace) -> None:
    """Raises InputError for flags that do not go together."""
    flags = [given.partition('=')[0] for given in options.command if given.startswith('--')]
    if is_about_a_plan(options):
        name, allowed = ('--finish', (*_SHARED, '--finish')) if options.finish else ('--plan-shard', _WORKERS)
        if foreign := [flag for flag in flags if flag not in allowed]:
            raise command.usage(f'{foreign[0]} does not go with {name}, which takes its settings from the plan')
        return
    if missing := [f'--{name}' for name in ('corpus', 'encoder') if getattr(options, name) is None]:
        raise command.usage(f'the following arguments are required: {", ".join(missing)}')
    if other := [flag for flag in flags if flag in ('--shard', '--resume')]:
        if options.plan:
            raise command.usage(f'{other[0]} does not go with --plan, which encodes nothing')
        if options.ray is not None:
            raise command.usage(f'{other[0]} does not go with --ray, which makes all shards that are missing')


def plan(options: argparse.Namespace, corpus: Corpus, settings: BundleSettings) -> None:
    """Run --plan."""
    made = _made_plan(options, corpus, settings)
    last = len(made.shards) - 1
    skipped = f', {corpus.skipped} lines skipped' if corpus.skipped else ''
    shards = f'{made.count} passages in {command.counted(last + 1, "shard")}{skipped}'
    print(f'{options.output}: planned, {shards}: encode them with --plan-shard 0-{last}, then --finish')


def _made_plan(options: argparse.Namespace, corpus: Corpus, settings: BundleSettings) -> Plan[Any]:
    """Make the plan of a bundle, or read the same plan if it exists."""
    from pyserini_repbert.data.corpus_parts import check_can_be_cut
    from pyserini_repbert.encode.plan import plan_encoding

    size = sum(path.stat().st_size for path in check_can_be_cut(corpus).paths)
    source = str(Path(options.corpus).absolute()) if Path(options.corpus).exists() else options.corpus
    with command.progress(size, 'plan', 'B', options.quiet) as bar:
        return plan_encoding(
            options.output, corpus, source, settings, options.batch_tokens, options.overwrite, bar.update
        )


def on_ray(options: argparse.Namespace, corpus: Corpus, settings: BundleSettings) -> Manifest[Any]:
    """Run --ray: plan, encode on the cluster, finish."""
    from pyserini_repbert.encode.planned import finish_plan
    from pyserini_repbert.pipeline.ray_encoding import encode_plan
    from pyserini_repbert.pipeline.ray_workers import connected

    encoder = str(Path(options.encoder).absolute()) if Path(options.encoder).exists() else options.encoder
    with connected(options.ray, options.threads, options.device != 'cpu') as fleet:
        made = _made_plan(options, corpus, settings)
        with command.progress(made.count, 'encode', 'passages', options.quiet) as bar:
            encode_plan(fleet, options.output, made, options.device, encoder, options.offline, bar.update)
    return finish_plan(options.output, made)


def run(options: argparse.Namespace, kind: str) -> Manifest[Any] | None:
    """Run --plan-shard or --finish. Returns the manifest, which only --finish writes; else None.

    Parameters
    ----------
    kind : of the command's bundles: 'dense' or 'epic'

    Raises
    ------
    MismatchError
        for a plan of another kind, or a shard that the plan lacks
    """
    from pyserini_repbert.encode import planned
    from pyserini_repbert.encode.plan import read_plan
    from pyserini_repbert.errors import MismatchError
    from pyserini_repbert.index.records import EpicSettings, Settings
    from pyserini_repbert.names.corpora import planned_corpus

    kinds: dict[str, Any] = {made.kind: made for made in (Settings, EpicSettings)}
    folder = Path(options.output)
    if (manifest := planned.finished(folder, kinds[kind])) is not None:
        if options.finish:
            return manifest
        print(f'{folder}: finished, there is nothing to encode')
        return None
    plan = read_plan(folder)
    if plan.kind != kind:
        raise MismatchError(f"the plan of {folder} is of kind '{plan.kind}', this command makes '{kind}'")
    if options.finish:
        manifest = planned.finish_plan(folder, plan)
        _record(options, plan)
        return manifest
    numbers = planned.parse_shards(options.plan_shard)
    if numbers.stop > len(plan.shards):
        raise MismatchError(f'shard {numbers[-1]}: the plan of {folder} has shards 0 to {len(plan.shards) - 1}')
    count = sum(plan.shards[number].count for number in numbers)
    with command.progress(count, 'encode', 'passages', options.quiet) as bar:
        corpus = plan.check(planned_corpus(plan, options.corpus))
        encoding = planned.planned_encoding(plan, options.device, options.encoder, bar.update)
        planned.encode_shards(folder, plan, corpus, numbers, encoding, bar.update)
    left = len(planned.missing_shards(folder, plan))
    rest = f'{left} of {len(plan.shards)} are missing yet' if left else 'all are there: --finish'
    print(f'{folder}: shard {options.plan_shard} is done; {rest}')
    return None


def _record(options: argparse.Namespace, plan: Plan[Any]) -> None:
    """Write the record of a finished bundle: the plan's corpus and settings, its checkpoint if that can be opened."""
    from pyserini_repbert.errors import PyseriniRepbertError
    from pyserini_repbert.models.checkpoints.checkpoint import open_checkpoint
    from pyserini_repbert.models.checkpoints.used import model_of

    settings, corpus = plan.settings, plan.corpus
    options.corpus, options.corpus_format, options.fields = corpus.source, corpus.format, list(corpus.fields)
    options.store_text, options.shard_size = settings.texts, settings.shard_size
    options.max_length, options.batch_tokens = settings.max_length, plan.batch_tokens
    if plan.kind == 'epic':
        options.prune = settings.prune
        options.weights = next(name for name, dtype in WEIGHTS.items() if dtype == settings.weights)
    else:
        options.vector_dtype = settings.dtype
    models = []
    with contextlib.suppress(PyseriniRepbertError):
        checkpoint = open_checkpoint(settings.encoder, catalog.checkpoint_kind(settings.encoder) or 'encoders')
        if checkpoint.weights_sha256 == settings.weights_sha256:
            models.append(model_of(checkpoint, settings.precision))
    recording.write(options, options.output, ('corpus',), models)
