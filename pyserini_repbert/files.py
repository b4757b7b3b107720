"""Reading plain or gzipped text, and writing files that appear under their name only when they are whole."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from pyserini_repbert.errors import InputError, within_limits
from pyserini_repbert.locks import hold, is_left

StrPath = str | os.PathLike[str]

_NO_RENAME = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.EPERM)
_TICK = 2_000_000_000  # nanoseconds: the coarsest clock of a file system
_TEMPORARY = r'\.{}\.[a-z0-9_]{{8}}'  # the names that tempfile gives to a target's temporary files

LONE_CR = 'a carriage return (CR) inside the line: save the file with LF or CRLF line ends'
# Raised by tarfile and the decompressors for a damaged archive.
ARCHIVE_ERRORS = (tarfile.TarError, EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)
BYTE_ORDER_MARK = b'\xef\xbb\xbf'


def existing_file(path: StrPath, what: str) -> Path:
    """`path` if it exists and is no folder, else InputError, in which `what` names it ('run file')."""
    found = Path(path)
    if not found.exists():
        raise InputError(f'{what} {found} does not exist: check the path')
    if found.is_dir():
        raise InputError(f'{what} {found} is a folder, a file was expected')
    return found


@contextmanager
def open_binary(path: StrPath) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked when its name ends in .gz. Damaged gzip data raise InputError."""
    found = Path(path)
    try:
        with cast(IO[bytes], gzip.open(found, 'rb') if found.suffix == '.gz' else open(found, 'rb')) as stream:
            yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f'{found} is not a whole gzip file ({error}): fetch it again') from error


def numbered_lines(path: StrPath, what: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its end) of a UTF-8 text file, plain or .gz.

    Raises InputError with file and line for bytes that are not UTF-8, and for a CR inside a line, which other readers
    take for a line's end. Blank lines are included, a byte order mark is not.
    """
    found = existing_file(path, what)
    with open_binary(found) as stream:
        for number, raw in numbered_bytes(stream):
            try:
                yield number, decoded_line(raw)
            except ValueError as error:
                raise InputError.at(found, number, str(error)) from error


def numbered_bytes(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, line) of a file, without the byte order mark that may begin it."""
    for number, raw in enumerate(stream, 1):
        yield number, raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw


def decoded_line(raw: bytes) -> str:
    """A line of UTF-8 without its end. Raises ValueError for other bytes, and for a CR inside the line."""
    try:
        line = raw.decode('utf-8').rstrip('\r\n')
    except UnicodeDecodeError as error:
        raise ValueError(f'not valid UTF-8 ({error.reason}): save the file as UTF-8') from error
    if '\r' in line:
        raise ValueError(LONE_CR)
    return line


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the file system has no hard links."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def descriptor(path: StrPath) -> int | None:
    """The open file that /dev/stdout, /dev/fd/3 or their like name; None for any other path."""
    match = re.fullmatch('/(?:dev|proc/self)/fd/([0-9]{1,6})', os.fspath(path))
    standard = {'/dev/stdin': 0, '/dev/stdout': 1, '/dev/stderr': 2}
    return int(match[1]) if match else standard.get(os.fspath(path))


@contextmanager
def atomic_file(path: StrPath, mode: str = 'w') -> Iterator[IO[Any]]:
    """A stream to a temporary neighbour of `path`, renamed to it at the end, removed on an error.

    Text is UTF-8 with '\\n' line ends; a name that ends in .gz is compressed (without a time stamp: the same content
    gives the same bytes). Of a symbolic link, the target is replaced. A device, a pipe and an open file (/dev/stdout)
    are written to directly. Temporary files that killed processes left are removed. Where the file system
    cannot rename, the file is copied. Raises InputError for a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f'output {target} is a folder, a file name was expected')
    opened = descriptor(path)
    if opened is not None or (target.exists() and not target.is_file()):
        place = target if opened is None else os.dup(opened)
        with within_limits(target), open(place, mode, encoding=None if 'b' in mode else 'utf-8') as device:
            yield device
        return
    target = Path(os.path.realpath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target.parent, target.name)
    handle, temporary = _temporary_file(target)
    try:
        with within_limits(target), os.fdopen(handle, 'wb') as raw:
            packed = gzip.GzipFile(fileobj=raw, mode='wb', filename='', mtime=0) if target.suffix == '.gz' else None
            stream: Any = packed or raw
            if 'b' in mode:
                yield stream
            else:
                text = io.TextIOWrapper(stream, encoding='utf-8', newline='\n', write_through=False)
                yield text
                text.flush()
                text.detach()
            if packed:
                packed.close()
            raw.flush()
            os.fsync(raw.fileno())
            temporary.chmod(0o666 & ~_umask())
            _rename(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def atomic_folder(path: StrPath, last: str | None = None) -> Iterator[Path]:
    """A temporary neighbouring folder, renamed to `path` at the end (replacing nothing), removed on an error.

    Temporary folders that killed processes left are removed. Where the file system cannot rename, the files are copied,
    at the end the file `last`, without which the folder counts as incomplete.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target.parent, target.name)
    handle, temporary = _temporary_folder(target)
    try:
        temporary.chmod(0o777 & ~_umask())
        with within_limits(target):
            yield temporary
        for item in temporary.rglob('*'):
            if item.is_file():
                with open(item, 'rb') as stream:
                    os.fsync(stream.fileno())
        with within_limits(target):
            _rename(temporary, target, last)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def _rename(temporary: Path, target: Path, last: str | None = None) -> None:
    """Give a file or a folder its name, or copy it there: object stores cannot rename."""
    try:
        temporary.rename(target) if temporary.is_dir() else temporary.replace(target)
    except OSError as error:
        if error.errno not in _NO_RENAME:
            raise
        if temporary.is_dir():
            target.mkdir(exist_ok=True)
            for name in sorted(os.listdir(temporary), key=lambda name: (name == last, name)):
                shutil.copyfile(temporary / name, target / name)
            shutil.rmtree(temporary)
        else:
            shutil.copyfile(temporary, target)
            temporary.unlink()


def remove_leftovers(folder: Path, name: str) -> None:
    """Remove the temporary files and folders of `name` that killed processes left; those of live processes stay."""
    pattern = re.compile(_TEMPORARY.format(re.escape(name)))
    for entry in [Path(entry) for entry in os.scandir(folder) if pattern.fullmatch(entry.name)]:
        if is_left(entry):
            with contextlib.suppress(OSError):
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def _temporary_file(target: Path) -> tuple[int, Path]:
    """A new file beside `target`, open and locked: the lock tells it from one that a killed process left."""
    while True:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f'.{target.name}.')
        with contextlib.suppress(OSError):
            hold(handle)
        if os.path.exists(name):  # no other process removed it as a leftover before it was locked
            return handle, Path(name)
        os.close(handle)


def _temporary_folder(target: Path) -> tuple[int | None, Path]:
    """The same for a folder; the handle is None where folders cannot be opened."""
    while True:
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f'.{target.name}.'))
        try:
            handle = os.open(temporary, os.O_RDONLY)
        except FileNotFoundError:
            continue
        except OSError:
            return None, temporary
        with contextlib.suppress(OSError):
            hold(handle)
        if temporary.exists():
            return handle, temporary
        os.close(handle)


def digest(path: StrPath, algorithm: str = 'sha256') -> str:
    """Hexadecimal checksum of a file, read in blocks."""
    with open(path, 'rb') as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def remembered_digest(path: Path, memory: Path, algorithm: str = 'sha256') -> str:
    """Hexadecimal checksum of a file, remembered in the folder `memory` as long as the file seems untouched.

    A file seems untouched while its size, mtime, ctime and inode are the same; ctime cannot be set back. The checksum
    of a file changed within the last two seconds is not remembered: its next change could have the same times.
    """
    status = path.stat()
    marks = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    key = ' '.join(map(str, (path.resolve(), *marks, algorithm)))
    note = memory / 'digests' / hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()
    with contextlib.suppress(OSError, ValueError):
        known = note.read_text(encoding='ascii')
        if re.fullmatch(r'[0-9a-f]{32,128}', known):
            return known
    found = digest(path, algorithm)
    if time.time_ns() - status.st_ctime_ns > _TICK:
        with contextlib.suppress(OSError), atomic_file(note) as stream:  # a read-only cache only costs time
            stream.write(found)
    return found


def human_size(n_bytes: float) -> str:
    """12345678 -> '12.3 MB' (powers of 1000)."""
    for unit in ('B', 'kB', 'MB', 'GB'):
        if n_bytes < 1000:
            return f'{n_bytes:.0f} B' if unit == 'B' else f'{n_bytes:.1f} {unit}'
        n_bytes /= 1000
    return f'{n_bytes:.1f} TB'


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
