"""Locks of a collection: one writer, and readers that keep their generation.

A writer holds an exclusive lock on a separate file. A reader holds a shared lock on the manifest
of its generation; the writer removes a generation only after locking its manifest for itself. The
system releases the locks of a killed process.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyserini_repbert.errors import BusyError, InputError
from pyserini_repbert.folder_forms import refuse_link

WRITER_LOCK = '.writer.lock'
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Be the one writer of a collection.

    Raises BusyError if another process or thread writes it, InputError on a file system without
    locks, or where the lock file is a link.
    """
    refuse_link(folder / WRITER_LOCK)
    handle = os.open(folder / WRITER_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _lock_for_writing(handle, folder)
        os.truncate(handle, 0)
        os.write(handle, f'{os.getpid()}\n'.encode())
        yield
    finally:
        os.close(handle)


def _lock_for_writing(handle: int, folder: Path) -> None:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        process = os.read(handle, 20).decode('ascii', 'replace').strip()
        who = f'process {process}' if process else 'another process'
        raise BusyError(
            f'collection {folder} is being written by {who}: wait until it ends, or end it'
        ) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise InputError(
            f'collection {folder} lies on a file system without locks ({error.strerror}): write it '
            'on a local disk, and copy it'
        ) from error


class GenerationLock:
    """A reader's shared lock on the manifest of its generation; `close` releases it.

    Raises FileNotFoundError for a manifest that no longer exists.
    """

    def __init__(self, manifest: Path) -> None:
        import fcntl

        self._handle: int | None = os.open(manifest, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # a file system without locks has no writer either
            with contextlib.suppress(OSError):
                fcntl.flock(self._handle, fcntl.LOCK_SH)
            # the writer may have removed it between the two calls
            if not os.path.samestat(os.fstat(self._handle), os.stat(manifest)):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(manifest))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the generation."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


@contextmanager
def removal_lock(manifest: Path) -> Iterator[bool]:
    """Whether no reader holds the generation of a manifest; while this lasts, none begins to."""
    import fcntl

    handle = os.open(manifest, os.O_RDWR | os.O_CLOEXEC)
    try:
        is_free = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_free = False
        yield is_free
    finally:
        os.close(handle)
