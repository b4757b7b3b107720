"""The commands `regression report` and `regression badge`: a page and a badge from the JSON reports of runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict  # pydantic needs this one below Python 3.12

from pyserini_repbert.commands.command import parser
from pyserini_repbert.errors import InputError

_Status = Literal['PASS', 'PASS within tolerance', 'FAIL', 'REHEARSED', 'NOT RUN', 'RECORDED']


class _Missing(TypedDict):
    name: str
    what: str
    size: str
    get: str
    origin: NotRequired[str]


class _Score(TypedDict):
    measure: str
    expected: str
    measured: float | None
    status: _Status
    source: str
    cell: str


class _Condition(TypedDict):
    name: str
    status: _Status
    why: str
    missing: list[_Missing]
    commands: list[str]
    scores: list[_Score]
    fingerprint: dict[str, str]


class _File(TypedDict):
    file: str
    title: str
    conditions: list[_Condition]


class _Report(TypedDict):
    environment: dict[str, str]
    files: list[_File]


def main(arguments: Sequence[str]) -> int:
    """Join reports into one in Markdown, HTML or JSON."""
    made = parser('regression report', 'A page of the reports (.json) of earlier runs; nothing is run.')
    made.add_argument('reports', nargs='+', metavar='REPORT', help='if several hold a condition, its last run counts')
    made.add_argument('--output', required=True, metavar='FILE', help='.md, .html or .json')
    options = made.parse_args(arguments)
    from pyserini_repbert.regression.report import merged

    write_report(merged([read_report(path) for path in options.reports]), options.output)
    return 0


def badge_main(arguments: Sequence[str]) -> int:
    """Write a badge that says how many published figures are measured and rehearsed."""
    made = parser('regression badge', 'A badge (SVG) for a README, from a report in JSON.')
    made.add_argument('report', metavar='REPORT', help='a report that a run wrote, .json')
    made.add_argument('--output', required=True, metavar='FILE', help='the .svg to write')
    options: argparse.Namespace = made.parse_args(arguments)
    from pyserini_repbert.files import atomic_file
    from pyserini_repbert.regression.grids import badge

    if not options.output.endswith('.svg'):
        raise InputError(f"badge '{options.output}': a name that ends in .svg was expected")
    with atomic_file(options.output) as stream:
        stream.write(badge(read_report(options.report)))
    return 0


def read_report(path: str) -> dict[str, Any]:
    """Read a report in JSON. Raises InputError for another file."""
    from pyserini_repbert.data.json_values import checked, parse_json
    from pyserini_repbert.files import existing_file

    try:
        return dict(checked(_Report, parse_json(existing_file(path, 'report').read_bytes())))
    except ValueError as error:
        raise InputError(
            f'{path} is no report ({error}): expected JSON that a run wrote, --report FILE.json'
        ) from error


def write_report(data: dict[str, Any], path: str) -> None:
    """Write a report in the form that its suffix names. Raises InputError for another suffix."""
    from pyserini_repbert.files import atomic_file
    from pyserini_repbert.regression.report import as_html, markdown

    check_name(path)
    suffix = path.rpartition('.')[2]
    text = {'md': markdown, 'html': as_html}[suffix](data) if suffix != 'json' else json.dumps(data, indent=1)
    with atomic_file(path) as stream:
        stream.write(text.rstrip('\n') + '\n')


def check_name(path: str) -> None:
    """Raises InputError for a report's name that ends in none of .md, .html and .json."""
    if not path.endswith(('.md', '.html', '.json')):
        raise InputError(f"report '{path}': a name that ends in .md, .html or .json was expected")
