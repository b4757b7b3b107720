"""Errors of full disks, and human-readable sizes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyserini_repbert.errors import DiskFullError


@contextmanager
def disk_space(path: str | os.PathLike[str], needed: str = '') -> Iterator[None]:
    """Turn an error for lack of space into a DiskFullError that names `path` and what is free there.

    Parameters
    ----------
    needed : how much the whole takes, where that is known ('386 MB')
    """
    try:
        yield
    except OSError as error:
        if full := disk_full(error, path, needed):
            raise full from error
        raise
    except Exception as error:  # FAISS and safetensors write by themselves, and raise errors of their own
        for number in (errno.ENOSPC, errno.EDQUOT):
            if os.strerror(number) in str(error):
                raise disk_full(OSError(number, ''), path, needed) or error from error  # never None for these
        raise


def disk_full(error: OSError, path: str | os.PathLike[str] | None = None, needed: str = '') -> DiskFullError | None:
    """The error to raise instead of `error` where a disk or a quota is full; None where it is about something else."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    target = None if path is None and error.filename is None else Path(os.fsdecode(path or error.filename))
    what = 'the disk is full' if error.errno == errno.ENOSPC else 'the quota of the disk is used up'
    if target is None:
        return DiskFullError(f'{what}: make room, or write to another disk')
    there = next((folder for folder in (target, *target.parents) if folder.exists()), None)
    free = f'{human_size(shutil.disk_usage(there).free)} free' if there else ''
    sizes = ', '.join(filter(None, [f'{needed} needed' if needed else '', free]))
    return DiskFullError(
        f'{what}: {target} could not be written{f" ({sizes})" if sizes else ""}: make room, or write to another disk'
    )


def human_size(n_bytes: float) -> str:
    """12345678 -> '12.3 MB' (powers of 1000)."""
    for unit in ('B', 'kB', 'MB', 'GB'):
        if n_bytes < 1000:
            return f'{n_bytes:.0f} B' if unit == 'B' else f'{n_bytes:.1f} {unit}'
        n_bytes /= 1000
    return f'{n_bytes:.1f} TB'
