"""`python -m pyserini_repbert.regression`: run the files in regressions/ and compare with
published scores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.commands.command import (
    argument_type,
    counted,
    parser,
    positive_int,
    progress,
    refuse,
)
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.files import atomic_file, existing_file, human_size
from pyserini_repbert.regression.environment import cache_version, fingerprint
from pyserini_repbert.regression.needs import (
    Pair,
    cheapest_first,
    is_of_published_runs,
    is_out_of_reach,
    missing_of,
)
from pyserini_repbert.regression.reading import read_regression
from pyserini_repbert.regression.report import as_data, as_html, markdown, measure_text, merged
from pyserini_repbert.regression.resources import NeededResource, size_in_bytes
from pyserini_repbert.regression.runner import Outcome, Status, commands_of, run_all
from pyserini_repbert.regression.workspace import Workspace

DATA = 'PYSERINI_REPBERT_DATA'  # the variable that sets the default of --data
_FOLDER = 'regressions'  # whose files commands take if none is named
_FORMS: dict[str, Callable[[dict[str, Any]], str]] = {
    '.md': markdown,
    '.html': as_html,
    '.json': lambda data: json.dumps(data, indent=1),
}


@argument_type
def _report_name(path: str) -> str:
    if Path(path).suffix not in _FORMS:
        raise ValueError(f"report '{path}': a name that ends in .md, .html or .json was expected")
    return path


def main(arguments: list[str]) -> int:
    """Run the command: status 0 without a FAIL, 1 with one; errors, which are raised, become
    status 2.
    """
    others = {'fetch': _fetch, 'quick': _quick, 'report': _report}
    if arguments and arguments[0] in others:
        return others[arguments[0]](arguments[1:])
    text = 'Run the commands of regression files, and compare the scores with the published ones.'
    flags = parser(
        'regression', f'{text} `regression fetch`, `quick` and `report` have a --help of their own.'
    )
    flags.add_argument(
        '--all', action='store_true', help=f'without FILE, all of {_FOLDER}/; heavy conditions too'
    )
    only_shown = flags.add_mutually_exclusive_group()
    only_shown.add_argument(
        '--list', action='store_true', help='show conditions and expected scores; run nothing'
    )
    only_shown.add_argument(
        '--dry-run', action='store_true', help='show commands and missing resources; run nothing'
    )
    flags.add_argument('--jobs', type=positive_int, default=1, help='conditions to run at a time')
    _add_work_flags(flags, 'files', '--condition', '--report')
    options = flags.parse_args(arguments)
    refuse(
        options.report and (options.list or options.dry_run),
        '--report is for a run: leave out --list or --dry-run',
    )
    paths = options.files or (_all_files() if options.all else [])
    environment = {} if options.list else fingerprint()
    work = _read_work(paths, options, cache_version(environment))
    if options.list:
        for workspace, pairs in groupby(work, key=lambda pair: pair[1]):
            print(f'{workspace.regression.path}: {workspace.regression.title}')
            for condition, _ in pairs:
                scores = ', '.join(
                    f'{one.measure} {one.text}'
                    for one in (*condition.expected, *condition.recorded)
                )
                print(
                    f'  {condition.name}: '
                    f'{scores}{f" ({condition.heavy})" if condition.heavy else ""}'
                )
        return 0
    if options.dry_run:
        for condition, workspace in work:
            print(f'# {workspace.regression.name} {condition.name}')
            for absent in missing_of(condition, workspace):
                print(f'# missing: {absent.text}')
            print(*(commands_of(condition, workspace) if condition.expected else []), sep='\n')
        return 0
    if not Path(options.data).is_dir():
        print(
            f'WARNING: the data folder {options.data} is not here: what needs it is NOT RUN',
            file=sys.stderr,
        )
    return _run_work(work, options, environment)


def _add_work_flags(flags: argparse.ArgumentParser, *names: str) -> None:
    """Add --data and --work, and those of FILE, --condition and --report that are named."""
    data = os.environ.get(DATA, '../shared/data')
    several = {'action': 'append', 'default': []}
    known: dict[str, dict[str, Any]] = {
        'files': {
            'metavar': 'FILE',
            'nargs': '*',
            'help': f'regression files; default: all of {_FOLDER}/',
        },
        '--condition': {
            'metavar': 'NAME',
            **several,
            'help': 'run only this condition; repeatable',
        },
        '--report': {
            'metavar': 'FILE',
            'type': _report_name,
            'help': 'write a report: .md, .html or .json',
        },
        '--data': {
            'metavar': 'FOLDER',
            'default': data,
            'help': f'collections and run files; default: ${DATA}',
        },
        '--work': {
            'metavar': 'FOLDER',
            'default': 'runs/regressions',
            'help': 'where the commands write',
        },
    }
    for name in (*names, '--data', '--work'):
        flags.add_argument(name, **known[name])


def _all_files() -> list[str]:
    """The regression files below the working folder, which has to be the project's root, sorted."""
    return sorted(str(path) for path in Path(_FOLDER).glob('*.yaml'))


def _read_work(paths: Sequence[str], options: argparse.Namespace, version: str = '') -> list[Pair]:
    """The conditions of these files that `options.condition` chooses, all for an empty list.

    `version` is of code and packages: cached results of other versions are not used.
    """
    refuse(
        not paths,
        f'no regression files: name them, or take all of {_FOLDER}/ (--all) in the folder that '
        f'has it',
    )
    workspaces = [
        Workspace(read_regression(path), Path(options.work), options.data, version)
        for path in paths
    ]
    work = [
        (condition, workspace)
        for workspace in workspaces
        for condition in workspace.regression.conditions
    ]
    names = [condition.name for condition, _ in work]
    for name in options.condition:
        if name not in names:
            raise UnknownNameError(
                f"'{name}' is no condition of these files{did_you_mean(name, names)}: see --list"
            )
    return [pair for pair in work if not options.condition or pair[0].name in options.condition]


def _run_work(
    work: Sequence[Pair], options: argparse.Namespace, environment: dict[str, str]
) -> int:
    """Run conditions, print their outcomes, and write the report if one is asked for; status 1
    with a FAIL.
    """

    def show(workspace: Workspace, outcome: Outcome) -> None:
        if options.quiet and outcome.status is not Status.FAIL:
            return
        why = f': {outcome.why}' if outcome.why else ''
        if outcome.seconds:
            why += f' ({outcome.seconds:.0f} s{", remembered" if outcome.remembered else ""})'
        lines = [f'{outcome.status} {workspace.regression.name} {outcome.condition.name}{why}']
        lines += [f'  missing: {one.text}' for one in outcome.missing]
        for score in outcome.scores:
            if score.measured is not None or outcome.status is Status.FAIL:
                measured = 'nothing' if score.measured is None else f'{score.measured:.4f}'
                expected = (
                    f'{measure_text(score.expected)}: {measured}, expected {score.expected.text}'
                )
                lines.append(f'  {score.status} {expected}')
        print('\n'.join(lines), flush=True)

    outcomes = run_all(work, options.jobs, options.all, show)
    by_workspace = groupby(zip(work, outcomes, strict=True), key=lambda one: one[0][1])
    by_file = [
        (workspace.regression, [outcome for _, outcome in of_file])
        for workspace, of_file in by_workspace
    ]
    data = as_data(by_file, environment, {str(options.data): '$DATA', str(Path.home()): '~'})
    if options.report:
        _write_report(data, options.report)
    conditions = Counter(outcome.status for outcome in outcomes)
    print('conditions:', _counts({status: conditions[status] for status in Status}))
    print('scores:', _counts(data['totals']))
    return int(conditions[Status.FAIL] > 0)


def _counts(totals: Mapping[str, int]) -> str:
    """'3 PASS, 1 FAIL': the counts that are not 0."""
    return ', '.join(f'{count} {status}' for status, count in totals.items() if count)


def _fetch(arguments: Sequence[str]) -> int:
    """Run the command: status 0 if everything listed was fetched, 1 if something failed."""
    flags = parser(
        'regression fetch', 'Download, verify and unpack what conditions need, the smallest first.'
    )
    add = flags.add_argument
    add(
        '--budget',
        type=argument_type(size_in_bytes),
        metavar='SIZE',
        help='fetch at most this much, as 10GB',
    )
    add('--dry-run', action='store_true', help='only show sizes, sources and licences')
    add_flags(flags, 'offline', help='download nothing: unpack what is here')
    _add_work_flags(flags, 'files', '--condition')
    options = flags.parse_args(arguments)
    work = _read_work(options.files or _all_files(), options)
    everything = {need.key: need for pair in work if pair[0].expected for need in missing_of(*pair)}
    reached = cheapest_first(work, options.budget)
    wanted = [
        *{need.key: need for _, needs in reached for need in needs if need.is_fetched}.values()
    ]
    by_hand = [need for need in everything.values() if not need.is_fetched]
    total = sum(one.n_bytes or 0 for one in wanted)
    unknown = sum(one.n_bytes is None for one in wanted)
    more = f' and {unknown} of unknown size' if unknown else ''
    within = f', within {human_size(options.budget)}' if options.budget is not None else ''
    print(f'to fetch: {len(wanted)}, {human_size(total)}{more}{within}')
    for one in wanted:
        source = one.resource.source.replace('\n', ' and ')
        licence = one.licence or 'not stated'
        print(
            f'  {one.resource.name}: {one.resource.what}; {one.size or "size unknown"}; {source}; '
            f'licence: {licence}'
        )
    if by_hand:
        print(f'not to be fetched here: {len(by_hand)}')
    for one in by_hand:
        print(f'  {one.resource.name}: {one.resource.what}: {one.get}')
    beyond = [pair for pair in work if pair[0].expected and is_out_of_reach(missing_of(*pair))]
    runnable = counted(len(reached), 'condition')
    print(f'{runnable} can be run then, {len(beyond)} never: something of them was not published')
    return 0 if options.dry_run or not wanted else int(_fetch_all(wanted, options.quiet) > 0)


def _quick(arguments: Sequence[str]) -> int:
    """Fetch published run files and check the scores that need nothing else: no model, no
    collection, no Java.
    """
    flags = parser(
        'regression quick',
        'Fetch published run files and check all figures that need nothing else.',
    )
    add_flags(flags, 'offline', help='check what is here, download nothing')
    _add_work_flags(flags, '--report')
    options = flags.parse_args(arguments)
    options.condition = []
    options.jobs = 1
    options.all = False
    environment = fingerprint()

    def of_published_runs() -> list[Pair]:
        work = _read_work(_all_files(), options, cache_version(environment))
        return [pair for pair in work if is_of_published_runs(*pair)]

    needed = cheapest_first(of_published_runs())
    wanted = {need.key: need for _, needs in needed for need in needs if need.is_fetched}
    failed = 0 if options.offline else _fetch_all(list(wanted.values()), options.quiet)
    return _run_work(of_published_runs(), options, environment) or int(
        failed > 0
    )  # paths depend on what was fetched


def _fetch_all(absent: Sequence[NeededResource], quiet: bool) -> int:
    """Fetch resources, with a progress bar and a line for each. Returns how many failed."""
    from pyserini_repbert.regression.fetching import fetched

    problems = []
    for one in absent:
        name = one.resource.name
        with progress(one.n_bytes, name, 'B', quiet) as bar:
            problem = fetched(one, bar.update)
        if problem:
            problems.append(f'{name} ({one.resource.what}): {" ".join(problem.split())}')
        print(f'{"FAILED" if problem else "fetched"} {name}', flush=True)
    for problem in problems:
        print(problem)
    print(f'{len(absent) - len(problems)} of {len(absent)} resources are here now')
    return len(problems)


def _report(arguments: Sequence[str]) -> int:
    """Join the reports of earlier runs."""
    flags = parser(
        'regression report', 'A page of the reports (.json) of earlier runs; nothing is run.'
    )
    flags.add_argument(
        'reports',
        nargs='+',
        metavar='REPORT',
        help='JSON reports; the last run of a condition counts',
    )
    flags.add_argument(
        '--output', required=True, type=_report_name, metavar='FILE', help='.md, .html or .json'
    )
    options = flags.parse_args(arguments)
    reports = []
    for path in options.reports:
        try:
            reports.append(parse_json(existing_file(path, 'report').read_bytes()))
            for form in _FORMS.values():
                form(merged(reports[-1:]))  # reads all that a report has
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InputError(
                f'{path} is no report ({error!r}): expected what --report FILE.json wrote'
            ) from error
    _write_report(merged(reports), options.output)
    return 0


def _write_report(data: dict[str, Any], path: str) -> None:
    with atomic_file(path) as stream:
        stream.write(_FORMS[Path(path).suffix](data).rstrip('\n') + '\n')
