"""The rehearsal: makes and serves stand-ins, fetches them by the command, and runs every
condition on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from one_process import OneProcess
from redirected import redirected

from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.regression import main as regression_command
from pyserini_repbert.regression.jobs import ConditionJob, are_out_of_reach
from pyserini_repbert.regression.regression_files import read_regression
from pyserini_repbert.regression.runner import Outcome, run_all
from pyserini_repbert.regression.workspace import Workspace
from rehearsal.server import serving
from rehearsal.stand_ins import stand_ins

VERSION = 'rehearsal'


@dataclass
class Rehearsal:
    """The conditions by outcome, each named 'FILE CONDITION'; `failed` and `not_run` also say
    why.

    `left_out` are those that need no stand-in, since their input is among the real data.
    """

    rehearsed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def lost(self, recorded: Sequence[str]) -> list[str]:
        """The conditions that were rehearsed earlier, and that were not run this time."""
        known = {*self.rehearsed, *self.failed, *self.left_out}
        return [name for name in recorded if name not in known]


def rehearse(files: Sequence[str], chosen: Sequence[str], real: Path, folder: Path) -> Rehearsal:
    """Run, on stand-ins in `folder`, the conditions that could not be run with the `real` data and
    an empty cache.

    `chosen` names conditions; all if empty. One process runs all, so that Java and PyTorch start
    once.
    """
    data = folder / 'data'
    work = folder / 'work'
    data.mkdir(parents=True, exist_ok=True)
    regressions = [read_regression(path) for path in files]

    def make_jobs(kind: type[Workspace], data: Path) -> list[ConditionJob]:
        jobs = []
        for regression in regressions:
            workspace = kind(regression, work, str(data), VERSION)
            jobs += [ConditionJob(condition, workspace) for condition in regression.conditions]
        return jobs

    rehearsal = Rehearsal()
    unmet: dict[str, ConditionJob] = {}
    for job in make_jobs(Workspace, real):
        is_chosen = not chosen or job.condition.name in chosen
        if not is_chosen or not job.condition.expected:
            continue
        if job.missing():
            unmet[job.name] = job
        else:
            rehearsal.left_out.append(job.name)
    needs = []
    # The user's folder has none of the real data: topics are fetched, too.
    for bare in make_jobs(Workspace, data):
        if bare.name in unmet:
            needs += [*unmet[bare.name].missing(), *bare.missing()]
    site = stand_ins(needs, real, folder / 'site', data)
    with serving(site.files, site.hub) as address, redirected(address, verified=False):
        paths = dict.fromkeys(job.workspace.regression.path for job in unmet.values())
        flags = ['--data', str(data), '--work', str(work), '--quiet']
        _fetch([*paths], [*flags, *_condition_flags(chosen)], rehearsal)
        # Made anew: a path depends on what is there, and the stand-ins are there only now.
        ready = [job for job in make_jobs(OneProcess, data) if job.name in unmet]
        outcomes = run_all(ready, 1, True, _show)
        for job, outcome in zip(ready, outcomes, strict=True):
            is_out_of_reach = are_out_of_reach(job.missing())
            _sort(job.name, outcome, is_out_of_reach, rehearsal)
    return rehearsal


def _condition_flags(chosen: Sequence[str]) -> list[str]:
    flags = []
    for name in chosen:
        flags += ['--condition', name]
    return flags


def _fetch(paths: Sequence[str], flags: Sequence[str], rehearsal: Rehearsal) -> None:
    """Fetch what the regressions need, from the stand-ins."""
    status = run(regression_command, ['fetch', *paths, *flags])
    if status:
        rehearsal.failed['regression fetch'] = f'status {status}'


def _sort(name: str, outcome: Outcome, is_out_of_reach: bool, rehearsal: Rehearsal) -> None:
    """Add the outcome of a condition to those of its kind."""
    scores = [score for score in outcome.scores if not score.expected.unit]
    ways = [f'{absent.resource.name}: {absent.get}' for absent in outcome.missing]
    if scores and all(score.measured is not None for score in scores):
        rehearsal.rehearsed.append(name)
    elif is_out_of_reach:
        rehearsal.not_run[name] = '; '.join(ways)
    else:
        lacking = [
            f'{absent.resource.name} is not here: {absent.get}' for absent in outcome.missing
        ]
        rehearsal.failed[name] = outcome.why or '; '.join(lacking) or 'no score'


def _show(workspace: Workspace, outcome: Outcome) -> None:
    name = f'{workspace.regression.name} {outcome.condition.name}'
    print(f'{name} ({outcome.seconds:.0f} s) {outcome.why[:300]}', flush=True)
