""".npy files: written row by row before the number of rows is known, and read memory-mapped."""

from __future__ import annotations

import io
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from pyserini_repbert.errors import DamagedFileError

# raised by np.load for damaged headers, as observed
_UNREADABLE = (ValueError, EOFError, OSError, SyntaxError, TypeError, OverflowError, MemoryError, TokenError)


def mapped(path: Path, dtype: DTypeLike, shape: tuple[int, ...], mode: Literal['r', 'c'] = 'r') -> NDArray[Any]:
    """A .npy file as a plain array over mapped memory.

    `mode` is 'r', read-only, or 'c', copy-on-write. Raises DamagedFileError for a file that is missing, is no .npy
    file, or has another dtype or shape.
    """
    try:
        found: NDArray[Any] = np.load(path, mmap_mode=mode if 0 not in shape else None).view(np.ndarray)
    except FileNotFoundError as error:
        raise DamagedFileError(f'{path} is missing: build the index again, or wait until it is built') from error
    except _UNREADABLE as error:
        raise DamagedFileError(f'{path} is no .npy file ({error}): build the index again') from error
    if found.dtype != dtype or found.shape != shape or not found.flags.c_contiguous:
        raise DamagedFileError(
            f'{path} holds {found.dtype} {found.shape}, expected {np.dtype(dtype)} {shape}: build the index again'
        )
    return found


class NpyStream:
    """Appends rows to a .npy file; closing writes their number into its header.

    Parameters
    ----------
    path : the file, written anew
    dtype : of the stored rows
    row_shape : of one row, () for a file of plain numbers
    """

    def __init__(self, path: Path, dtype: DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self.dtype = np.dtype(dtype)
        self.count = 0
        self._row_shape = row_shape
        self._stream = open(path, 'wb')  # noqa: SIM115 - closed by close()
        self._stream.write(self._header())

    def append(self, rows: ArrayLike) -> None:
        """Add rows, (n, *row_shape); they are converted to the stream's dtype."""
        block: NDArray[np.generic] = np.ascontiguousarray(rows, dtype=self.dtype).reshape(-1, *self._row_shape)
        self._stream.write(block.tobytes())
        self.count += len(block)

    def close(self, complete: bool = True) -> None:
        """Close the file; `complete` writes its header."""
        if complete:
            self._stream.seek(0)
            self._stream.write(self._header())
        self._stream.close()

    def _header(self) -> bytes:
        """The header for the rows so far; NumPy pads it, so its length does not depend on their number."""
        buffer = io.BytesIO()
        description = np.lib.format.dtype_to_descr(self.dtype)
        shape = (self.count, *self._row_shape)
        np.lib.format.write_array_header_1_0(buffer, {'descr': description, 'fortran_order': False, 'shape': shape})
        return buffer.getvalue()
