"""Reading plain or gzipped text, and writing files that appear under their name only when they
are whole.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import lzma
import os
import re
import secrets
import shutil
import socket
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from pyserini_repbert.errors import BusyError, InputError, within_limits

StrPath = str | os.PathLike[str]
_NO_RENAME = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.EPERM)

# Raised by tarfile and the decompressors for a damaged archive.
ARCHIVE_ERRORS = (tarfile.TarError, EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)
BYTE_ORDER_MARK = b'\xef\xbb\xbf'


def cache_folder() -> Path:
    """Where downloads and built indexes live: $PYSERINI_REPBERT_CACHE, else
    ~/.cache/pyserini_repbert.
    """
    chosen = os.environ.get('PYSERINI_REPBERT_CACHE')
    return Path(chosen) if chosen else Path.home() / '.cache' / 'pyserini_repbert'


def existing_file(path: StrPath, what: str) -> Path:
    """`path` if it exists and is no folder, else InputError, in which `what` names it ('run
    file').
    """
    file = Path(path)
    if not file.exists():
        raise InputError(f'{what} {file} does not exist: check the path')
    if file.is_dir():
        raise InputError(f'{what} {file} is a folder, a file was expected')
    return file


def check_absent(target: StrPath) -> None:
    """Raises InputError for an output that exists."""
    if Path(target).exists():
        raise InputError(f'{target} exists: remove it or choose another output')


def check_replaced(target: StrPath, overwrite: bool, mark: str, what: str) -> None:
    """Raise InputError for an output folder that exists, unless it may go and was made here.

    Parameters
    ----------
    target : the output folder
    overwrite : whether the user asked to replace it
    mark : the file in it that shows what it is
    what : what it has to be, for the error: 'Lucene index'
    """
    path = Path(target)
    if not path.exists():
        return
    if not overwrite:
        raise InputError(
            f'{path} exists already: overwrite it, or give another output',
            parameters=('overwrite',),
        )
    if not (path / mark).is_file():
        raise InputError(f'{path} is no {what} that was made here: give another output')


def check_link(target: StrPath) -> None:
    """Raises InputError for an output that is a link to nothing."""
    path = Path(target)
    if path.is_symlink() and not path.exists():
        raise InputError(
            f'output {path} is a link to {os.readlink(path)}, which does not exist: remove the link'
        )


@contextmanager
def open_binary(path: StrPath) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked when its name ends in .gz. Damaged gzip data raise
    InputError.
    """
    file = Path(path)
    try:
        with cast(
            IO[bytes], gzip.open(file, 'rb') if file.suffix == '.gz' else open(file, 'rb')
        ) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f'{file} is not a whole gzip file ({error}): fetch it again') from error


def numbered_lines(path: StrPath, what: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its end) of a UTF-8 text file, plain or .gz.

    Raises InputError with file and line for bytes that are not UTF-8, and for a CR inside a line,
    which other readers take for a line's end. Blank lines are included, a byte order mark is not.
    """
    with open_binary(existing_file(path, what)) as stream:
        yield from decoded_lines(path, numbered_bytes(stream))


def numbered_bytes(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, line) of a file, without the byte order mark that may begin it."""
    for number, raw in enumerate(stream, 1):
        yield number, raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw


def decoded_lines(path: StrPath, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
    """Numbered lines of the file `path` as text without their ends; errors are those of
    `numbered_lines`.
    """
    for number, raw in lines:
        try:
            yield number, decoded_line(raw)
        except ValueError as error:
            raise InputError.at(path, number, str(error)) from error


def decoded_line(raw: bytes) -> str:
    """A line of UTF-8 without its end.

    Raises ValueError for other bytes, and for a CR inside the line.
    """
    try:
        line = raw.decode('utf-8').rstrip('\r\n')
    except UnicodeDecodeError as error:
        raise ValueError(f'not valid UTF-8 ({error.reason}): save the file as UTF-8') from error
    if '\r' in line:
        raise ValueError(
            'a carriage return (CR) inside the line: save the file with LF or CRLF line ends'
        )
    return line


def descriptor(path: StrPath) -> int | None:
    """The open file that /dev/stdout, /dev/fd/3 or their like name; None for any other path."""
    match = re.fullmatch('/(?:dev|proc/self)/fd/([0-9]{1,6})', os.fspath(path))
    standard = {'/dev/stdin': 0, '/dev/stdout': 1, '/dev/stderr': 2}
    return int(match[1]) if match else standard.get(os.fspath(path))


@contextmanager
def atomic_file(path: StrPath, mode: str = 'w') -> Iterator[IO[Any]]:
    """A stream to a temporary neighbour of `path`, renamed to it at the end, removed on an error.

    Text is UTF-8 with '\\n' line ends; a name that ends in .gz is compressed (without a time stamp:
    the same content gives the same bytes). Of a symbolic link, the target is replaced. A device, a
    pipe and an open file (/dev/stdout) are written to directly. Temporary files that killed
    processes left are removed. Where the file system cannot rename, the file is copied. Raises
    InputError for a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f'output {target} is a folder, a file name was expected')
    form: dict[str, Any] = {} if 'b' in mode else {'encoding': 'utf-8', 'newline': '\n'}
    opened = descriptor(path)
    if opened is not None or (target.exists() and not target.is_file()):
        place = target if opened is None else os.dup(opened)
        with within_limits(target), open(place, mode, **form) as device:
            yield device
        return
    check_link(target)
    target = Path(os.path.realpath(target))
    with _temporary(target, folder=False) as temporary, within_limits(target):
        with open(temporary, 'wb') as raw, contextlib.ExitStack() as layers:
            stream: Any = raw
            if target.suffix == '.gz':
                stream = layers.enter_context(gzip.GzipFile('', 'wb', fileobj=raw, mtime=0))
            yield stream if 'b' in mode else layers.enter_context(io.TextIOWrapper(stream, **form))
        move(temporary, target)


@contextmanager
def atomic_folder(path: StrPath, replace: bool = False) -> Iterator[Path]:
    """A temporary neighbouring folder, renamed to `path` at the end, removed on an error.

    With `replace`, a folder of that name goes once the new one is whole; without, it must not be
    there. Of a symbolic link, the target is replaced. Temporary folders that killed processes left
    are removed.
    """
    target = Path(path)
    check_link(target)
    if replace:
        target = Path(os.path.realpath(target))
    with _temporary(target, folder=True) as temporary, within_limits(target):
        yield temporary
        if replace and target.exists():
            _exchange(temporary, target)
        else:
            move(temporary, target)


def _exchange(source: Path, target: Path) -> None:
    """Rename a folder to one that is there, and remove that."""
    # before the moment without a target, because this takes long
    _sync(_files_in(source))
    earlier = set_aside(target)
    try:
        move(source, target)
    except BaseException:
        if not target.exists():
            earlier.rename(target)
        raise
    shutil.rmtree(earlier, ignore_errors=True)


def set_aside(folder: Path) -> Path:
    """Rename a folder to a hidden name, which `remove_leftovers` finds if this process is
    killed.
    """
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f'.{folder.name}.'))
    aside.rmdir()
    return folder.rename(aside)


def move(source: Path, target: Path) -> None:
    """Rename a file or a folder once all of it is on the disk; where the file system cannot rename,
    copy it.

    Of a folder, the records (.json), without which it counts as incomplete, are copied last and
    removed first.
    """
    files = _files_in(source)
    _sync(files)
    try:
        source.replace(target)
    except OSError as error:
        if error.errno not in _NO_RENAME:
            raise
        files.sort(key=lambda file: file.suffix == '.json')
        for file in files:
            (target / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / file.relative_to(source))
        for file in reversed(files):
            file.unlink()
        shutil.rmtree(source, ignore_errors=True)


def _files_in(source: Path) -> list[Path]:
    return [path for path in (source, *source.rglob('*')) if path.is_file()]


def _sync(files: Iterable[Path]) -> None:
    """Wait until the files are on the disk."""
    for file in files:
        with open(file, 'rb') as stream:
            os.fsync(stream.fileno())


def remove_leftovers(folder: Path, name: str) -> None:
    """Remove the temporary files and folders of `name` that killed processes left; those of live
    processes stay.
    """
    from filelock import lock_descriptor

    pattern = re.compile(rf'\.{re.escape(name)}\.[a-z0-9_]{{8}}')
    for entry in [Path(entry) for entry in os.scandir(folder) if pattern.fullmatch(entry.name)]:
        with contextlib.suppress(OSError):
            handle = os.open(entry, os.O_RDONLY)
            try:
                if lock_descriptor(handle, blocking=False):
                    shutil.rmtree(
                        entry
                    ) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
            finally:
                os.close(handle)


@contextmanager
def _temporary(target: Path, folder: bool) -> Iterator[Path]:
    """A new file or folder beside `target`, removed on an error; its lock tells it from what a
    killed process left.
    """
    from filelock import lock_descriptor

    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target.parent, target.name)
    temporary = Path()
    with contextlib.ExitStack() as locks:
        while (
            not temporary.name or not temporary.exists()
        ):  # another process took it for a leftover: not locked yet
            temporary = target.with_name(f'.{target.name}.{secrets.token_hex(4)}')
            temporary.mkdir() if folder else temporary.touch(exist_ok=False)
            with contextlib.suppress(OSError):  # folders cannot be opened, or nothing can be locked
                handle = os.open(temporary, os.O_RDONLY)
                locks.callback(os.close, handle)
                lock_descriptor(handle, blocking=False)
        try:
            yield temporary
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True) if folder else temporary.unlink(
                missing_ok=True
            )
            raise


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path`, which is removed at the end; the lock file of a dead process is
    taken over.

    Raises BusyError about `what` ('output FOLDER') where another process holds it. On a file system
    without locks, two processes are not kept apart.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, blocking=False, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        process, _, host = (
            path.read_text(encoding='utf-8').strip().partition(' ')
            if path.exists()
            else ('', '', '')
        )
        who = f'process {process} on host {host}' if host else 'another process'
        raise BusyError(
            f'{what} is being written by {who}: wait until that has ended, or end it'
        ) from error
    except OSError:  # without locks, or the line below says what is wrong
        pass
    try:
        path.write_text(f'{os.getpid()} {socket.gethostname()}\n', encoding='utf-8')
        yield
    finally:
        path.unlink(
            missing_ok=True
        )  # while still locked: a waiting process then finds another file, or none
        lock.release()


def human_size(n_bytes: float) -> str:
    """12345678 -> '12.3 MB' (powers of 1000)."""
    for unit in ('B', 'kB', 'MB', 'GB'):
        if n_bytes < 1000:
            return f'{n_bytes:.0f} B' if unit == 'B' else f'{n_bytes:.1f} {unit}'
        n_bytes /= 1000
    return f'{n_bytes:.1f} TB'
