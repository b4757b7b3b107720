"""kill -9 at every file event under a folder: what a process leaves behind when it ends there.

An event is an open for writing, a rename, a removal, a new folder, or an fsync. Each has a kill
point before it; a file that is opened has one more when it is there but empty, and one when half of
it is written. Files that compiled code writes raise no event in Python: wrap what writes them in
`native`.

Each run is a fork of the process, which should be a fresh interpreter with its imports done
(`fresh`): threads of PyTorch or of a JVM do not outlive a fork.
"""

import io
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CALLS = ('os.remove', 'os.mkdir', 'os.rmdir', 'os.truncate')
_TELLING = '+'  # the mark of a point in the record of a run
_PAIRS = ('os.rename', 'os.link', 'os.symlink')


class Ended(NamedTuple):
    """How a run ended.

    `points` are the kill points that it passed, 'open before NAME', in order. `telling` are the
    numbers of those at which a kill leaves another folder than at the point before: before each
    SELECT, or each INSERT of a transaction, the folder is the same.
    """

    killed: bool
    status: int
    points: list[str]
    telling: list[int]
    output: str


class _Watch:
    """Counts kill points under a folder and kills the process at the point `at`."""

    def __init__(self, under: Path, at: int | None, record: Callable[[str, bool], object]) -> None:
        self.under = os.path.realpath(under) + os.sep
        self.at = at
        self.record = record
        self.passed = 0
        self.left: dict[str, bytes] = {}
        self.busy = False
        self.pid = os.getpid()
        self.written: tuple[str, int] | None = (
            None  # the file that was opened last, and its size before
        )

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.busy or os.getpid() != self.pid:
            return
        if (
            event == 'open'
            and isinstance(arguments[0], (str, bytes))
            and (arguments[2] or 0) & _WRITES
        ):
            self.meet('open', arguments[0], None, arguments[2])
        elif event in _CALLS:
            self.meet(event, arguments[0], arguments[-1])
        elif event in _PAIRS:
            self.meet(event, arguments[1], arguments[3] if len(arguments) > 3 else None)

    def fsync(self, handle: Any) -> None:
        number = handle if isinstance(handle, int) else handle.fileno()
        self.meet('fsync', os.readlink(f'/proc/self/fd/{number}'), None)

    def meet(self, event: str, path: Any, folder: Any, flags: int = 0) -> None:
        """An event about `path`, which may be relative to the open folder `folder`."""
        self.busy = True
        try:
            if isinstance(path, int):
                path = f'/proc/self/fd/{path}'
            path = os.fsdecode(path)
            if isinstance(folder, int) and folder >= 0 and not os.path.isabs(path):
                path = os.path.join(os.readlink(f'/proc/self/fd/{folder}'), path)
            path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            if not path.startswith(self.under):
                return
            if self.written is not None:
                self.half(*self.written)
                self.written = None
            self.point(f'{event} before', path)
            if event == 'open':
                exists = os.path.isfile(path)
                empties = not exists or bool(flags & os.O_TRUNC)
                self.point(
                    'open empty', path, (lambda: os.open(path, flags, 0o600)) if empties else None
                )
                self.written = path, 0 if empties else os.path.getsize(path)
        finally:
            self.busy = False

    def half(self, path: str, before: int) -> None:
        """The point at which half of what was added to a file is written; it is known at the
        next event.
        """
        if os.path.isfile(path) and (size := os.path.getsize(path)) > before + 1:
            self.point('open half', path, lambda: os.truncate(path, before + (size - before) // 2))

    def point(self, what: str, path: str, prepare: Callable[[], object] | None = None) -> None:
        if self.passed == self.at:
            if prepare is not None:
                prepare()
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed += 1
        # A run that is killed has passed the points of one that was not.
        is_telling = (self.at is None and self.leaves_another()) or prepare is not None
        self.record(f'{what} {path.removeprefix(self.under)}', is_telling)

    def leaves_another(self) -> bool:
        """Whether the folder is another than at the point before."""
        was_busy = self.busy
        self.busy = True
        try:
            before = self.left
            self.left = tree(Path(self.under))
        finally:
            self.busy = was_busy
        # What SQLite shares between processes is made anew by the next one.
        for name in [name for name in self.left if name.endswith('-shm')]:
            del self.left[name]
        return self.left != before


_watch: _Watch | None = None


def native(module: Any, function: str, position: int) -> None:
    """Count `module.function`, which compiled code carries out, as the opening of the path among
    its arguments.
    """
    original = getattr(module, function)

    def counted(*arguments: Any, **named: Any) -> Any:
        path = arguments[position] if position < len(arguments) else None
        if _watch is not None and isinstance(path, (str, os.PathLike)):
            _watch.meet('open', os.fspath(path), None, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        return original(*arguments, **named)

    setattr(module, function, counted)


def run(work: Callable[[], object], under: Path, at: int | None = None) -> Ended:
    """Run `work` in a fork; kill it at the `at`-th kill point (from 0) under a folder, if `at`
    is given.
    """
    points = os.memfd_create('points')
    output = os.memfd_create('output')
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _in_child(work, under, at, points, output)
    _, status = os.waitpid(child, 0)
    texts = []
    for handle in (points, output):
        with os.fdopen(handle, 'rb') as stream:
            stream.seek(0)
            texts.append(stream.read().decode('utf-8', 'replace'))
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    passed = texts[0].splitlines()
    telling = [number for number, line in enumerate(passed) if line.startswith(_TELLING)]
    names = [line[1:] for line in passed]
    return Ended(killed, os.waitstatus_to_exitcode(status), names, telling, texts[1])


def _in_child(
    work: Callable[[], object], under: Path, at: int | None, points: int, output: int
) -> None:
    """Never returns."""
    global _watch
    status = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = sys.stderr = io.TextIOWrapper(
            io.FileIO(1, 'w', closefd=False), write_through=True
        )

        def record(text: str, is_telling: bool) -> None:
            mark = _TELLING if is_telling else ' '
            os.write(points, f'{mark}{text}\n'.encode())

        _watch = _Watch(under, at, record)
        sys.addaudithook(_watch.hook)
        for name in ('fsync', 'fdatasync'):
            _count_fsync(_watch, name)
        work()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _count_fsync(watch: _Watch, name: str) -> None:
    original = getattr(os, name)

    def counted(handle: Any) -> None:
        watch.fsync(handle)
        original(handle)

    setattr(os, name, counted)


def fresh(
    script: str | Path,
    *arguments: object,
    env: Mapping[str, str] | None = None,
    timeout: float = 3600,
) -> Any:
    """Run a script in a new interpreter; what the JSON on its last line of output says.

    Raises RuntimeError with its output where it fails.
    """
    done = subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            'OMP_NUM_THREADS': '1',
            'TOKENIZERS_PARALLELISM': 'false',
            **(env or {}),
        },
        timeout=timeout,
    )
    if done.returncode:
        raise RuntimeError(f'{script} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}')
    return json.loads(done.stdout.strip().splitlines()[-1])


def tree(folder: Path) -> dict[str, bytes]:
    """The bytes of every file under a folder, by relative path; folders end in '/'."""
    return {
        path.relative_to(folder).as_posix() + '/' * path.is_dir(): b''
        if path.is_dir()
        else path.read_bytes()
        for path in sorted(folder.rglob('*'))
    }
