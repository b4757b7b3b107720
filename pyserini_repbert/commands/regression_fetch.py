"""The commands `regression fetch`, which lists and fetches what conditions need, and `regression quick`."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.commands.command import argument_type, counted, parser, progress
from pyserini_repbert.commands.flags import add_flags
from pyserini_repbert.commands.regression import add_work_flags, all_files, read_work, run_work
from pyserini_repbert.files import human_size
from pyserini_repbert.regression.environment import cache_version, fingerprint
from pyserini_repbert.regression.fetching import fetched
from pyserini_repbert.regression.needs import Pair, cheapest_first, is_of_published_runs, is_out_of_reach, missing_of
from pyserini_repbert.regression.resources import NeededResource, size_in_bytes


def fetch(arguments: Sequence[str]) -> int:
    """Run the command: status 0 if everything listed was fetched, 1 if something failed."""
    flags = parser('regression fetch', 'Download, verify and unpack what conditions need, the smallest first.')
    add = flags.add_argument
    add('--budget', type=argument_type(size_in_bytes), metavar='SIZE', help='fetch at most this much, as 10GB')
    add('--dry-run', action='store_true', help='only show sizes, sources and licences')
    add_flags(flags, 'offline', help='download nothing: unpack what is here')
    add_work_flags(flags, 'files', '--condition')
    options = flags.parse_args(arguments)
    work = read_work(options.files or all_files(), options)
    everything = {need.key: need for pair in work if pair[0].expected for need in missing_of(*pair)}
    reached = cheapest_first(work, options.budget)
    wanted = [*{need.key: need for _, needs in reached for need in needs if need.is_fetched}.values()]
    by_hand = [need for need in everything.values() if not need.is_fetched]
    total = sum(one.n_bytes or 0 for one in wanted)
    unknown = sum(one.n_bytes is None for one in wanted)
    more = f' and {unknown} of unknown size' if unknown else ''
    within = f', within {human_size(options.budget)}' if options.budget is not None else ''
    print(f'to fetch: {len(wanted)}, {human_size(total)}{more}{within}')
    for one in wanted:
        source, licence = one.resource.source.replace('\n', ' and '), one.licence or 'not stated'
        print(f'  {one.resource.name}: {one.resource.what}; {one.size or "size unknown"}; {source}; licence: {licence}')
    if by_hand:
        print(f'not to be fetched here: {len(by_hand)}')
    for one in by_hand:
        print(f'  {one.resource.name}: {one.resource.what}: {one.get}')
    beyond = [pair for pair in work if pair[0].expected and is_out_of_reach(missing_of(*pair))]
    runnable = counted(len(reached), 'condition')
    print(f'{runnable} can be run then, {len(beyond)} never: something of them was not published')
    return 0 if options.dry_run or not wanted else int(_fetch(wanted, options.quiet) > 0)


def quick(arguments: Sequence[str]) -> int:
    """Fetch published run files and check the scores that need nothing else: no model, no collection, no Java."""
    flags = parser('regression quick', 'Fetch published run files and check all figures that need nothing else.')
    add_flags(flags, 'offline', help='check what is here, download nothing')
    add_work_flags(flags, '--report')
    options = flags.parse_args(arguments)
    options.condition, options.jobs, options.all = [], 1, False
    environment = fingerprint()

    def of_published_runs() -> list[Pair]:
        work = read_work(all_files(), options, cache_version(environment))
        return [pair for pair in work if is_of_published_runs(*pair)]

    needed = cheapest_first(of_published_runs())
    wanted = {need.key: need for _, needs in needed for need in needs if need.is_fetched}
    failed = 0 if options.offline else _fetch(list(wanted.values()), options.quiet)
    return run_work(of_published_runs(), options, environment) or int(failed > 0)  # paths depend on what was fetched


def _fetch(absent: Sequence[NeededResource], quiet: bool) -> int:
    """Fetch resources, with a progress bar and a line for each. Returns how many failed."""
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
