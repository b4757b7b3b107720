"""Locks that end with the process that holds them, so that a killed one leaves no lock behind, only a file."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyserini_repbert.errors import BusyError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked, and so nothing is taken for a leftover
    fcntl = None  # type: ignore[assignment]


def hold(handle: int) -> bool:
    """Lock an open file or folder until it is closed; False where another process holds it.

    Raises OSError where the file system or the operating system has no locks.
    """
    if fcntl is None:
        raise OSError('no file locks here')
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_left(path: Path) -> bool:
    """Whether no living process holds a temporary file or folder; False where that cannot be known."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return hold(handle)
    except OSError:
        return False
    finally:
        os.close(handle)


def owner(path: Path) -> str | None:
    """The holder of the lock file `path`: 'process 17 on host x'; None without one, or where there are no file locks.

    A file that no process holds is removed.
    """
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        try:
            if hold(handle):
                path.unlink(missing_ok=True)
                return None
        except OSError:
            return None
        pid, _, host = os.pread(handle, 300, 0).decode('utf-8', 'replace').strip().partition(' ')
        return f'process {pid} on host {host}' if host else 'another process'
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path`, which is removed at the end; the lock file of a dead process is taken over.

    Parameters
    ----------
    what : what is locked, for the error: 'output FOLDER'

    Raises
    ------
    BusyError
        where another process holds it; names the process and its host
    """
    handle = _held(path, what)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f'{os.getpid()} {socket.gethostname()}\n'.encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)  # while still locked: a waiting process then finds another file, or none
        os.close(handle)


def _held(path: Path, what: str) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            free = True
            with contextlib.suppress(OSError):  # without locks, two processes are not kept apart
                free = hold(handle)
            if not free and (who := owner(path)):
                raise busy(what, who)
            if free and path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its last holder removed it meanwhile: try again


def busy(what: str, who: str) -> BusyError:
    """The error for an output, `what`, that is being written by `who`, a text from `owner`."""
    return BusyError(f'{what} is being written by {who}: wait until that has ended, or end it')
