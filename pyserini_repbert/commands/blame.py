"""`regression blame A.json B.json`: what differs between two reports; with `--probe`, which factors move a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.commands.command import parser
from pyserini_repbert.commands.regression_work import add_folders
from pyserini_repbert.data.json_values import checked, parse_json
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.files import StrPath, existing_file
from pyserini_repbert.regression.blame.variants import FACTORS as TESTABLE
from pyserini_repbert.regression.schema import FOLDER

# What can change a score, the most likely cause first; other differences come after these.
FACTORS = (
    'code, pyserini, anserini, anserini jar, tokenizers, transformers, precision, ties, torch, torch blas, bfloat16, '
    'gpu, blas, threads'
).split(', ')
Name = tuple[str, str]  # file and condition


class _Score(TypedDict):
    measure: str
    measured: float | None


class _Condition(TypedDict):
    name: str
    scores: NotRequired[list[_Score]]
    fingerprint: NotRequired[dict[str, str]]


class _File(TypedDict):
    file: str
    conditions: list[_Condition]


class _Report(TypedDict):
    environment: dict[str, str]
    files: list[_File]


def main(arguments: Sequence[str]) -> None:
    """Print how the environments differ, then for each condition its differences, the largest change first."""
    made = parser('regression blame', 'What differs between two reports: environments, checkpoints, scores.')
    made.add_argument('reports', nargs=2, metavar='REPORT.json', help='reports that regression --report wrote')
    made.add_argument('--probe', action='store_true', help='test what can be tested here, on conditions that moved')
    made.add_argument('--condition', action='append', default=[], metavar='NAME', help='only this one; repeatable')
    made.add_argument('--factor', action='append', choices=TESTABLE, help='with --probe: only this one; repeatable')
    made.add_argument(
        '--files', nargs='+', metavar='FILE', help=f"with --probe: the reports' YAML files, if not in {FOLDER}/"
    )
    add_folders(made)
    options = made.parse_args(arguments)
    if not options.probe and (options.factor or options.files):
        raise InputError('--factor and --files go with --probe (see --help)')
    first, second = (read_report(path) for path in options.reports)
    from pyserini_repbert.evaluate.tables import markdown

    both = [_conditions(first), _conditions(second)]
    names = list(dict.fromkeys([*both[0], *both[1]]))
    for name in options.condition:
        if name not in (known := [condition for _, condition in names]):
            raise UnknownNameError(f"'{name}' is no condition of these reports{did_you_mean(name, known)}")
    chosen = [name for name in names if not options.condition or name[1] in options.condition]
    factors = differing(first['environment'], second['environment'])
    if factors:
        print(markdown(['factor', *options.reports], [list(row) for row in factors]))
    else:
        print('The environments are the same.')
    changes = {name: differences(*(conditions.get(name, {}) for conditions in both)) for name in chosen}
    by_move = sorted(chosen, key=lambda name: -max((abs(own[3] or 0) for own in changes[name]), default=0))
    for name in by_move:
        if changes[name]:
            rows = [[*own[:3], '' if own[3] is None else f'{own[3]:+.4f}'] for own in changes[name]]
            print(f'\n{" ".join(name)}\n' + markdown(['what', *options.reports, 'difference'], rows))
    moved = [name for name in by_move if any(own[3] for own in changes[name])]
    if not moved:
        print('No score that both measured differs.')
    if options.probe:
        from pyserini_repbert.regression.blame.probe_report import probe_all

        own = [(name, [measured(conditions.get(name, {})) for conditions in both]) for name in by_move]
        probe_all(options, [pair for pair in own if options.condition or pair[0] in moved], factors)


def read_report(path: StrPath) -> dict[str, Any]:
    """Read a report in JSON. Raises InputError for another file."""
    try:
        return dict(checked(_Report, parse_json(existing_file(path, 'report').read_bytes())))
    except ValueError as error:
        message = f'{path} is no report of regressions ({error}): write one with regression --report {path}'
        raise InputError(message) from error


def differing(first: dict[str, str], second: dict[str, str]) -> list[tuple[str, str, str]]:
    """(name, value in the first, value in the second) of each difference, the most likely cause first."""
    names = sorted({*first, *second}, key=lambda name: (FACTORS.index(name) if name in FACTORS else 99, name))
    pairs = [(name, first.get(name, 'absent'), second.get(name, 'absent')) for name in names]
    return [pair for pair in pairs if pair[1] != pair[2]]


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, str, str, float | None]]:
    """(what, in the first, in the second, change) of a condition in two reports; empty unless both measured it.

    Scores come first, by the size of the change, then parts of the fingerprint, whose change is None.
    """
    before, after = measured(first), measured(second)
    if not (before and after):
        return []
    moves = [(name, value, after[name]) for name, value in before.items() if name in after and value != after[name]]
    moves.sort(key=lambda move: -abs(move[2] - move[1]))
    scores = [(name, f'{old:.4f}', f'{new:.4f}', new - old) for name, old, new in moves]
    prints = differing(first.get('fingerprint', {}), second.get('fingerprint', {}))
    return [*scores, *((name, old, new, None) for name, old, new in prints)]


def measured(condition: dict[str, Any]) -> dict[str, float]:
    """measure -> score of a report's condition, without scores that were not measured."""
    scores = condition.get('scores', [])
    return {score['measure']: score['measured'] for score in scores if score['measured'] is not None}


def _conditions(report: dict[str, Any]) -> dict[Name, dict[str, Any]]:
    return {(file['file'], own['name']): own for file in report['files'] for own in file['conditions']}
