"""`index try`: another encoder, other passages or another language, in addition to the live
ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyserini_repbert.collection.commands.asking import warn_of_few
from pyserini_repbert.collection.commands.flags import add_index_flag, add_settings
from pyserini_repbert.collection.model_options import model_options
from pyserini_repbert.commands import command
from pyserini_repbert.commands.console import printable

if TYPE_CHECKING:
    from pyserini_repbert.collection.generation_manifest import GenerationManifest
    from pyserini_repbert.collection.settings import CollectionSettings
    from pyserini_repbert.extensions.trials.comparing import MeasureOfTrial, TrialComparison

# Attributes of `CollectionSettings` that are named if they differ, in addition to its further
# models.
_SHOWN = ('passage_tokens', 'overlap', 'language', 'dtype', 'precision', 'dimension')
# Flags that say what to try, in addition to those of further models.
_TRIED = (
    *('encoder', 'passage_tokens', 'overlap', 'language'),
    *('precision', 'truncate_dim', 'dtype'),
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `index try`."""
    add_index_flag(parser)
    add = parser.add_argument
    add('--use', action='store_true', help='search as tried: write the trial as a new generation')
    add('--go-back', action='store_true', help='undo --use, without encoding')
    add_settings(parser, takes_ray=False)


def try_settings(options: argparse.Namespace) -> None:
    """Encode a trial and compare it, use it, or go back."""
    chosen = command.pick_options(options, *_TRIED, *model_options())
    names_any = any(value is not None for value in chosen.values())
    command.refuse(options.use and options.go_back, 'give either --use or --go-back')
    command.refuse(
        (options.use or options.go_back) and names_any,
        '--use and --go-back take no settings: what was tried has them',
    )
    command.use_threads(options.threads)
    from pyserini_repbert.collection.collection import Collection
    from pyserini_repbert.extensions.trials.trying import encode_trial, go_back, use_trial

    folder = Path(options.index)
    if options.use or options.go_back:
        with Collection.open(folder, device=options.device) as collection:
            manifest = use_trial(collection) if options.use else go_back(collection)
        how = 'as tried' if options.use else 'as before'
        print(
            f'{options.index}: searched {how}, generation {manifest.number}, encoder '
            f"'{printable(manifest.settings.encoder)}'"
        )
        return
    chosen['device'] = options.device
    if not names_any:
        chosen |= _settings_of_trial(folder)
    with (
        Collection.open(folder, **chosen) as collection,
        command.progress(len(collection), 'try', 'documents', options.quiet) as bar,
    ):
        live = collection.generation.manifest
        trial = encode_trial(collection, bar.update)
    _print_trial(options.index, live, trial)
    _compare(options)


def _settings_of_trial(folder: Path) -> dict[str, Any]:
    """The arguments of `Collection.open` that a trial was made with."""
    from pyserini_repbert.extensions.trials.side_folders import Side
    from pyserini_repbert.extensions.trials.trying import required_side, wanted_of

    settings = required_side(folder, Side.TRIAL).settings
    wanted = dict(vars(wanted_of(settings)))
    models = wanted.pop('models')
    return {**wanted, **models, 'encoder': settings.encoder, 'precision': settings.precision}


def _print_trial(index: str, live: GenerationManifest, trial: GenerationManifest) -> None:
    """Print what was encoded, and how its settings differ from the present search."""
    differences = []
    settings_before = _shown_settings(live.settings)
    for name, after in _shown_settings(trial.settings).items():
        before = settings_before[name]
        if before != after:
            differences.append(f"{name.replace('_', ' ')} '{after}' instead of '{before}'")
    shards = command.count_text(len(trial.shards), 'shard')
    print(
        printable(
            f"{index}: encoder '{trial.settings.encoder}' is tried beside "
            f"'{live.settings.encoder}', {trial.passages} passages in {shards}"
        )
    )
    for difference in differences:
        print('  ' + printable(difference))


def _shown_settings(settings: CollectionSettings) -> dict[str, object]:
    """The settings that are named if they differ, by name."""
    shown: dict[str, object] = {name: getattr(settings, name) for name in _SHOWN}
    for option in model_options():
        shown[option] = settings.name_of(option)
    return shown


def _compare(options: argparse.Namespace) -> None:
    """Print the comparison of the trial with the present search."""
    from pyserini_repbert.extensions.trials.comparing import compare_trial

    compared = compare_trial(Path(options.index), options.device)
    if compared is None:
        print('nothing is compared: no question has a relevant document yet')
    else:
        _print_comparison(compared)
        warn_of_few(compared.n_questions)
    print(f'to use it: index try --index {options.index} --use')


def _print_comparison(compared: TrialComparison) -> None:
    """Print the measures, the overlap and the time of both searches."""
    questions = command.count_text(compared.n_questions, 'judged question')
    print(f'{questions}, now -> tried:')
    print(f'  nDCG@10                   {_measure_text(compared.ndcg)}')
    print(f'  only judged documents     {_measure_text(compared.condensed)}')
    print(f'  best ten in common        {compared.in_common:.0%}')
    milliseconds = 1000 * compared.seconds_now
    tried = 1000 * compared.seconds_trial
    print(f'  ms a question             {milliseconds:.1f} -> {tried:.1f}')


def _measure_text(measure: MeasureOfTrial) -> str:
    difference = measure.difference
    text = (
        f'{measure.now:.4f} -> {measure.trial:.4f}: {difference.mean:+.4f}, 95% interval '
        f'{difference.low:+.4f} to {difference.high:+.4f}'
    )
    return text if measure.p is None else f'{text}, p {measure.p:.2g}'
