"""A file of checksums beside the files of a folder, as `sha256sum -c sha256sums` reads it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.files import CACHE_ERRORS, StrPath, atomic_file, cache_folder

CHECKSUMS = 'sha256sums'
_LEFT_OUT = (CHECKSUMS, 'write.lock')
_LINE = re.compile(r'([0-9a-f]{64})  ([^/\n]+)\n')
_TICK = 2_000_000_000  # nanoseconds: the coarsest clock of a file system


def digest(path: StrPath, algorithm: str = 'sha256') -> str:
    """Hexadecimal checksum of a file, read in blocks."""
    with open(path, 'rb') as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def remembered_digest(path: Path, algorithm: str = 'sha256') -> str:
    """Hexadecimal checksum of a file, remembered in the cache as long as the file seems untouched.

    A file seems untouched while its size, mtime, ctime and inode are the same; ctime cannot be set
    back. The checksum of a file changed within the last two seconds is not remembered: its next
    change could have the same times.
    """
    status = path.stat()
    key = ' '.join(map(str, (path.resolve(), *file_marks(status), algorithm)))
    return remembered(key, status.st_ctime_ns, lambda: digest(path, algorithm))


def file_marks(status: os.stat_result) -> tuple[int, ...]:
    """The size, mtime, ctime and inode of a file, which differ if it has changed."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def remembered(key: str, changed: int, compute: Callable[[], str]) -> str:
    """A hexadecimal checksum that the cache remembers by a key.

    Parameters
    ----------
    key : of the files, with their `file_marks`
    changed : the last ctime of a file, in nanoseconds
    compute : gives the checksum if the cache lacks it
    """
    name = hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()
    note = cache_folder() / 'digests' / name
    with contextlib.suppress(OSError, ValueError):
        known = note.read_text(encoding='ascii')
        if re.fullmatch(r'[0-9a-f]{32,128}', known):
            return known
    checksum = compute()
    if time.time_ns() - changed > _TICK:
        # A cache that is read-only or full only costs time.
        with contextlib.suppress(*CACHE_ERRORS), atomic_file(note) as stream:
            stream.write(checksum)
    return checksum


def write_checksums(folder: StrPath) -> None:
    """Write the checksums of the files in a folder beside them, sorted by name.

    Lucene's lock file is left out.
    """
    folder = Path(folder)
    names = summed_names(folder)
    with atomic_file(folder / CHECKSUMS) as stream:
        for name in names:
            stream.write(f'{digest(folder / name)}  {name}\n')


def summed_names(folder: Path) -> list[str]:
    """The names of the files in a folder that have checksums."""
    files = (path for path in folder.iterdir() if path.is_file())
    return sorted(path.name for path in files if path.name not in _LEFT_OUT)


def verify_checksums(folder: StrPath, required: Iterable[str] = (), remembered: bool = True) -> int:
    """Compare the files of a folder with the checksums beside them.

    Parameters
    ----------
    folder : of the files
    required : names that the checksums must have
    remembered : as in `compare_digest`

    Returns how many files were compared. Raises DamagedFileError if a file is missing or has
    another checksum, or where the checksums cannot be read or lack a `required` name.
    """
    path = Path(folder) / CHECKSUMS
    sums: dict[str, str] = {}
    again = f'restore the file, or make {folder} again'
    text = path.read_bytes().decode('utf-8', 'replace')
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in sums:
            raise DamagedFileError(f"{path}:{number}: expected 'sha256  name': {again}")
        sums[match[2]] = match[1]
    for name in required:
        if name not in sums:
            raise DamagedFileError(f"{path} does not name '{name}': {again}")
    for name, sha256 in sums.items():
        compare_digest(Path(folder) / name, sha256, path, remembered)
    return len(sums)


def compare_digest(path: Path, sha256: str, source: Path, remembered: bool = True) -> None:
    """Compare a file with its checksum.

    Parameters
    ----------
    path : of the file
    sha256 : its checksum
    source : the file that has the checksum, for errors
    remembered : whether a checksum computed before is trusted, as long as the file seems untouched

    Raises DamagedFileError if the file differs or is missing.
    """
    again = 'restore the file, or make it again'
    if not path.is_file():
        raise DamagedFileError(f'{path} is missing, but {source} names it: {again}')
    sha256_here = remembered_digest(path) if remembered else digest(path)
    if sha256_here != sha256:
        sums = f'its sha256 is {sha256_here[:12]}…, {source} says {sha256[:12]}…'
        raise DamagedFileError(f'{path} is damaged: {sums}: {again}')
