"""kill -9 at every file event under a folder: what a process leaves behind when it ends there.

An event is an open for writing, a rename, a removal, a new folder, or an fsync. Each has a kill
point before it; a file that is opened has one more when it is there but empty, and one when half of
it is written. Files that compiled code writes raise no event in Python: wrap what writes them in
`native`.

`run` and `after_kills` kill. `after_copies` copies the folder at the kill points of one run: that
is what a kill leaves on the disk, and no run is begun for each.

Each run is a fork of the process, which should be a fresh interpreter with its imports done
(`fresh`): threads of PyTorch or of a JVM do not outlive a fork.
"""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
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


class _Copies(NamedTuple):
    """The kill points at which a folder is copied, to `folder`/NUMBER, and files beside it."""

    points: frozenset[int]
    folder: Path
    beside: Sequence[Path]


class _Watch:
    """Counts kill points under a folder and kills the process at the point `at`, or makes
    copies.
    """

    def __init__(
        self,
        under: Path,
        at: int | None,
        copies: _Copies | None,
        record: Callable[[str, bool], object],
    ) -> None:
        self.under = os.path.realpath(under) + os.sep
        self.at = at
        self.copies = copies
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
                    'open empty',
                    path,
                    (lambda opened: os.close(os.open(opened, flags, 0o600))) if empties else None,
                )
                self.written = path, 0 if empties else os.path.getsize(path)
        finally:
            self.busy = False

    def half(self, path: str, before: int) -> None:
        """The point at which half of what was added to a file is written; it is known at the
        next event.
        """
        if os.path.isfile(path) and (size := os.path.getsize(path)) > before + 1:
            half = before + (size - before) // 2
            self.point('open half', path, lambda opened: os.truncate(opened, half))

    def point(self, what: str, path: str, prepare: Callable[[str], object] | None = None) -> None:
        """`prepare`: what happens to the file at `path`, or to its copy, before the kill."""
        if self.passed == self.at:
            if prepare is not None:
                prepare(path)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.copies is not None and self.passed in self.copies.points:
            copy = self.copy(self.copies)
            if prepare is not None:
                prepare(os.path.join(copy, path.removeprefix(self.under)))
        self.passed += 1
        # The points of a run that is killed, or copied, are known from one that was not.
        is_counted = self.at is None and self.copies is None
        is_telling = (is_counted and self.leaves_another()) or prepare is not None
        self.record(f'{what} {path.removeprefix(self.under)}', is_telling)

    def copy(self, copies: _Copies) -> Path:
        """Copy the folder as it is now, and the files beside it."""
        was_busy = self.busy
        self.busy = True
        try:
            target = copies.folder / str(self.passed)
            copied = target / os.path.basename(os.path.dirname(self.under))
            _copy_tree(self.under, copied)
            for path in copies.beside:
                shutil.copy2(path, target / path.name)
        finally:
            self.busy = was_busy
        return copied

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


def _copy_tree(source: str, target: Path) -> None:
    """Copy a folder; several names of one file are that in the copy, too."""
    first_names: dict[int, str] = {}

    def copy_file(name: str, copied: str) -> None:
        first = first_names.setdefault(os.stat(name).st_ino, copied)
        if first == copied:
            shutil.copy2(name, copied)
        else:
            os.link(first, copied)

    shutil.copytree(source, target, symlinks=True, copy_function=copy_file)


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
    return _run_in_fork(work, under, at, None)


def after_kills(
    work: Callable[[], object], under: Path, points: Sequence[int], start: Callable[[], object]
) -> Iterator[int]:
    """Yield each of some kill points, with the folder `under` as a kill there left it.

    `start` makes what is there before each run.
    """
    for point in points:
        start()
        ended = run(work, under, at=point)
        assert ended.killed, f'not killed at {point}, status {ended.status}: {ended.output}'
        yield point


def after_copies(
    work: Callable[[], object],
    under: Path,
    points: Sequence[int],
    start: Callable[[], object],
    copies: Path,
    beside: Sequence[Path] = (),
) -> Iterator[int]:
    """As `after_kills`, with one run, which is not killed, but copied at each point.

    `copies` is a new folder for the copies of `under`, and of the files `beside` it that are to be
    as they were at the point.
    """
    start()
    ended = _run_in_fork(work, under, None, _Copies(frozenset(points), copies, beside))
    assert ended.status == 0, ended.output
    for point in points:
        copy = copies / str(point)
        shutil.rmtree(under)
        (copy / under.name).rename(under)
        for path in beside:
            (copy / path.name).replace(path)
        yield point


def _run_in_fork(
    work: Callable[[], object], under: Path, at: int | None, copies: _Copies | None
) -> Ended:
    points = os.memfd_create('points')
    output = os.memfd_create('output')
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _in_child(work, under, at, copies, points, output)
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
    work: Callable[[], object],
    under: Path,
    at: int | None,
    copies: _Copies | None,
    points: int,
    output: int,
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

        _watch = _Watch(under, at, copies, record)
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
    """The bytes of every file under a folder, by relative path; folders end in '/'.

    It runs at every kill point: paths as text are cheaper than those of `Path.rglob`.
    """
    found = {}
    start = len(os.path.join(folder, ''))
    for parent, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.join(parent, name)[start:] + '/'] = b''
        for name in files:
            path = os.path.join(parent, name)
            with open(path, 'rb', buffering=0) as stream:
                found[path[start:]] = stream.read()
    return found
