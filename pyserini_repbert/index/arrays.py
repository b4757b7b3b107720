"""Whether the arrays of an index are possible values.

Checksums tell what changed since an index was written; this tells what no index has, signed or not:
places outside of an array, terms outside of a vocabulary, and numbers that are not finite.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.index.quantized import Int8Vectors, StoredVectors

# Values that are looked at together.
_AT_ONCE = 1 << 22
_ADVICE = '`index check` reads the whole index; build it again'


def check_offsets(offsets: NDArray[np.int64], total: int, path: Path) -> None:
    """Check where the rows of an array begin, and where the last one ends.

    Parameters
    ----------
    offsets : int64 (n + 1,)
    total : the length of the array
    path : of the file with the offsets

    Raises DamagedFileError unless they go from 0 to `total` and never fall.
    """
    is_whole = offsets[0] == 0 and offsets[-1] == total
    if not is_whole or (offsets[1:] < offsets[:-1]).any():
        raise impossible(path, f'its places do not ascend from 0 to {total}')


def check_finite(values: StoredVectors, path: Path) -> None:
    """Raises DamagedFileError, which names the first row, for rows that are not finite."""
    if isinstance(values, Int8Vectors):
        check_finite(values.scales, path.with_name('scales.npy'))
        return
    row_values = max(1, values.size // max(1, len(values)))
    size = max(1, _AT_ONCE // row_values)
    for first in range(0, len(values), size):
        is_finite = np.isfinite(values[first : first + size])
        if not is_finite.all():
            row = first + int(np.argwhere(~is_finite)[0][0])
            raise impossible(path, f'a value of row {row} is not finite')


def check_terms(
    terms: NDArray[np.integer], offsets: NDArray[np.int64], vocabulary: int, path: Path
) -> None:
    """Check the terms of rows, one row after the other.

    Parameters
    ----------
    terms : (total,)
    offsets : where each row begins, and the last one ends, int64 (n + 1,); checked before
    vocabulary : the number of terms |V|
    path : of the file with the terms

    Raises DamagedFileError for a term outside of the vocabulary, and for a row whose terms do not
    ascend.
    """
    is_begin = np.zeros(len(terms) + 1, np.bool_)
    is_begin[offsets] = True
    for first in range(0, len(terms), _AT_ONCE):
        part = terms[first : first + _AT_ONCE]
        if int(part.max()) >= vocabulary:
            raise impossible(path, f'it has term {int(part.max())} of {vocabulary}')
        after = terms[first + 1 : first + 1 + _AT_ONCE]
        falls = after <= part[: len(after)]
        if (falls & ~is_begin[first + 1 : first + 1 + len(after)]).any():
            raise impossible(path, 'the terms of a row do not ascend')


def impossible(path: Path, what: str) -> DamagedFileError:
    """The error for a file that no writer has written so."""
    return DamagedFileError(f'{path} is damaged, {what}: {_ADVICE}')
