"""Runs the blocks of a page: shell blocks in bash, Python blocks in one interpreter a page, all
in a scratch folder.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from doc_blocks import Block, blocks, output_of, runs
from doc_output import agrees

ROOT = Path(__file__).parents[2]
LINKED = ('regressions', 'benchmarks', 'tools', 'examples')  # what a page may name from a checkout
TIME_LIMIT = 300  # seconds for a block

# Reads a block as JSON from each line of stdin, answers with a JSON line: [output, traceback].
_INTERPRETER = """
import contextlib, io, json, sys, traceback
answers = sys.stdout
space = {'__name__': '__main__'}
for line in sys.stdin:
    place, code = json.loads(line)
    output, failed = io.StringIO(), ''
    with contextlib.redirect_stdout(output):
        try:
            exec(compile(code, place, 'exec'), space)
        except BaseException:
            failed = traceback.format_exc()
    print(json.dumps([output.getvalue(), failed]), file=answers, flush=True)
"""


@dataclass
class Counts:
    """What became of the blocks of all pages."""

    run: int = 0
    compared: int = 0
    not_run: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, counts: 'Counts') -> None:
        """Add what became of other pages."""
        self.run += counts.run
        self.compared += counts.compared
        self.not_run += counts.not_run
        self.seconds |= counts.seconds


@dataclass
class Failure:
    """A block that did not do what its page says."""

    place: str
    what: str

    def __str__(self) -> str:
        return f'{self.place}: {self.what}'


def environment(cache: Path, programs: Path | None = None) -> dict[str, str]:
    """No downloads, caches of the tests' own, this checkout's package, `python` from the folder
    `programs`; what is printed is not written sooner than for a user.
    """
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith('PYSERINI_REPBERT_') and name != 'PYTHONUNBUFFERED'
    }
    first = [str(programs)] if programs else []
    return own | {
        'PATH': os.pathsep.join([*first, str(Path(sys.executable).parent), own.get('PATH', '')]),
        'PYTHONPATH': os.pathsep.join(filter(None, [str(ROOT), own.get('PYTHONPATH', '')])),
        'PYSERINI_CACHE': str(cache / 'pyserini'),
        'PYSERINI_REPBERT_CACHE': str(cache),
        'PYSERINI_REPBERT_OFFLINE': '1',
        # Pages run side by side: a thread of OpenMP that waits takes its core from another page.
        'OMP_NUM_THREADS': '1',
        'COLUMNS': '100',
    }


def _is_whole(shown: Block) -> bool:
    """Whether an output shows all lines, without an ellipsis."""
    return '…' not in shown.content.split('\n')


class Page:
    """A page of the documentation.

    Parameters
    ----------
    path : the Markdown file
    scratch : an empty folder, in which its blocks run
    cache : the cache folder that they see
    programs : a folder with a program `python` that is to be used
    """

    def __init__(
        self, path: Path, scratch: Path, cache: Path, programs: Path | None = None
    ) -> None:
        self.path = path
        self.scratch = scratch
        self.cache = cache
        self.programs = programs
        self.name = os.path.relpath(path, ROOT)
        self._python = str(programs / 'python') if programs else sys.executable
        self._environment = environment(cache, programs)
        self._interpreter: subprocess.Popen[str] | None = None
        for name in LINKED:
            (scratch / name).symlink_to(ROOT / name)

    def run(self, counts: Counts, rewrite: str | None = None) -> list[Failure]:
        """Run the page.

        With `rewrite`, what was printed replaces outputs: the 'differing' ones, or 'all' but those
        with a line `…`.
        """
        found = blocks(self.path)
        failures: list[Failure] = []
        new: dict[Block, str] = {}
        started = time.monotonic()
        try:
            for place, block in enumerate(found):
                where = f'{self.name}:{block.line}'
                if block.title:
                    self._write_file(block)
                elif 'not run' in block.tags:
                    counts.not_run.append(f'{where}: {block.tags["not run"]}')
                elif runs(block):
                    printed, problem = self._run_block(block, where)
                    counts.run += 1
                    if problem:
                        failures.append(Failure(where, problem))
                        break  # what comes below may rest on it
                    shown = output_of(found, place)
                    if shown is None:
                        continue
                    counts.compared += 1
                    if not agrees(shown.content, printed, 'numbers vary' in shown.tags):
                        new[shown] = printed
                        what = f'shows\n{shown.content}\nbut this was printed:\n{printed}'
                        failures.append(Failure(f'{self.name}:{shown.line}', what))
                    elif rewrite == 'all' and _is_whole(shown):
                        new[shown] = printed
        finally:
            counts.seconds[self.name] = time.monotonic() - started
            self._end_interpreter()
        if rewrite and new:
            self._rewrite(new)
        return failures

    def _write_file(self, block: Block) -> None:
        """Write a block with a title to the file that the title names."""
        target = self.scratch / block.title
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.content + '\n', encoding='utf-8')

    def _end_interpreter(self) -> None:
        if self._interpreter is not None:
            # The end of its input ends it.
            self._interpreter.communicate()

    def _run_block(self, block: Block, where: str) -> tuple[str, str]:
        """What it printed, and what is wrong with that, or ''."""
        fails = 'fails' in block.tags
        if block.language == 'python':
            printed, failed = self._run_python(block, where)
        else:
            done = subprocess.run(
                ['bash', '-e', '-u', '-o', 'pipefail', '-c', block.content],
                cwd=self.scratch,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=TIME_LIMIT,
            )
            printed = done.stderr if fails else done.stdout
            failed = (
                f'status {done.returncode}\n{done.stdout}{done.stderr}' if done.returncode else ''
            )
            if fails and 'Traceback' in done.stderr:
                return '', f'fails with a traceback\n{done.stderr}'
        if bool(failed) != fails:
            return (
                '',
                f'was expected to fail:\n{block.content}'
                if fails
                else f'{block.content}\n{failed}',
            )
        return self._without_places(printed), ''

    def _run_python(self, block: Block, where: str) -> tuple[str, str]:
        if self._interpreter is None:
            self._interpreter = subprocess.Popen(
                [self._python, '-c', _INTERPRETER],
                cwd=self.scratch,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._interpreter.stdin is not None and self._interpreter.stdout is not None
        print(json.dumps([where, block.content]), file=self._interpreter.stdin, flush=True)
        printed, failed = json.loads(self._interpreter.stdout.readline())
        return printed, failed

    def _without_places(self, printed: str) -> str:
        """What was printed, without the folders of this machine."""
        shorter = {
            f'{self.scratch}/': '',
            str(self.cache): '~/.cache/pyserini_repbert',
            f'{ROOT}/': '',
            f'{Path(sys.prefix)}/': '.venv/',
        }
        for folder, short in shorter.items():
            printed = printed.replace(folder, short)
        return '\n'.join(line.rstrip() for line in printed.split('\n'))

    def _rewrite(self, new: Mapping[Block, str]) -> None:
        lines = self.path.read_text(encoding='utf-8').split('\n')
        for block in sorted(new, key=lambda one: -one.line):
            lines[block.line - 1 : block.end - 1] = new[block].strip('\n').split('\n')
        self.path.write_text('\n'.join(lines), encoding='utf-8')
