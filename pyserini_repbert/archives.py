"""Unpacking that no archive can make endless: .zip and .tar files, and streams of gzip.

A packed file may give `MAX_RATIO` times its size, or a number of bytes that its reader states.
Sparse files, which claim more bytes than an archive holds, are refused. Whatever a library raises
for a damaged archive becomes one error.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyserini_repbert.errors import DamagedFileError, PyseriniRepbertError

# Unpacked bytes per packed byte. Text has 3 to 20, gzip at most 1,032, xz 7,000.
MAX_RATIO = 200
FREE_BYTES = 64_000_000  # unpacked bytes that a file of any size may have
# What tarfile reads at once: the headers that hold long names, and a page read as a whole.
MAX_PART = 64_000_000
_ZIP = b'PK'
# The first bytes of packed files, and what unpacks them.
_UNPACKERS = {b'\x1f\x8b': gzip.open, b'BZh': bz2.open, b'\xfd7zXZ': lzma.open}


@dataclass(frozen=True)
class Member:
    """A file in an archive: its name there, with folders, and its content."""

    name: str
    stream: IO[bytes]


class _UnpackingLimit:
    """How many bytes may still be unpacked from a file.

    Parameters
    ----------
    path : of the packed file
    error : what is raised beyond the limit
    most_bytes : the limit; None: `MAX_RATIO` times the file's size
    """

    def __init__(
        self,
        path: Path,
        error: type[PyseriniRepbertError] = DamagedFileError,
        most_bytes: int | None = None,
    ) -> None:
        self.path = path
        self._error = error
        self._most_bytes = most_bytes
        self._size = path.stat().st_size
        self._n_left = FREE_BYTES + MAX_RATIO * self._size if most_bytes is None else most_bytes

    def spend(self, n_bytes: int) -> None:
        """Count unpacked bytes; raise the error beyond the limit."""
        self._n_left -= n_bytes
        if self._n_left < 0:
            raise self._error(f'{self.path} unpacks to more than {self._limit_and_advice()}')

    def _limit_and_advice(self) -> str:
        if self._most_bytes is not None:
            return f'{self._most_bytes:,} bytes: split it'
        return (
            f'{MAX_RATIO} times its size ({self._size:,} bytes), which no corpus does: check where '
            'it comes from, and unpack it by hand'
        )


class _LimitedReader(io.RawIOBase):
    """A stream of unpacked bytes that ends with an error at a limit."""

    def __init__(self, stream: Any, limit: _UnpackingLimit) -> None:
        super().__init__()
        self._stream = stream
        self.limit = limit

    @property
    def name(self) -> str:
        """The path of the packed file."""
        return str(self.limit.path)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read at most as many bytes as fit."""
        block = self._stream.read(len(buffer))
        self.limit.spend(len(block))
        buffer[: len(block)] = block
        return len(block)


class _MemberReader(_LimitedReader):
    """The content of a file in an archive. Raises DamagedFileError for a damaged one."""

    def readinto(self, buffer: Any) -> int:
        with damage_in_one_line(self.limit.path):
            return super().readinto(buffer)


class _LimitedTar:
    """The stream from which tarfile reads an archive.

    It counts the unpacked bytes, including those skipped.
    """

    def __init__(self, stream: Any, limit: _UnpackingLimit, is_packed: bool) -> None:
        self._stream = stream
        self._limit = limit
        self._is_packed = is_packed

    def read(self, n_bytes: int = -1) -> bytes:
        """The next bytes."""
        if n_bytes > MAX_PART:
            raise DamagedFileError(
                f'{self._limit.path} has a part of {n_bytes:,} bytes, expected {MAX_PART:,} at most'
            )
        block: bytes = self._stream.read(n_bytes)
        self._limit.spend(len(block))
        return block

    def seek(self, position: int) -> None:
        """Go to a byte. In a packed archive, all before it are unpacked."""
        here = self._stream.tell()
        if self._is_packed:
            # Forward in blocks, so that the limit ends it.
            if position < here:
                self._stream.seek(0)
                here = 0
            while here < position:
                block = self.read(min(position - here, 1 << 20))
                if not block:
                    return
                here += len(block)
        else:
            self._stream.seek(position)

    def tell(self) -> int:
        """The position in the unpacked archive."""
        return int(self._stream.tell())


def limited(
    stream: Any, path: Path, error: type[PyseriniRepbertError], most_bytes: int | None = None
) -> IO[bytes]:
    """The unpacked bytes of a packed file, to the limit.

    Parameters
    ----------
    stream : of the unpacked bytes
    path : of the packed file
    error : what is raised beyond the limit
    most_bytes : the limit; None: `MAX_RATIO` times the file's size
    """
    limit = _UnpackingLimit(path, error, most_bytes)
    return io.BufferedReader(_LimitedReader(stream, limit))


@contextmanager
def damage_in_one_line(archive: Path) -> Iterator[None]:
    """Turn what reading a damaged archive raises into one DamagedFileError."""
    try:
        yield
    except (PyseriniRepbertError, MemoryError):
        raise
    except OSError as error:
        # Without a number, it is of gzip or bz2; EINVAL comes from a place before the beginning.
        # Others are of the disk.
        if error.errno not in (None, errno.EINVAL):
            raise
        raise _damaged(archive, error) from error
    except Exception as error:
        # tarfile, zipfile and the decompressors let nearly everything through.
        raise _damaged(archive, error) from error


def _damaged(archive: Path, error: Exception) -> DamagedFileError:
    # tarfile writes more lines, one for each kind of archive that it tried.
    lines = str(error).splitlines() or [type(error).__name__]
    problem = lines[0].rstrip(':')
    return DamagedFileError(
        f'{archive} is not a complete archive ({problem}): delete it and fetch it again'
    )


@contextmanager
def open_tar(archive: Path) -> Iterator[tarfile.TarFile]:
    """A tar archive, plain or packed by gzip, bzip2 or xz, to read.

    Raises DamagedFileError, as its user's reading does, for one that is damaged or unpacks to more
    than `MAX_RATIO` times its size.
    """
    limit = _UnpackingLimit(archive)
    with open(archive, 'rb') as stream:
        start = stream.read(8)
    unpackers = [unpack for magic, unpack in _UNPACKERS.items() if start.startswith(magic)]
    opener: Any = unpackers[0] if unpackers else open
    with damage_in_one_line(archive), opener(archive, 'rb') as stream:
        reader: Any = _LimitedTar(stream, limit, is_packed=bool(unpackers))
        with tarfile.open(fileobj=reader, mode='r:') as tar:
            yield tar


def refuse_sparse(member: tarfile.TarInfo, archive: Path) -> None:
    """Raise DamagedFileError for a sparse file, GNU's or PAX's: it has bytes that are nowhere."""
    if member.issparse():
        raise DamagedFileError(
            f'{archive}: {member.name} is a sparse file: pack it in full, holes as zeros'
        )


@contextmanager
def open_zip(archive: Path) -> Iterator[zipfile.ZipFile]:
    """A zip archive, to read.

    Raises DamagedFileError, as its user's reading does, for one that is damaged, encrypted, packed
    by an unknown method, or that unpacks to more than `MAX_RATIO` times its size.
    """
    limit = _UnpackingLimit(archive)
    with damage_in_one_line(archive), zipfile.ZipFile(archive) as packed:
        for item in packed.infolist():
            # No more than that is ever unpacked.
            limit.spend(item.file_size)
        yield packed


def archive_members(archive: Path) -> Iterator[Member]:
    """The files in a .zip or .tar archive, in its order; each is read before the next.

    Raises DamagedFileError as `open_tar` and `open_zip`, and for sparse files.
    """
    with open(archive, 'rb') as stream:
        is_zip = stream.read(len(_ZIP)) == _ZIP
    yield from _zip_members(archive) if is_zip else _tar_members(archive)


def _zip_members(archive: Path) -> Iterator[Member]:
    limit = _UnpackingLimit(archive)
    with open_zip(archive) as packed:
        for item in packed.infolist():
            if not item.is_dir():
                with packed.open(item) as stream:
                    yield Member(item.filename, io.BufferedReader(_MemberReader(stream, limit)))


def _tar_members(archive: Path) -> Iterator[Member]:
    limit = _UnpackingLimit(archive)
    with open_tar(archive) as tar:
        for member in tar:
            # tarfile keeps all of them.
            tar.members = []  # type: ignore[attr-defined]
            refuse_sparse(member, archive)
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield Member(member.name, io.BufferedReader(_MemberReader(stream, limit)))
