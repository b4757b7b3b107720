"""The commands `regression plan`: what conditions cost here; and `regression quick`: published runs, checked."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.commands.command import parser
from pyserini_repbert.commands.regression_work import add_choice, add_folders, all_files, chosen_work, read_work


def main(arguments: Sequence[str]) -> int:
    """Print downloads, disk, memory and hours, and an order of the conditions that shares work."""
    made = parser(
        'regression plan', 'Disk, memory and hours that conditions take, at the rate measured on this machine.'
    )
    add_choice(made)
    made.add_argument('--device', default='cpu', help='for the models: cpu, cuda or cuda:N')
    add_folders(made)
    options = made.parse_args(arguments)
    work = chosen_work(options)
    from pyserini_repbert.disk import human_size
    from pyserini_repbert.encode.rate import passages_per_second
    from pyserini_repbert.evaluate.tables import markdown as table
    from pyserini_repbert.models.bert_config import BertConfig
    from pyserini_repbert.regression.plan import plan

    rate = passages_per_second(BertConfig(), options.device)
    found = plan(work, rate)
    print(f'{options.device}: {rate:.1f} passages a second with BERT-Base, measured now\n')
    rows = [
        [step.name, f'{step.hours:.1f}', human_size(step.disk), human_size(step.memory)]
        for step in found.steps
        if step.hours >= 0.05 or step.disk >= 10**8
    ]
    print(table(['step', 'hours', 'disk', 'memory'], rows))
    downloads = sum((need.size or 0) + need.unpacked for need in found.needs if need.is_fetched)
    made_here = sum(step.disk for step in found.steps)
    print(
        f'\n{len(found.conditions)} conditions: {human_size(downloads)} of downloads, unpacked ones with them, ', end=''
    )
    print(f'{human_size(made_here)} made here; {sum(step.hours for step in found.steps):.0f} hours; ', end='')
    print(f'{human_size(max([step.memory for step in found.steps], default=0))} of memory at most')
    by_hand = [need for need in found.needs if not need.is_fetched]
    print(f'to be brought, see `regression fetch --dry-run`: {len(by_hand)}\n')
    print('order:', *found.conditions, sep='\n  ')
    return 0


def quick_main(arguments: Sequence[str]) -> int:
    """Fetch published run files and check the scores that need nothing else: no model, no collection, no Java."""
    made = parser('regression quick', 'Fetch published run files and check all figures that need nothing else.')
    made.add_argument('--report', metavar='FILE', help='write a report: .md, .html or .json')
    made.add_argument('--offline', action='store_true', help='check what is here, download nothing')
    add_folders(made)
    options = made.parse_args(arguments)
    from pyserini_repbert.commands.regression import run_work
    from pyserini_repbert.commands.regression_fetch import fetch_listed
    from pyserini_repbert.commands.regression_report import check_name
    from pyserini_repbert.regression.environment import cache_version, fingerprint
    from pyserini_repbert.regression.fetching.needs import cheapest_first, is_of_published_runs

    if options.report:
        check_name(options.report)
    options.condition, options.jobs, options.all = [], 1, False
    environment = fingerprint()
    version = cache_version(environment)
    pairs = [pair for _, own in read_work(all_files(), options, version) for pair in own if is_of_published_runs(*pair)]
    wanted = {need.key: need for _, needs in cheapest_first(pairs) for need in needs if need.is_fetched}
    failed = 0 if options.offline else fetch_listed(list(wanted.values()), options.quiet)
    work = []
    for regression, own in read_work(all_files(), options, version):  # again: paths depend on what was fetched
        chosen = [pair for pair in own if is_of_published_runs(*pair)]
        work += [(regression, chosen)] if chosen else []
    return run_work(work, options, environment) or int(failed > 0)
