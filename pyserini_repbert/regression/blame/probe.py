"""`regression blame --probe`: a condition run again with one factor changed at a time."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyserini_repbert.catalog import cache_folder
from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.index.manifest import MANIFEST
from pyserini_repbert.regression.blame.variants import Untestable, Variant, variants, varied, varied_commands
from pyserini_repbert.regression.report import measure_text
from pyserini_repbert.regression.runner import Outcome, Status, run_condition
from pyserini_repbert.regression.schema import Condition
from pyserini_repbert.regression.workspace import Workspace

FOLDER = 'probe'  # in the work folder; it may be deleted at any time


@dataclass(frozen=True, slots=True)
class Tried:
    """A variant that was run: its scores by measure, or the error that it ended with."""

    factor: str
    name: str
    scores: Mapping[str, float]
    error: str = ''


@dataclass(frozen=True, slots=True)
class Probe:
    """The effect of the factors on one condition.

    Attributes
    ----------
    base : its scores as it runs here, by measure; empty if it does not run
    tried : the variants that were run
    untestable : factors, or variants of one, that could not be tested
    why : the reason for which it does not run, '' if it does
    """

    base: Mapping[str, float]
    tried: Sequence[Tried] = ()
    untestable: Sequence[Untestable] = ()
    why: str = ''


def probe(
    condition: Condition,
    workspace: Workspace,
    work: Path,
    version: str,
    factors: Sequence[str],
    on_variant: Callable[[str, str], object],
) -> Probe:
    """Run a condition as it is, then each of its variants; remembered results are taken where there are any.

    Parameters
    ----------
    work : the work folder of regressions; variants run in its folder 'probe' and are remembered there
    version : hash of code and packages (`environment.cache_version`)
    factors : those to test, of `variants.FACTORS`
    on_variant : called with the factor and the variant's name before it runs
    """
    on_variant('as it is', '')
    base = run_condition(condition, workspace, heavy_too=True)
    scores = _scores(base)
    if not scores:
        return Probe({}, why=_why(base))
    folder = work / FOLDER
    found, untestable = variants(condition, workspace, folder / 'checkpoints', factors)
    tried: list[Tried] = []
    for variant in found:
        on_variant(variant.factor, variant.name)
        outcome = _run(condition, workspace, variant, folder, version)
        own = _scores(outcome)
        tried.append(Tried(variant.factor, variant.name, own, '' if own else _why(outcome)))
    if 'ties' in factors:
        on_variant('ties', '')
        try:
            tried += _ties(condition, workspace)
        except PyseriniRepbertError as error:
            untestable = [*untestable, Untestable('ties', str(error))]
    return Probe(scores, tried, untestable)


def _run(condition: Condition, workspace: Workspace, variant: Variant, work: Path, version: str) -> Outcome:
    folder = work / re.sub(r'[^a-z0-9.]+', '-', f'{variant.factor} {variant.name}'.lower())
    environment = dict(variant.environment)
    if variant.own_cache:
        environment['PYSERINI_REPBERT_CACHE'] = str(_linked_cache(folder / 'cache').resolve())
    own = _VariedWorkspace(workspace, variant, folder, version, environment)
    commands = varied_commands(condition.commands, workspace, variant)
    return run_condition(replace(condition, commands=commands), own, heavy_too=True)


class _VariedWorkspace(Workspace):
    """A variant's own workspace, except that builds which the variant does not change are the original workspace's."""

    def __init__(
        self, workspace: Workspace, variant: Variant, folder: Path, version: str, environment: Mapping[str, str]
    ) -> None:
        regression, self._changed = varied(workspace.regression, workspace, variant)
        super().__init__(regression, folder, workspace.places['data'], version, environment)
        for name in regression.builds:
            if name not in self._changed:
                self.places[name] = workspace.places[name]
        self._original = workspace

    def build(self, name: str) -> None:
        if name in self._changed:
            super().build(name)
        else:
            self._original.build(name)


def _scores(outcome: Outcome) -> dict[str, float]:
    return {measure_text(own.expected): own.measured for own in outcome.scores if own.measured is not None}


def _why(outcome: Outcome) -> str:
    if outcome.status is Status.NOT_RUN and outcome.missing:
        return f'missing: {", ".join(one.name for one in outcome.missing)}'
    return outcome.why or 'no score is expected of it'


def _linked_cache(folder: Path) -> Path:
    """A cache folder with links to everything in the usual one but the vectors of catalog indexes."""
    usual = cache_folder()
    for path in [*_children(usual), *_children(usual / 'indexes')]:
        target = folder / path.relative_to(usual)
        if path == usual / 'indexes' or (path / MANIFEST).is_file() or target.is_symlink() or target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            target.symlink_to(path.resolve())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _ties(condition: Condition, workspace: Workspace) -> list[Tried]:
    """The run's ties broken for the worst and for the best. Raises InputError for a condition without a run or ties."""
    from pyserini_repbert.data.runs import read_run
    from pyserini_repbert.evaluate.measures import parse_measures
    from pyserini_repbert.evaluate.ties import tie_intervals, tied_share, ties_as_scored
    from pyserini_repbert.names.topics import load_qrels

    if not condition.run:
        raise InputError('its scores come from a table, not from a run')
    path, qrels = (workspace.words(text)[0] for text in (condition.run, condition.qrels))
    run = ties_as_scored(read_run(path))
    if not tied_share(run):
        raise InputError('no two hits of a query have the same score')
    measures = parse_measures([own.measure for own in condition.expected])
    found = tie_intervals(run, load_qrels(qrels), measures)
    return [
        Tried('ties', 'all for the worst', {name: interval.lowest for name, interval in found.items()}),
        Tried('ties', 'all for the best', {name: interval.highest for name, interval in found.items()}),
    ]
