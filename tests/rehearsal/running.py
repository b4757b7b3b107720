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
from pyserini_repbert.regression.needs import Pair, is_out_of_reach, missing_of
from pyserini_repbert.regression.reading import read_regression
from pyserini_repbert.regression.runner import Outcome, run_all
from pyserini_repbert.regression.schema import Regression
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

    def workspaces(kind: type[Workspace], data: Path) -> dict[str, Workspace]:
        return {path: kind(own, work, str(data), VERSION) for path, own in regressions.items()}

    regressions: dict[str, Regression] = {file: read_regression(file) for file in files}
    found = Rehearsal()
    absent: list[tuple[str, Pair]] = []
    for path, before in workspaces(Workspace, real).items():
        wanted = [
            own
            for own in regressions[path].conditions
            if own.expected and (not chosen or own.name in chosen)
        ]
        for own in wanted:
            if missing_of(own, before):
                absent.append((path, (own, before)))
            else:
                found.left_out.append(f'{before.regression.name} {own.name}')
    regressions = {path: regressions[path] for path, _ in absent}
    bare = workspaces(
        Workspace, data
    )  # the user's folder has none of the real data: topics are fetched too
    needs = [
        need
        for path, (own, before) in absent
        for pair in (before, bare[path])
        for need in missing_of(own, pair)
    ]
    site = stand_ins(needs, real, folder / 'site', data)
    with serving(site.files, site.hub) as address, redirected(address, verified=False):
        arguments = ['fetch', *regressions, '--data', str(data), '--work', str(work), '--quiet']
        arguments += [word for name in chosen for word in ('--condition', name)]
        if status := run(regression_command, arguments):
            found.failed['regression fetch'] = f'status {status}'
        # made anew: a path depends on what is there, and the stand-ins are there only now
        ready = workspaces(OneProcess, data)
        pairs = [(own, ready[path]) for path, (own, _) in absent]
        outcomes = run_all(pairs, 1, True, _show)
        for (condition, workspace), outcome in zip(pairs, outcomes, strict=True):
            never = is_out_of_reach(missing_of(condition, workspace))
            _sort(f'{workspace.regression.name} {condition.name}', outcome, never, found)
    return found


def _sort(name: str, outcome: Outcome, never: bool, found: Rehearsal) -> None:
    scores = [score for score in outcome.scores if not score.expected.unit]
    if scores and all(score.measured is not None for score in scores):
        found.rehearsed.append(name)
    elif never:
        found.not_run[name] = '; '.join(
            f'{one.resource.name}: {one.get}' for one in outcome.missing
        )
    else:
        lacking = '; '.join(
            f'{one.resource.name} is not here: {one.get}' for one in outcome.missing
        )
        found.failed[name] = outcome.why or lacking or 'no score'


def _show(workspace: Workspace, outcome: Outcome) -> None:
    name = f'{workspace.regression.name} {outcome.condition.name}'
    print(f'{name} ({outcome.seconds:.0f} s) {outcome.why[:300]}', flush=True)
