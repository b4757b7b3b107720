"""`python -m pyserini_repbert.regression`: run regression files and compare scores."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.commands.command import argument_type, parser, positive_int, progress, refuse
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.commands.outputs import OutputPath
from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import InputError, UnknownNameError
from pyserini_repbert.files import atomic_file, existing_file, human_size
from pyserini_repbert.regression.counts import GUARDS, OTHERS, count_scores
from pyserini_repbert.regression.environment import cache_version, fingerprint
from pyserini_repbert.regression.jobs import ConditionJob, are_out_of_reach
from pyserini_repbert.regression.needs import count_needs
from pyserini_repbert.regression.regression_files import read_regression
from pyserini_repbert.regression.report import (
    RegressionOutcome,
    as_data,
    as_html,
    as_markdown,
    measure_text,
    merge_reports,
)
from pyserini_repbert.regression.resources import MissingResource
from pyserini_repbert.regression.runner import Outcome, Status, run_all
from pyserini_repbert.regression.workspace import Workspace

DATA = 'PYSERINI_REPBERT_DATA'  # the variable that sets the default of --data
_FOLDER = 'regressions'  # whose files commands take if none is named


_FORMS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    '.md': as_markdown,
    '.html': as_html,
    '.json': partial(json.dumps, indent=1),
}


@argument_type
def _report_name(path: str) -> OutputPath:
    if Path(path).suffix not in _FORMS:
        raise ValueError(f"report '{path}': a name that ends in .md, .html or .json was expected")
    return OutputPath(path)


def main(arguments: list[str]) -> int:
    """Run the command: status 0 without a FAIL, 1 with one.

    Errors are raised, and become status 2.
    """
    others = {'fetch': _fetch, 'quick': _quick, 'report': _report}
    if arguments and arguments[0] in others:
        return others[arguments[0]](arguments[1:])
    options = _parse(arguments)
    paths = options.files or _all_files()
    if options.list:
        _print_conditions(_make_jobs(paths, options, chosen=options.condition))
        return 0
    environment = fingerprint()
    version = cache_version(environment)
    jobs = _make_jobs(paths, options, chosen=options.condition, version=version)
    if options.dry_run:
        _print_commands(jobs)
        return 0
    if not Path(options.data).is_dir():
        print(
            f'WARNING: the data folder {options.data} is not here: what needs it is NOT RUN',
            file=sys.stderr,
        )
    outcomes = run_all(jobs, options.jobs, options.all, _outcome_printer(options.quiet))
    return _report_outcomes(jobs, outcomes, options, environment)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    text = 'Run the commands of regression files, and compare the scores with the published ones.'
    flags = parser(
        'regression', f'{text} `regression fetch`, `quick` and `report` also have --help.'
    )
    flags.add_argument('--all', action='store_true', help='run heavy conditions, too')
    only_shown = flags.add_mutually_exclusive_group()
    only_shown.add_argument(
        '--list', action='store_true', help='show conditions and expected scores; run nothing'
    )
    only_shown.add_argument(
        '--dry-run', action='store_true', help='show commands and missing resources; run nothing'
    )
    flags.add_argument('--jobs', type=positive_int, default=1, help='conditions to run at a time')
    _add_files(flags)
    _add_condition_flag(flags)
    _add_report_flag(flags)
    _add_folder_flags(flags)
    options = flags.parse_args(arguments)
    refuse(
        options.report and (options.list or options.dry_run),
        '--report is for a run: leave out --list or --dry-run',
    )
    return options


def _add_files(flags: argparse.ArgumentParser) -> None:
    text = f'regression files; default: all of {_FOLDER}/'
    flags.add_argument('files', metavar='FILE', nargs='*', help=text)


def _add_condition_flag(flags: argparse.ArgumentParser) -> None:
    text = 'run only this condition; repeatable'
    flags.add_argument('--condition', metavar='NAME', action='append', default=[], help=text)


def _add_report_flag(flags: argparse.ArgumentParser) -> None:
    text = 'write a report: .md, .html or .json'
    flags.add_argument('--report', metavar='FILE', type=_report_name, help=text)


def _add_folder_flags(flags: argparse.ArgumentParser) -> None:
    data = os.environ.get(DATA, '../shared/data')
    text = f'collections and run files; default: ${DATA}'
    flags.add_argument('--data', metavar='FOLDER', default=data, help=text)
    work = 'runs/regressions'
    text = 'where the commands write'
    flags.add_argument('--work', metavar='FOLDER', default=work, help=text)


def _all_files() -> list[str]:
    """The regression files below the working folder, sorted.

    The folder must be the project's root.
    """
    return sorted(str(path) for path in Path(_FOLDER).glob('*.yaml'))


def _make_jobs(
    paths: Sequence[str],
    options: argparse.Namespace,
    *,
    chosen: Sequence[str] = (),
    version: str = '',
) -> list[ConditionJob]:
    """The conditions of these files that are chosen by name, all if none is.

    `version` is of code and packages: cached results of other versions are not used.
    """
    refuse(
        not paths,
        f'no regression files: name them, or run this in the folder that has {_FOLDER}/',
    )
    jobs = []
    for path in paths:
        workspace = Workspace(read_regression(path), Path(options.work), options.data, version)
        conditions = workspace.regression.conditions
        jobs += [ConditionJob(condition, workspace) for condition in conditions]
    names = [job.condition.name for job in jobs]
    for name in chosen:
        if name not in names:
            raise UnknownNameError(
                f"'{name}' is not a condition of these files{did_you_mean(name, names)}: see --list"
            )
    return [job for job in jobs if not chosen or job.condition.name in chosen]


def _print_conditions(jobs: Iterable[ConditionJob]) -> None:
    for workspace, jobs_of_file in groupby(jobs, key=lambda job: job.workspace):
        print(f'{workspace.regression.path}: {workspace.regression.title}')
        for job in jobs_of_file:
            condition = job.condition
            figures = [*condition.expected, *condition.recorded]
            scores = ', '.join(f'{figure.measure} {figure.text}' for figure in figures)
            heavy = f' ({condition.heavy})' if condition.heavy else ''
            print(f'  {condition.name}: {scores}{heavy}')


def _print_commands(jobs: Iterable[ConditionJob]) -> None:
    for job in jobs:
        print(f'# {job.name}')
        for absent in job.missing():
            print(f'# missing: {absent.text}')
        commands = job.commands() if job.condition.expected else []
        print(*commands, sep='\n')


def _outcome_printer(quiet: bool) -> Callable[[Workspace, Outcome], None]:
    """A function that prints an outcome; if `quiet`, only a failed one."""

    def print_outcome(workspace: Workspace, outcome: Outcome) -> None:
        if not quiet or outcome.status is Status.FAIL:
            print('\n'.join(_outcome_lines(workspace, outcome)), flush=True)

    return print_outcome


def _outcome_lines(workspace: Workspace, outcome: Outcome) -> list[str]:
    """What happened, what is missing, and the scores."""
    head = f'{outcome.status} {workspace.regression.name} {outcome.condition.name}'
    if outcome.why:
        head += f': {outcome.why}'
    if outcome.seconds:
        remembered = ', remembered' if outcome.remembered else ''
        head += f' ({outcome.seconds:.0f} s{remembered})'
    lines = [head]
    lines += [f'  missing: {absent.text}' for absent in outcome.missing]
    for score in outcome.scores:
        if score.measured is not None or outcome.status is Status.FAIL:
            measured = 'nothing' if score.measured is None else f'{score.measured:.4f}'
            name = measure_text(score.expected)
            lines.append(f'  {score.status} {name}: {measured}, expected {score.expected.text}')
    return lines


def _report_outcomes(
    jobs: Sequence[ConditionJob],
    outcomes: Sequence[Outcome],
    options: argparse.Namespace,
    environment: dict[str, str],
) -> int:
    """Write the report if one is requested, and print totals; status 1 with a FAIL."""
    by_workspace: dict[Workspace, list[Outcome]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        by_workspace.setdefault(job.workspace, []).append(outcome)
    results = [
        RegressionOutcome(workspace.regression, outcomes_of_file)
        for workspace, outcomes_of_file in by_workspace.items()
    ]
    data = as_data(results, environment, {str(options.data): '$DATA', os.path.expanduser('~'): '~'})
    if options.report:
        _write_report(data, options.report)
    counts = Counter(outcome.status for outcome in outcomes)
    print('conditions:', _counts_text({status: counts[status] for status in Status}))
    _print_scores("others' figures", count_scores(data['files'], OTHERS))
    _print_scores('guards against change', count_scores(data['files'], GUARDS))
    return int(counts[Status.FAIL] > 0)


def _print_scores(name: str, counts: Mapping[str, int]) -> None:
    """Print how many scores have which status, if there are any."""
    if any(counts.values()):
        print(f'{name}:', _counts_text(counts))


def _counts_text(totals: Mapping[str, int]) -> str:
    """'3 PASS, 1 FAIL': the counts that are not 0."""
    return ', '.join(f'{count} {status}' for status, count in totals.items() if count)


def _fetch(arguments: Sequence[str]) -> int:
    """Run the command: status 0 if everything listed was fetched, 1 if something failed."""
    flags = parser('regression fetch', 'Download, verify and unpack what conditions need.')
    flags.add_argument(
        '--dry-run', action='store_true', help='only show sizes, sources and licences'
    )
    add_flags(flags, 'offline', help='download nothing: unpack what is here')
    _add_files(flags)
    _add_condition_flag(flags)
    _add_folder_flags(flags)
    options = flags.parse_args(arguments)
    paths = options.files or _all_files()
    jobs = _make_jobs(paths, options, chosen=options.condition)
    jobs = [job for job in jobs if job.condition.expected]
    reachable = _reachable(jobs)
    wanted = [need for need in _needs_of(reachable) if need.is_fetched]
    by_hand = [need for need in _needs_of(jobs) if not need.is_fetched]
    _print_needs(wanted, by_hand)
    _print_need_counts(jobs)
    if options.dry_run or not wanted:
        return 0
    return int(_fetch_all(wanted, options.quiet) > 0)


def _reachable(jobs: Iterable[ConditionJob]) -> list[ConditionJob]:
    """The conditions whose missing resources can be fetched."""
    return [job for job in jobs if not are_out_of_reach(job.missing())]


def _print_need_counts(jobs: Iterable[ConditionJob]) -> None:
    """Print what conditions still need, and how many need it."""
    print('conditions, by what they need:')
    for need, count in count_needs(job.lacking() for job in jobs).items():
        print(f'{count:5} {need}')


def _needs_of(jobs: Iterable[ConditionJob]) -> list[MissingResource]:
    """What conditions lack, each resource once."""
    need_by_key: dict[str, MissingResource] = {}
    for job in jobs:
        for need in job.missing():
            need_by_key[need.key] = need
    return list(need_by_key.values())


def _print_needs(wanted: Sequence[MissingResource], by_hand: Sequence[MissingResource]) -> None:
    """Print what will be fetched, with sizes and licences, and how to get the rest."""
    sizes = [need.n_bytes for need in wanted]
    total = sum(size for size in sizes if size is not None)
    n_unknown = sizes.count(None)
    more = f' and {n_unknown} of unknown size' if n_unknown else ''
    print(f'to fetch: {len(wanted)}, {human_size(total)}{more}')
    for need in wanted:
        resource = need.resource
        size = need.size or 'size unknown'
        licence = need.licence or 'not stated'
        source = resource.source_line
        print(f'  {resource.name}: {resource.what}; {size}; {source}; licence: {licence}')
    if by_hand:
        print(f'not to be fetched here: {len(by_hand)}')
    for need in by_hand:
        print(f'  {need.resource.name}: {need.resource.what}: {need.get}')


def _quick(arguments: Sequence[str]) -> int:
    """Fetch published run files and check the scores that need nothing else.

    These scores need no model, no collection and no Java.
    """
    flags = parser(
        'regression quick',
        'Fetch published run files and check all figures that need nothing else.',
    )
    add_flags(flags, 'offline', help='check what is here, download nothing')
    _add_report_flag(flags)
    _add_folder_flags(flags)
    options = flags.parse_args(arguments)
    environment = fingerprint()
    version = cache_version(environment)
    n_failed = 0
    if not options.offline:
        needs = _needs_of(_jobs_of_published_runs(options, version))
        n_failed = _fetch_all(needs, options.quiet)
    # Created again, because paths depend on what was fetched.
    jobs = _jobs_of_published_runs(options, version)
    outcomes = run_all(jobs, 1, False, _outcome_printer(options.quiet))
    status = _report_outcomes(jobs, outcomes, options, environment)
    return status or int(n_failed > 0)


def _jobs_of_published_runs(options: argparse.Namespace, version: str) -> list[ConditionJob]:
    jobs = _make_jobs(_all_files(), options, version=version)
    return [job for job in jobs if job.is_of_published_runs()]


def _fetch_all(needs: Sequence[MissingResource], quiet: bool) -> int:
    """Fetch resources, with a progress bar and a line for each. Returns how many failed."""
    from pyserini_repbert.regression.fetching import fetch_missing

    problems = []
    for need in needs:
        name = need.resource.name
        with progress(need.n_bytes, name, 'B', quiet) as bar:
            problem = fetch_missing(need, bar.update)
        if problem:
            problems.append(f'{name} ({need.resource.what}): {" ".join(problem.split())}')
        print(f'{"FAILED" if problem else "fetched"} {name}', flush=True)
    for problem in problems:
        print(problem)
    print(f'{len(needs) - len(problems)} of {len(needs)} resources are here now')
    return len(problems)


def _report(arguments: Sequence[str]) -> int:
    """Join the reports of earlier runs."""
    flags = parser(
        'regression report', 'Make one page of the JSON reports of earlier runs. Nothing is run.'
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
    reports = [_read_report(path) for path in options.reports]
    _write_report(merge_reports(reports), options.output)
    return 0


def _read_report(path: str) -> dict[str, Any]:
    """A report as --report FILE.json wrote it. Raises InputError for another file."""
    content = existing_file(path, 'report').read_bytes()
    try:
        report: dict[str, Any] = parse_json(content)
        # Every form is tried: together they read all that a report has.
        for form in _FORMS.values():
            form(merge_reports([report]))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f'{path} is not a report ({error!r}): expected what --report FILE.json wrote'
        ) from error
    return report


def _write_report(data: Mapping[str, Any], path: str) -> None:
    text = _FORMS[Path(path).suffix](data)
    with atomic_file(path) as stream:
        stream.write(text.rstrip('\n') + '\n')
