"""Giving a finished file or folder its name, on file systems that rename and on those that cannot (object stores)."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

# The errors of file systems that cannot rename.
_NO_RENAME = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.EPERM)
_BLOCK = 1 << 20


def move_file(temporary: Path, target: Path, in_place: bool) -> None:
    """Rename a file, replacing an existing target.

    Parameters
    ----------
    in_place : where the file system cannot rename, write the target itself; readers must be able to tell whether it is
        complete
    """
    try:
        temporary.replace(target)
    except OSError as error:
        if not in_place or error.errno not in _NO_RENAME:
            raise
        _copy(temporary, target)
        temporary.unlink()


def move_folder(temporary: Path, target: Path, last: str | None) -> None:
    """Rename a folder of files to a name that is not taken.

    Parameters
    ----------
    last : the file without which the folder counts as incomplete: where the file system cannot rename, the files are
        copied, this one when all others are on disk; None: nothing is copied, the OSError is raised
    """
    try:
        temporary.rename(target)
    except OSError as error:
        if last is None or error.errno not in _NO_RENAME:
            raise
        target.mkdir(exist_ok=True)
        for name in [*sorted(path.name for path in temporary.iterdir() if path.name != last), last]:
            _copy(temporary / name, target / name)
        shutil.rmtree(temporary)


def _copy(source: Path, target: Path) -> None:
    with open(source, 'rb') as stream, open(target, 'wb') as copy:
        shutil.copyfileobj(stream, copy, _BLOCK)
        copy.flush()
        os.fsync(copy.fileno())
