"""Vectors in int8: integers from -127 to 127, and a scale for each vector.

A value is an integer times its vector's scale. It differs from the value that was given by at
most half a scale, about 1/254 of the vector's greatest value. A scale has 17 significant bits, so
that the products are exact in float32: vectors that were read back are stored as the same bytes.
"""

from __future__ import annotations

from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

# The greatest whole number.
GREATEST = 127
# With the 7 bits of a whole number, they are the 24 bits of float32.
_SCALE_BITS = 17
# A vector of zeros has it. Its products with whole numbers have all their bits in float32.
_SMALLEST_SCALE = 2.0**-100


class Int8Vectors:
    """Vectors in int8, as an array of float32 (n, d) that is computed when it is read.

    A slice is a view of the same memory, as for an array. Rows chosen otherwise, by numbers or a
    mask, are float32 arrays, and so is `np.asarray` of it.

    Parameters
    ----------
    numbers : the integers, int8 (n, d)
    scales : float32 (n,)
    """

    dtype = np.dtype(np.int8)

    def __init__(self, numbers: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
        self.numbers = numbers
        self.scales = scales

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)"""
        return self.numbers.shape

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, rows: slice) -> Self: ...

    @overload
    def __getitem__(self, rows: int | ArrayLike) -> NDArray[np.float32]: ...

    def __getitem__(self, rows: Any) -> Self | NDArray[np.float32]:
        numbers = self.numbers[rows]
        scales = self.scales[rows]
        if isinstance(rows, slice):
            return type(self)(numbers, scales)
        return _values(numbers, scales)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        values = _values(self.numbers, self.scales)
        return values if dtype is None else values.astype(dtype, copy=False)


def _values(numbers: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Whole numbers (…, d) times scales (…)."""
    # Scales of vectors that are not finite are not, either.
    with np.errstate(invalid='ignore', over='ignore'):
        values: NDArray[np.float32] = np.multiply(numbers, scales[..., None], dtype=np.float32)
    return values


# The vectors of an index: float32, float16, or int8.
StoredVectors = NDArray[np.floating] | Int8Vectors


def quantize(vectors: NDArray[np.floating]) -> Int8Vectors:
    """The nearest int8 vectors of vectors (n, d).

    If a vector is not finite, neither is its scale.
    """
    largest = np.abs(vectors).max(axis=1, initial=0).astype(np.float64)
    mantissas, exponents = np.frexp(largest / GREATEST)
    # Rounded up, so that no value is beyond the greatest integer.
    rounded = np.ldexp(np.ceil(mantissas * 2**_SCALE_BITS), exponents - _SCALE_BITS)
    scales = np.maximum(rounded, _SMALLEST_SCALE).astype(np.float32)
    with np.errstate(invalid='ignore'):
        numbers = np.rint(vectors / scales[:, None]).astype(np.int8)
    return Int8Vectors(numbers, scales)


def stored_as(vectors: NDArray[np.float32], dtype: str) -> StoredVectors:
    """Vectors, float32 (n, d), in the type in which an index stores them."""
    if dtype == Int8Vectors.dtype.name:
        return quantize(vectors)
    return vectors.astype(dtype, copy=False)
