"""Reading plain or gzipped text, and writing files that appear only when they are complete."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import lzma
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from pyserini_repbert.archives import limited
from pyserini_repbert.errors import BusyError, ExhaustedError, InputError, within_limits
from pyserini_repbert.folder_forms import FolderForm, is_temporary, refuse_link, temporary_name

StrPath = str | os.PathLike[str]
_NO_RENAME = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.EPERM)

# Raised by tarfile and the decompressors for a damaged archive.
ARCHIVE_ERRORS = (tarfile.TarError, EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)
# Raised if a file of the cache cannot be written; without it, work takes longer.
CACHE_ERRORS = (OSError, ExhaustedError)
# Of a line of a file: a packed file of some kB may hold a line without end.
MAX_LINE_BYTES = 64 << 20
BYTE_ORDER_MARK = b'\xef\xbb\xbf'


def cache_folder() -> Path:
    """The folder of downloads and built indexes.

    It is $PYSERINI_REPBERT_CACHE, otherwise ~/.cache/pyserini_repbert. Raises InputError if the
    first is not set, and the user has no home folder.
    """
    chosen = os.environ.get('PYSERINI_REPBERT_CACHE')
    if chosen:
        return Path(chosen)
    home = os.path.expanduser('~')
    if not os.path.isabs(home):
        raise InputError(
            'there is no cache folder, since HOME is not set and this user has no home folder: set '
            'PYSERINI_REPBERT_CACHE to a folder'
        )
    return Path(home, '.cache', 'pyserini_repbert')


def existing_file(path: StrPath, what: str) -> Path:
    """`path` if it exists and is not a folder, otherwise InputError.

    `what` names it in the error: 'run file'.
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


def check_replaced(target: StrPath, overwrite: bool, mark: str, form: FolderForm) -> None:
    """Raise InputError for an output folder that exists, unless it may go and was made here.

    Parameters
    ----------
    target : the output folder
    overwrite : whether the user asked to replace it
    mark : the file in it that identifies it
    form : all files that it may hold
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
        article = 'an' if form.what.startswith('a') else 'a'
        raise InputError(
            f'{path} is not {article} {form.what} that was made here: give another output'
        )
    form.check(path)


def check_link(target: StrPath) -> None:
    """Raises InputError for an output that is a link to nothing."""
    path = Path(target)
    if path.is_symlink() and not path.exists():
        raise InputError(
            f'output {path} is a link to {os.readlink(path)}, which does not exist: remove the link'
        )


def files_below(folder: StrPath) -> list[Path]:
    """All files in a folder and the folders in it, in order.

    A link to another file of the folder is one of them. Links that leave the folder are left out,
    and links to folders are not followed. Raises InputError for a folder that cannot be read: its
    files are not there by mistake.
    """
    return sorted(path for path in _entries_below(folder) if path.is_file())


def leads_somewhere(path: Path) -> bool:
    """Whether a path leads to a file or a folder, or to where this user may not look."""
    try:
        path.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _leaves(path: Path, root: Path) -> bool:
    """Whether a path is a link that leads out of a folder, which is resolved already."""
    if not path.is_symlink():
        return False
    # `Path.resolve` raises an error for a link that leads back to itself.
    return not Path(os.path.realpath(path)).is_relative_to(root)


def _entries_below(folder: StrPath) -> Iterator[Path]:
    """All entries of a folder and its subfolders that are not folders, without links that leave
    it.
    """
    root = Path(folder).resolve()

    def refuse(error: OSError) -> None:
        raise InputError(
            f'folder {error.filename} cannot be read ({error.strerror}): check its permissions'
        ) from error

    for parent, _, names in os.walk(folder, onerror=refuse):
        for name in names:
            path = Path(parent, name)
            if leads_somewhere(path) and not _leaves(path, root):
                yield path


@contextmanager
def open_binary(path: StrPath, most_bytes: int | None = None) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked when its name ends in .gz.

    Damaged gzip data raise InputError, and so do data that unpack to more than `most_bytes`, by
    default `MAX_RATIO` times the file's size.
    """
    file = Path(path)
    if file.suffix.lower() != '.gz':
        with open(file, 'rb') as stream:
            yield stream
        return
    try:
        with gzip.open(file, 'rb') as unpacked:
            yield limited(unpacked, file, InputError, most_bytes)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f'{file} is not a complete gzip file ({error}): fetch it again') from error


def numbered_lines(path: StrPath, what: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its end) of a UTF-8 text file, plain or .gz.

    Raises InputError with file and line for bytes that are not UTF-8, and for a CR inside a line,
    which other readers take for a line's end. Blank lines are included, a byte order mark is not.
    """
    with open_binary(existing_file(path, what)) as stream:
        yield from decoded_lines(path, numbered_bytes(stream))


def numbered_bytes(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, line) of a file, without the byte order mark that may begin it.

    Raises InputError, with file and line, for a line of more than `MAX_LINE_BYTES`.
    """
    lines = iter(partial(stream.readline, MAX_LINE_BYTES + 1), b'')
    for number, raw in enumerate(lines, 1):
        if len(raw) > MAX_LINE_BYTES:
            file = getattr(stream, 'name', 'the file')
            problem = f'the line has more than {MAX_LINE_BYTES:,} bytes: cut it'
            raise InputError.at(file, number, problem)
        if number == 1:
            raw = raw.removeprefix(BYTE_ORDER_MARK)
        yield number, raw


def decoded_lines(path: StrPath, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str]]:
    """Numbered lines of the file `path` as text without their ends.

    Raises the errors of `numbered_lines`.
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
    name = os.fspath(path)
    match = re.fullmatch('/(?:dev|proc/self)/fd/([0-9]{1,6})', name)
    if match:
        return int(match[1])
    return {'/dev/stdin': 0, '/dev/stdout': 1, '/dev/stderr': 2}.get(name)


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
    is_text = 'b' not in mode
    text_form: dict[str, Any] = {'encoding': 'utf-8', 'newline': '\n'} if is_text else {}
    opened = descriptor(path)
    if opened is not None or (target.exists() and not target.is_file()):
        device = target if opened is None else os.dup(opened)
        with within_limits(target), open(device, mode, **text_form) as stream:
            yield stream
        return
    check_link(target)
    target = Path(os.path.realpath(target))
    with _temporary(target, folder=False) as temporary, within_limits(target):
        with open(temporary, 'wb') as raw, contextlib.ExitStack() as layers:
            layer: Any = raw
            if target.suffix == '.gz':
                layer = layers.enter_context(gzip.GzipFile('', 'wb', fileobj=raw, mtime=0))
            if is_text:
                layer = layers.enter_context(io.TextIOWrapper(layer, **text_form))
            yield layer
        move(temporary, target)


@contextmanager
def atomic_folder(path: StrPath, replaces: FolderForm | None = None) -> Iterator[Path]:
    """A temporary neighbouring folder, renamed to `path` at the end, removed on an error.

    With `replaces`, a folder of that form goes once the new one is complete; without, it must not
    exist. Of a symbolic link, the target is replaced. Temporary folders that killed processes left
    are removed. Raises InputError if the folder to replace holds anything of another form.
    """
    target = Path(path)
    check_link(target)
    if replaces is not None:
        target = Path(os.path.realpath(target))
    with _temporary(target, folder=True) as temporary, within_limits(target):
        yield temporary
        if replaces is not None and target.exists():
            _exchange(temporary, target, replaces)
        else:
            move(temporary, target)


def _exchange(source: Path, target: Path, form: FolderForm) -> None:
    """Rename a folder to one of a form that is there, and remove that."""
    # The work took time, in which a file may have come.
    form.check(target)
    # This takes long: it is done before the moment without a target.
    _sync(_files_in(source))
    earlier = set_aside(target)
    try:
        move(source, target)
    except BaseException:
        if not target.exists():
            earlier.rename(target)
        raise
    form.remove(earlier)


def set_aside(folder: Path) -> Path:
    """Rename a folder to a hidden name.

    `remove_leftovers` finds it if this process is killed.
    """
    return folder.rename(folder.with_name(temporary_name(folder.name)))


def move(source: Path, target: Path) -> None:
    """Rename a file or a folder once all of it is on the disk.

    Where the file system cannot rename, it is copied. Of a folder, the records (.json), without
    which it counts as incomplete, are copied last and removed first.
    """
    files = _files_in(source)
    _sync(files)
    try:
        source.replace(target)
    except OSError as error:
        if error.errno not in _NO_RENAME:
            raise
        _copy_and_remove(files, source, target)


def _copy_and_remove(files: list[Path], source: Path, target: Path) -> None:
    """Move the files of `source` one by one; in the order of `move`."""
    ordered = sorted(files, key=lambda file: file.suffix == '.json')
    for file in ordered:
        copied = target / file.relative_to(source)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied)
    for file in reversed(ordered):
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
    """Remove the temporary files and folders of `name` that killed processes left.

    Files of live processes stay, and so do files that this package did not name.
    """
    for entry in list(os.scandir(folder)):
        if is_temporary(entry.name, name):
            with contextlib.suppress(OSError):
                _remove_unlocked(Path(entry))


def _remove_unlocked(path: Path) -> None:
    """Remove a file or a folder that no process has locked."""
    from filelock import lock_descriptor

    handle = os.open(path, os.O_RDONLY)
    try:
        if lock_descriptor(handle, blocking=False):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    finally:
        os.close(handle)


@contextmanager
def _temporary(target: Path, folder: bool) -> Iterator[Path]:
    """A new file or folder beside `target`, removed on an error.

    Its lock tells it from what a killed process left.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target.parent, target.name)
    with contextlib.ExitStack() as locks:
        temporary = _locked_neighbour(target, folder, locks)
        while not temporary.exists():
            # Another process took it for a leftover, before it was locked.
            temporary = _locked_neighbour(target, folder, locks)
        try:
            yield temporary
        except BaseException:
            if folder:
                shutil.rmtree(temporary, ignore_errors=True)
            else:
                temporary.unlink(missing_ok=True)
            raise


def _locked_neighbour(target: Path, folder: bool, locks: contextlib.ExitStack) -> Path:
    """A new file or folder beside `target`, locked until `locks` is closed."""
    from filelock import lock_descriptor

    neighbour = target.with_name(temporary_name(target.name))
    if folder:
        neighbour.mkdir()
    else:
        neighbour.touch(exist_ok=False)
    # Some systems open no folder, or lock nothing.
    with contextlib.suppress(OSError):
        handle = os.open(neighbour, os.O_RDONLY)
        locks.callback(os.close, handle)
        lock_descriptor(handle, blocking=False)
    return neighbour


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """A context that holds the lock file `path`, which is removed at the end.

    The lock file of a dead process is taken over. Raises BusyError about `what` ('output FOLDER')
    where another process holds it. On a file system without locks, two processes are not kept
    apart. Raises InputError for a link, whose target would be overwritten.
    """
    import socket

    from filelock import FileLock, Timeout

    refuse_link(path)
    lock = FileLock(path, blocking=False, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise BusyError(
            f'{what} is being written by {_holder(path)}: wait until that has ended, or end it'
        ) from error
    except OSError:
        # Either the file system has no locks, or the write below reports the error.
        pass
    try:
        path.write_text(f'{os.getpid()} {socket.gethostname()}\n', encoding='utf-8')
        yield
    finally:
        # Removed while still locked: a waiting process then finds another file, or none.
        path.unlink(missing_ok=True)
        lock.release()


def _holder(path: Path) -> str:
    """The process that a lock file names."""
    content = path.read_text(encoding='utf-8').strip() if path.exists() else ''
    process, _, host = content.partition(' ')
    return f'process {process} on host {host}' if host else 'another process'


def human_size(n_bytes: float) -> str:
    """12345678 -> '12.3 MB' (powers of 1000)."""
    if n_bytes < 1000:
        return f'{n_bytes:.0f} B'
    for unit in ('kB', 'MB', 'GB'):
        n_bytes /= 1000
        if n_bytes < 1000:
            return f'{n_bytes:.1f} {unit}'
    return f'{n_bytes / 1000:.1f} TB'
