"""Reading TensorFlow checkpoints (`PREFIX.index`, `PREFIX.data-00000-of-00001`) without TensorFlow.

The format is TensorFlow's "tensor bundle" (tensorflow/core/util/tensor_bundle,
protobuf/tensor_bundle.proto). The index is a sorted string table in LevelDB's layout (its
doc/table_format.md), from tensor names to protocol buffers with dtype, shape, file, offset and
size; the data files hold the tensors' bytes. Checksums inside are not verified: those of the
downloaded archives are.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import DamagedFileError, InputError

_MAGIC = bytes.fromhex('57fb808b247547db')  # the last bytes of a LevelDB table
_FOOTER = 48  # bytes
_BLOCK_TRAILER = 5  # bytes: compression type and checksum
_DTYPES = {1: '<f4', 2: '<f8', 3: '<i4', 9: '<i8', 19: '<f2'}  # NumPy's, by TensorFlow's numbers
# wire types of protocol buffers
_VARINT = 0
_FIXED64 = 1
_BYTES = 2
_FIXED32 = 5


class _Entry(NamedTuple):
    """Where a tensor is, and its form."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    is_sliced: bool


class TensorBundle:
    """The tensors of a checkpoint; `prefix` is its path without '.index'."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        path = prefix.with_name(f'{prefix.name}.index')
        if not path.is_file():
            raise InputError(f'{prefix} is no TensorFlow checkpoint: {path.name} is not there')
        try:
            records = dict(_table(path.read_bytes()))
            header = _fields(records.pop(b''))
            self._shards = int(header.get(1, [1])[0])
            self._entries = {
                name.decode('utf-8'): _entry(value) for name, value in sorted(records.items())
            }
        except (IndexError, KeyError, ValueError, TypeError) as error:
            raise DamagedFileError(
                f'{path} is not the index of a TensorFlow checkpoint ({error})'
            ) from error
        if header.get(2, [0])[0]:
            raise DamagedFileError(
                f'{path} was written on a big-endian machine, which is not supported'
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """{name: shape}, in the order of names."""
        return {name: entry.shape for name, entry in self._entries.items()}

    def tensor(self, name: str) -> NDArray[Any]:
        """A tensor by name."""
        entry = self._entries[name]
        if entry.dtype not in _DTYPES or entry.is_sliced:
            raise DamagedFileError(
                f"tensor '{name}' of {self.prefix} is in slices, or of an unsupported type"
            )
        path = self.prefix.with_name(
            f'{self.prefix.name}.data-{entry.shard:05d}-of-{self._shards:05d}'
        )
        if not path.is_file():
            raise InputError(f'{self.prefix} lacks {path.name}: unpack all files of the checkpoint')
        with open(path, 'rb') as stream:
            stream.seek(entry.offset)
            raw = bytearray(stream.read(entry.size))  # a bytearray makes the tensor writable
        dtype = np.dtype(_DTYPES[entry.dtype])
        if (
            len(raw) != entry.size
            or entry.size != int(np.prod(entry.shape, dtype=np.int64)) * dtype.itemsize
        ):
            raise DamagedFileError(
                f"{path} is cut off: tensor '{name}' has {len(raw)} bytes of {entry.size}"
            )
        return np.frombuffer(raw, dtype=dtype).reshape(entry.shape)


def _varint(stream: BytesIO) -> int:
    """The next number, in base 128, low digits first."""
    value = shift = 0
    while True:
        byte = stream.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """All records of a sorted string table."""
    if len(data) < _FOOTER or data[-8:] != _MAGIC:
        raise ValueError('it does not end as a table does')
    footer = BytesIO(data[-_FOOTER:])
    _, _, offset, size = (
        _varint(footer) for _ in range(4)
    )  # the metadata block is empty; the block of handles
    for _, handle in _block(data, offset, size):
        stream = BytesIO(handle)
        yield from _block(data, _varint(stream), _varint(stream))


def _block(data: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The records of a block, whose keys omit the prefix that they share with the previous key."""
    if len(data) < offset + size + _BLOCK_TRAILER or data[offset + size]:
        raise ValueError('a block is compressed or cut off')
    block = data[offset : offset + size]
    end = (
        size - 4 - 4 * int.from_bytes(block[-4:], 'little')
    )  # restart points, for searching, follow
    stream = BytesIO(block)
    key = b''
    while stream.tell() < end:
        shared, new, length = (_varint(stream) for _ in range(3))
        key = key[:shared] + stream.read(new)
        yield key, stream.read(length)


def _fields(message: bytes) -> dict[int, list[Any]]:
    """A protocol buffer as {field number: values}."""
    fields: dict[int, list[Any]] = {}
    stream = BytesIO(message)
    while stream.tell() < len(message):
        number, kind = divmod(_varint(stream), 8)
        if kind == _VARINT:
            value: int | bytes = _varint(stream)
        elif kind == _BYTES:
            value = stream.read(_varint(stream))
        elif kind in (_FIXED32, _FIXED64):
            value = int.from_bytes(stream.read(4 if kind == _FIXED32 else 8), 'little')
        else:
            raise ValueError(f'wire type {kind}')
        fields.setdefault(number, []).append(value)
    return fields


def _entry(message: bytes) -> _Entry:
    fields = _fields(message)
    dtype, shard, offset, size = (int(fields.get(number, [0])[0]) for number in (1, 3, 4, 5))
    dimensions = _fields(fields.get(2, [b''])[0]).get(2, [])
    shape = tuple(int(_fields(dimension).get(1, [0])[0]) for dimension in dimensions)
    return _Entry(dtype, shape, shard, offset, size, bool(fields.get(7)))
