"""`regression blame A.json B.json`: what differs between the environments of two reports, and between their scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyserini_repbert.command import parser
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, existing_file

# What a suspect can move, the most telling first; a difference in another name comes after these.
SUSPECTS = (
    'code',
    'pyserini',
    'anserini',
    'tokenizers',
    'transformers',
    'precision',
    'ties',
    'torch',
    'blas',
    'threads',
)


def main(arguments: Sequence[str]) -> int | None:
    """Print the differing parts of the environments, then the scores that moved, the largest move first."""
    made = parser('regression blame', 'What differs between two reports: environments, and the scores that moved.')
    made.add_argument('reports', nargs=2, metavar='REPORT.json', help='reports that regression --report wrote')
    options = made.parse_args(arguments)
    first, second = (read_report(path) for path in options.reports)
    from pyserini_repbert.evaluate.tables import markdown

    suspects = differing(first['environment'], second['environment'])
    if suspects:
        print(markdown(['suspect', *options.reports], [list(row) for row in suspects]))
    else:
        print('The environments are the same.')
    moves = moved(first, second)
    if moves:
        rows = [[name, f'{before:.4f}', f'{after:.4f}', f'{after - before:+.4f}'] for name, before, after in moves]
        print('\n' + markdown(['score', *options.reports, 'difference'], rows))
    else:
        print('No score that both measured differs.')
    return None


def read_report(path: StrPath) -> dict[str, Any]:
    """A JSON report. Raises InputError for another file."""
    try:
        found = json.loads(existing_file(path, 'report').read_text(encoding='utf-8'))
        found['environment'], found['files']
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f'{path} is no report of regressions: write one with regression --report {path}') from error
    return dict(found)


def differing(first: dict[str, str], second: dict[str, str]) -> list[tuple[str, str, str]]:
    """(name, in the first, in the second) of all that differs, the usual suspects first."""
    names = sorted({*first, *second}, key=lambda name: (SUSPECTS.index(name) if name in SUSPECTS else 99, name))
    pairs = [(name, first.get(name, 'absent'), second.get(name, 'absent')) for name in names]
    return [pair for pair in pairs if pair[1] != pair[2]]


def moved(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, float, float]]:
    """(file, condition and measure; before; after) of scores that both measured and that differ, largest first."""
    before, after = _scores(first), _scores(second)
    pairs = [(name, value, after[name]) for name, value in before.items() if name in after and value != after[name]]
    return sorted(pairs, key=lambda pair: -abs(pair[2] - pair[1]))


def _scores(report: dict[str, Any]) -> dict[str, float]:
    return {
        f'{file["file"]} {condition["name"]} {score["measure"]}': score['measured']
        for file in report['files']
        for condition in file['conditions']
        for score in condition['scores']
        if score['measured'] is not None
    }
