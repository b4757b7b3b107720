"""Reading TensorFlow checkpoints (`PREFIX.index`, `PREFIX.data-00000-of-00001`) without TensorFlow.

The format is TensorFlow's "tensor bundle" (tensorflow/core/util/tensor_bundle, protobuf/tensor_bundle.proto). The index
is a sorted string table in LevelDB's layout (its doc/table_format.md), from tensor names to protocol buffers with
dtype, shape, file, offset and size; the data files hold the tensors' bytes. Checksums inside are not verified: those of
the downloaded archives are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError, InputError

_MAGIC = bytes.fromhex('57fb808b247547db')  # the last bytes of a LevelDB table
_FOOTER = 48  # bytes
_BLOCK_TRAILER = 5  # bytes: compression type and checksum
_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype('<f4'),
    2: np.dtype('<f8'),
    3: np.dtype('<i4'),
    9: np.dtype('<i8'),
    19: np.dtype('<f2'),
}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types of protocol buffers


@dataclass(frozen=True)
class _Entry:
    """Where a tensor is, and its form."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    is_sliced: bool


class TensorBundle:
    """The tensors of a checkpoint.

    Parameters
    ----------
    prefix : the path without '.index'
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        path = prefix.with_name(f'{prefix.name}.index')
        if not path.is_file():
            raise InputError(f'{prefix} is no TensorFlow checkpoint: {path.name} is not there')
        try:
            records = dict(_table(path.read_bytes()))
            header = _fields(records.pop(b''))
            self._shards = int(header.get(1, [1])[0])
            self._entries = {name.decode('utf-8'): _entry(value) for name, value in sorted(records.items())}
        except (IndexError, KeyError, ValueError, TypeError) as error:
            raise DamagedFileError(f'{path} is not the index of a TensorFlow checkpoint ({error})') from error
        if int(header.get(2, [0])[0]):
            raise DamagedFileError(f'{path} was written on a big-endian machine, which is not supported')

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """{name: shape}, in the order of names."""
        return {name: entry.shape for name, entry in self._entries.items()}

    def tensor(self, name: str) -> NDArray[Any]:
        """A tensor by name."""
        entry = self._entries.get(name)
        if entry is None:
            raise InputError(f"{self.prefix} has no tensor '{name}'")
        dtype = _DTYPES.get(entry.dtype)
        if dtype is None or entry.is_sliced:
            raise DamagedFileError(f"tensor '{name}' of {self.prefix} is in slices, or of an unsupported type")
        path = self.prefix.with_name(f'{self.prefix.name}.data-{entry.shard:05d}-of-{self._shards:05d}')
        if not path.is_file():
            raise InputError(f'{self.prefix} lacks {path.name}: unpack all files of the checkpoint')
        with open(path, 'rb') as stream:
            stream.seek(entry.offset)
            raw = stream.read(entry.size)
        count = int(np.prod(entry.shape, dtype=np.int64))
        if len(raw) != entry.size or entry.size != count * dtype.itemsize:
            raise DamagedFileError(f"{path} is cut off: tensor '{name}' has {len(raw)} bytes of {entry.size}")
        flat: NDArray[Any] = np.frombuffer(bytearray(raw), dtype=dtype)  # a bytearray makes it writable
        return flat.reshape(entry.shape)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, position after it) of the number at `at`, in base 128, low digits first."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """All records of a sorted string table."""
    if len(data) < _FOOTER or data[-8:] != _MAGIC:
        raise ValueError('it does not end as a table does')
    at = len(data) - _FOOTER
    for _ in range(2):  # offset and size of the metadata block, which is empty
        _, at = _varint(data, at)
    offset, at = _varint(data, at)
    size, _ = _varint(data, at)
    for _, handle in _block(data, offset, size):
        block_offset, behind = _varint(handle, 0)
        block_size, _ = _varint(handle, behind)
        yield from _block(data, block_offset, block_size)


def _block(data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The records of a block, whose keys omit the prefix that they share with the previous key."""
    if len(data) < offset + size + _BLOCK_TRAILER or data[offset + size]:
        raise ValueError('a block is compressed or cut off')
    block = data[offset : offset + size]
    end = size - 4 - 4 * int.from_bytes(block[-4:], 'little')  # restart points, for searching, follow
    at, key = 0, b''
    while at < end:
        shared, at = _varint(block, at)
        new, at = _varint(block, at)
        length, at = _varint(block, at)
        key = key[:shared] + block[at : at + new]
        at += new
        yield key, block[at : at + length]
        at += length


def _fields(message: bytes) -> dict[int, list[int | bytes]]:
    """A protocol buffer as {field number: values}."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(message, at)
        elif kind == _BYTES:
            length, at = _varint(message, at)
            value, at = message[at : at + length], at + length
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
            value, at = int.from_bytes(message[at : at + length], 'little'), at + length
        else:
            raise ValueError(f'wire type {kind}')
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _entry(message: bytes) -> _Entry:
    fields = _fields(message)

    def number(field: int) -> int:
        return int(fields.get(field, [0])[0])

    shape = bytes(fields.get(2, [b''])[0])  # type: ignore[arg-type]
    dimensions = [_fields(bytes(dimension)) for dimension in _fields(shape).get(2, [])]  # type: ignore[arg-type]
    sizes = tuple(int(dimension.get(1, [0])[0]) for dimension in dimensions)
    return _Entry(number(1), sizes, number(3), number(4), number(5), bool(fields.get(7)))
