"""The tables of `regression blame --probe`: factors by how far they move a score, and by how much of a difference."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyserini_repbert.errors import InputError
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.regression.blame.probe import Probe, Tried, probe
from pyserini_repbert.regression.blame.variants import FACTORS
from pyserini_repbert.regression.schema import FOLDER

_EXPLAINS = 0.5  # share of a difference that its likely cause has to close
_SAME = 1e-12  # difference of scores that counts as none


class Ranked(NamedTuple):
    """A variant's score of a measure.

    Attributes
    ----------
    moved : the score less the score without the variant
    closed : share of the reports' difference that this closes: 1 for all, below 0 where the variant leads away from
        the other score; None where there is no difference
    """

    tried: Tried
    score: float
    moved: float
    closed: float | None


def ranked(found: Probe, measure: str, before: float | None, after: float | None) -> list[Ranked]:
    """The variants by how far they move a measure, the farthest first.

    Parameters
    ----------
    before, after : the two reports' scores, None for a report without one. `Ranked.closed` is a share of the distance
        from the score here to the farther of them.
    """
    base = found.base[measure]
    far = max(
        (value for value in (before, after) if value is not None), key=lambda value: abs(value - base), default=base
    )
    gap = abs(far - base)
    rows = []
    for tried in found.tried:
        if measure in tried.scores:
            score = tried.scores[measure]
            closed = (gap - abs(far - score)) / gap if gap > _SAME else None
            rows.append(Ranked(tried, score, score - base, closed))
    return sorted(rows, key=lambda row: -abs(row.moved))


def probe_all(
    options: argparse.Namespace,
    conditions: Sequence[tuple[tuple[str, str], Sequence[dict[str, float]]]],
    environment: Sequence[tuple[str, str, str]],
) -> None:
    """Probe conditions, and print the results.

    Parameters
    ----------
    options : of the command `regression blame`
    conditions : ((file, name), (the first report's scores, the second's)), scores by measure
    environment : (factor, first value, second value) of what differs between the reports' environments
    """
    from pyserini_repbert.regression.environment import cache_version, fingerprint
    from pyserini_repbert.regression.reading import read_regression
    from pyserini_repbert.regression.workspace import Workspace

    paths = {Path(path).name: Path(path) for path in options.files or []}
    version, work, factors = cache_version(fingerprint()), Path(options.work), options.factor or FACTORS
    for (file, name), values in conditions:
        regression = read_regression(paths.get(file, Path(FOLDER) / file))
        condition = next((own for own in regression.conditions if own.name == name), None)
        if condition is None:
            raise InputError(f"{regression.path} has no condition '{name}': name the file that the reports are of")

        def show(factor: str, variant: str, label: str = f'{file} {name}') -> None:
            if not options.quiet:
                print(f'{label}: {factor} {variant}'.rstrip(), file=sys.stderr)

        workspace = Workspace(regression, work, options.data, version)
        found = probe(condition, workspace, work, version, factors, show)
        print(f'\n## {file} {name}\n\n' + report_of(found, values, options.reports), flush=True)
    untested = [name for name, _, _ in environment if name not in factors]
    if untested:
        print(f'\nNot tested, since that takes the other version or machine: {", ".join(untested)}.')


def report_of(found: Probe, values: Sequence[dict[str, float]], names: Sequence[str]) -> str:
    """The result of probing a condition, as Markdown.

    Parameters
    ----------
    values : the two reports' scores by measure
    names : of the two reports
    """
    if not found.base:
        return f'It could not be run here: {found.why}'
    moved = [measure for measure in found.base if values[0].get(measure) != values[1].get(measure)]
    parts = []
    for measure in moved or found.base:
        first, second = (own.get(measure) for own in values)
        rows = ranked(found, measure, first, second)
        known = [
            (name, value) for name, value in zip([*names, 'here'], [first, second, found.base[measure]], strict=True)
        ]
        parts.append(f'{measure}: ' + ', '.join(f'{name} {value:.4f}' for name, value in known if value is not None))
        header = ['factor', 'score', 'moved', 'of the difference']
        parts.append(markdown(header, [_cells(row) for row in rows]) if rows else 'No variant ran.')
        if first is not None and second is not None and first != second:
            parts.append(_verdict(rows))
    lines = [f'- {own.factor}: {own.name} failed: {own.error}' for own in found.tried if own.error]
    lines += [f'- {own.factor} could not be tested: {own.why}' for own in found.untestable]
    return '\n\n'.join([*parts, '\n'.join(lines)]).rstrip()


def _cells(row: Ranked) -> list[str]:
    share = '' if row.closed is None else f'{row.closed:.0%}'
    return [f'{row.tried.factor}: {row.tried.name}', f'{row.score:.4f}', f'{row.moved:+.4f}', share]


def _verdict(rows: Sequence[Ranked]) -> str:
    best = max((row for row in rows if row.closed is not None), key=lambda row: row.closed or 0, default=None)
    if best is None or best.closed is None or best.closed < _EXPLAINS:
        return 'None of these accounts for half of the difference.'
    return f'Nearest to the difference: {best.tried.factor}, {best.tried.name} ({best.closed:.0%} of it).'
