"""`python -m pyserini_repbert.regression`: run the files in regressions/ and compare with published scores."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.commands.command import parser, positive_int, usage
from pyserini_repbert.commands.regression_report import check_name, write_report
from pyserini_repbert.commands.regression_work import FOLDER, add_folders, all_files, read_work
from pyserini_repbert.errors import InputError

if TYPE_CHECKING:
    from pyserini_repbert.commands.regression_work import Work
    from pyserini_repbert.regression.runner import Outcome
    from pyserini_repbert.regression.workspace import Workspace

EXIT_FAIL = 1
_OTHERS = {  # the first word -> the module and the function of its command
    'fetch': ('regression_fetch', 'main'),
    'quick': ('regression_fetch', 'quick_main'),
    'report': ('regression_report', 'main'),
    'badge': ('regression_report', 'badge_main'),
}


def main(arguments: list[str]) -> int | None:
    """Run the command: status 0 without a FAIL, 1 with one; errors, which are raised, become status 2."""
    if arguments and arguments[0] in _OTHERS:
        module, function = _OTHERS[arguments[0]]
        return int(getattr(importlib.import_module(f'{__package__}.{module}'), function)(arguments[1:]) or 0)
    options = _parser().parse_args(arguments)
    if options.report:
        if options.list or options.dry_run:
            raise usage('--report is for a run: leave out --list and --dry-run')
        check_name(options.report)
    paths = options.files or (all_files() if options.all else [])
    if not paths:
        raise InputError(f'no files were given: name them, or --all for those in {FOLDER}/')
    from pyserini_repbert.regression.environment import cache_version, fingerprint

    environment = {} if options.list else fingerprint()
    work = read_work(paths, options, cache_version(environment))
    if options.list:
        _list(work)
        return 0
    if options.dry_run:
        _dry_run(work)
        return 0
    if not Path(options.data).is_dir():
        print(f'WARNING: the data folder {options.data} is not here: what needs it is NOT RUN', file=sys.stderr)
    return run_work(work, options, environment)


def _list(work: Work) -> None:
    for regression, pairs in work:
        print(f'{regression.path}: {regression.title}')
        for condition, _ in pairs:
            scores = ', '.join(f'{own.measure} {own.text}' for own in [*condition.expected, *condition.recorded])
            print(f'  {condition.name}: {scores}{f" ({condition.heavy})" if condition.heavy else ""}')


def _dry_run(work: Work) -> None:
    from pyserini_repbert.regression import resources
    from pyserini_repbert.regression.runner import commands_of

    for _, pairs in work:
        for condition, workspace in pairs:
            print(f'# {workspace.regression.name} {condition.name}')
            for name in workspace.needed(condition.needs):
                absent = resources.missing(workspace.regression.resources[name], workspace.places)
                if absent is not None:
                    print(f'# missing: {absent.text}')
            print(*(commands_of(condition, workspace) if condition.expected else []), sep='\n')


def run_work(work: Work, options: argparse.Namespace, environment: dict[str, str]) -> int:
    """Run conditions, print their outcomes, and write the report if one is asked for; status 1 with a FAIL."""
    from pyserini_repbert.regression.report import as_data
    from pyserini_repbert.regression.runner import Status, run_all

    flat = [pair for _, pairs in work for pair in pairs]
    shown = _show if not options.quiet else _show_failures
    outcomes = iter(run_all(flat, options.jobs, options.all, shown))
    found = [(regression, [next(outcomes) for _ in pairs]) for regression, pairs in work]
    data = as_data(found, environment, {str(options.data): '$DATA', str(Path.home()): '~'})
    if options.report:
        write_report(data, options.report)
    conditions = Counter(outcome.status for _, own in found for outcome in own)
    print(f'conditions: {", ".join(f"{conditions[status]} {status}" for status in Status if conditions[status])}')
    print(f'scores: {", ".join(f"{count} {status}" for status, count in data["totals"].items() if count)}')
    return EXIT_FAIL if conditions[Status.FAIL] else 0


def _show(workspace: Workspace, outcome: Outcome) -> None:
    from pyserini_repbert.regression.report import measure_text
    from pyserini_repbert.regression.runner import Status

    lines = [f'{outcome.status} {workspace.regression.name} {outcome.condition.name}']
    lines[0] += f': {outcome.why}' if outcome.why else ''
    lines[0] += f' ({outcome.seconds:.0f} s{", remembered" if outcome.remembered else ""})' if outcome.seconds else ''
    lines += [f'  missing: {one.text}' for one in outcome.missing]
    for score in outcome.scores:
        if score.measured is not None or outcome.status is Status.FAIL:
            measured = 'nothing' if score.measured is None else f'{score.measured:.4f}'
            own = score.expected
            lines.append(f'  {score.status} {measure_text(own)}: {measured}, expected {own.text}')
    print('\n'.join(lines), flush=True)


def _show_failures(workspace: Workspace, outcome: Outcome) -> None:
    from pyserini_repbert.regression.runner import Status

    if outcome.status is Status.FAIL:
        _show(workspace, outcome)


def _parser() -> argparse.ArgumentParser:
    made = parser(
        'regression',
        'Run regression files: the commands of each condition, and its scores against the published ones. '
        'With a word in front: fetch, quick, report or badge, each with a --help of its own.',
    )
    made.add_argument('files', nargs='*', metavar='FILE', help='regression files')
    made.add_argument('--all', action='store_true', help=f'without FILE, all of {FOLDER}/; heavy conditions too')
    made.add_argument('--condition', action='append', default=[], metavar='NAME', help='only this one; repeatable')
    only_shown = made.add_mutually_exclusive_group()
    only_shown.add_argument('--list', action='store_true', help='conditions and expected scores; run nothing')
    only_shown.add_argument('--dry-run', action='store_true', help='commands and missing resources; run nothing')
    made.add_argument('--jobs', type=positive_int, default=1, help='conditions at a time')
    made.add_argument('--report', metavar='FILE', help='write a report: .md, .html or .json')
    add_folders(made)
    return made
