"""Script: kill a command at its file events, and see what the user's next command makes of what is left.

    kill_commands.py JOB.json

JOB is an object: `command` (the package's module), `arguments`, `work` (the folder that the command writes under),
`every` (look at each n-th kill point), `before` (arguments of a command that has filled the folder already, or null)
and `small_batches` (for rerank: query batches of one query each). Prints {'points': …, 'looked': …, 'failures': [...]}.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kill_at

from pyserini_repbert.commands import command


class Scenario:
    """A command, and the folder in which it is killed."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.main = importlib.import_module(f'pyserini_repbert.commands.{job["command"]}').main
        self.arguments: list[str] = job['arguments']
        self.work = Path(job['work'])
        self.saved = self.work.with_name(f'{self.work.name}.saved')
        self.start = self.work.with_name(f'{self.work.name}.start')
        self.failures: list[str] = []
        for folder in (self.work, self.start):
            folder.mkdir()
        if job['before'] is not None:
            assert command.run(self.main, job['before']) == 0
            shutil.copytree(self.work, self.start, dirs_exist_ok=True)
        self.restore(self.start)
        assert command.run(self.main, [*self.arguments, *(['--overwrite'] if job['before'] else [])]) == 0
        self.whole = kill_at.tree(self.work)
        self.began_full = job['before'] is not None

    def restore(self, source: Path) -> None:
        """Make the folder what another one is."""
        shutil.rmtree(self.work)
        shutil.copytree(source, self.work)

    def call(self, *more: str) -> Callable[[], object]:
        """The command, as work for a fork."""

        def work() -> None:
            raise SystemExit(command.run(self.main, [*self.arguments, *more]))

        return work

    def expect(self, where: str, *more: str, refusal: bool = False) -> bool:
        """Run the command on what is left: it has to end with the whole output, or be refused in one line.

        Returns whether it was refused.
        """
        ended = kill_at.run(self.call(*more), self.work)
        lines = ended.output.splitlines()
        if refusal and ended.status == 2 and len(lines) == 1 and lines[0].startswith('error: '):
            if '--resume' not in lines[0] and '--overwrite' not in lines[0] and 'another output' not in lines[0]:
                self.failures.append(f'{where}: {more}: no way out is named: {lines[0]}')
            return True
        if ended.status != 0 or 'Traceback' in ended.output:
            self.failures.append(f'{where}: {more}: status {ended.status}: {ended.output[-500:]}')
        elif (found := kill_at.tree(self.work)) != self.whole:
            names = sorted(name for name in found.keys() | self.whole.keys() if found.get(name) != self.whole.get(name))
            self.failures.append(f'{where}: {more}: other bytes: {names}')
        return False

    def at(self, number: int, begin: list[str]) -> None:
        """Kill at one point, and try all ways on from there."""
        self.restore(self.start)
        ended = kill_at.run(self.call(*begin), self.work, at=number)
        where = f'{number} after {ended.points[-1] if ended.points else "nothing"}'
        if not ended.killed:
            self.failures.append(f'{where}: not killed: {ended.output[-300:]}')
            return
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.work, self.saved)
        if self.began_full:
            self.expect(where, '--resume', refusal=True)
        else:
            self.expect(where, '--resume')
            self.restore(self.saved)
            if self.expect(where, refusal=True):
                self.expect(where, '--resume')
        self.restore(self.saved)
        self.expect(where, '--overwrite')


def main() -> None:
    """Run the job."""
    job = json.loads(Path(sys.argv[1]).read_text())
    import torch

    torch.set_num_threads(1)
    if job['small_batches']:
        _small_batches()
    scenario = Scenario(job)
    begin = ['--overwrite'] if scenario.began_full else []
    scenario.restore(scenario.start)
    points = kill_at.run(scenario.call(*begin), scenario.work).points
    looked = range(job['first'], len(points), job['every'])
    for number in looked:
        scenario.at(number, begin)
    print(json.dumps({'points': len(points), 'looked': len(looked), 'failures': scenario.failures}))


def _small_batches() -> None:
    """A reranking whose query batches hold one query each, and whose clock stands still."""
    from pyserini_repbert.pipeline import pipeline
    from pyserini_repbert.rerank import base

    cut = pipeline.cut_batches
    pipeline.cut_batches = lambda planned, size: cut(planned, 1)
    base.time = type('Clock', (), {'perf_counter': staticmethod(lambda: 0.0)})


if __name__ == '__main__':
    main()
