"""Reading TensorFlow checkpoints (`PREFIX.index`, `PREFIX.data-00000-of-00001`) without TensorFlow.

The format is TensorFlow's "tensor bundle" (tensorflow/core/util/tensor_bundle,
protobuf/tensor_bundle.proto). The index is a sorted string table in LevelDB's layout (its
doc/table_format.md), from tensor names to protocol buffers with dtype, shape, file, offset and
size; the data files hold the tensors' bytes. Checksums inside are not verified: the
downloaded archives have checksums, which are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
_BYTES = 2
_FIXED = {1: 8, 5: 4}  # their bytes
_INTEGER = 4  # bytes of a number at the end of a block


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
            raise InputError(f'{prefix} is not a TensorFlow checkpoint: {path.name} is missing')
        self._entries: dict[str, _Entry] = {}
        try:
            records = dict(_table(path.read_bytes()))
            header = _fields(records.pop(b''))
            self._shards = int(_first(header, 1, 1))
            for name, value in sorted(records.items()):
                self._entries[name.decode('utf-8')] = _entry(value)
        except (IndexError, KeyError, ValueError, TypeError) as error:
            raise DamagedFileError(
                f'{path} is not the index of a TensorFlow checkpoint ({error})'
            ) from error
        if _first(header, 2, 0):
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
        shard = f'{self.prefix.name}.data-{entry.shard:05d}-of-{self._shards:05d}'
        path = self.prefix.with_name(shard)
        if not path.is_file():
            raise InputError(f'{self.prefix} lacks {path.name}: unpack all files of the checkpoint')
        with open(path, 'rb') as stream:
            stream.seek(entry.offset)
            raw = bytearray(stream.read(entry.size))  # a bytearray makes the tensor writable
        dtype = np.dtype(_DTYPES[entry.dtype])
        n_numbers = int(np.prod(entry.shape, dtype=np.int64))
        if len(raw) != entry.size or entry.size != n_numbers * dtype.itemsize:
            raise DamagedFileError(
                f"{path} is cut off: tensor '{name}' has {len(raw)} bytes of {entry.size}"
            )
        return np.frombuffer(raw, dtype=dtype).reshape(entry.shape)


def _varint(stream: BytesIO) -> int:
    """The next number, in base 128, low digits first."""
    value = 0
    shift = 0
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
    # The metadata block is empty.
    _varint(footer)
    _varint(footer)
    for _, handle in _block(data, footer):
        yield from _block(data, BytesIO(handle))


def _block(data: bytes, handle: BytesIO) -> Iterator[tuple[bytes, bytes]]:
    """The records of a block, whose keys omit the prefix that they share with the previous key.

    `handle` has the block's offset and size.
    """
    offset = _varint(handle)
    size = _varint(handle)
    after = offset + size
    if len(data) < after + _BLOCK_TRAILER or data[after]:
        raise ValueError('a block is compressed or cut off')
    block = data[offset:after]
    # Restart points, for searching, follow the records; their number comes last.
    n_restarts = int.from_bytes(block[-_INTEGER:], 'little')
    end = size - _INTEGER * (n_restarts + 1)
    stream = BytesIO(block)
    key = b''
    while stream.tell() < end:
        n_shared = _varint(stream)
        n_new = _varint(stream)
        n_value = _varint(stream)
        key = key[:n_shared] + stream.read(n_new)
        yield key, stream.read(n_value)


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
        elif kind in _FIXED:
            value = int.from_bytes(stream.read(_FIXED[kind]), 'little')
        else:
            raise ValueError(f'wire type {kind}')
        fields.setdefault(number, []).append(value)
    return fields


def _entry(message: bytes) -> _Entry:
    fields = _fields(message)
    dimensions = _fields(_first(fields, 2, b'')).get(2, [])
    shape = [int(_first(_fields(dimension), 1, 0)) for dimension in dimensions]
    return _Entry(
        dtype=int(_first(fields, 1, 0)),
        shape=tuple(shape),
        shard=int(_first(fields, 3, 0)),
        offset=int(_first(fields, 4, 0)),
        size=int(_first(fields, 5, 0)),
        is_sliced=bool(fields.get(7)),
    )


def _first(fields: Mapping[int, Sequence[Any]], number: int, default: Any) -> Any:
    """The first value of a field."""
    return fields.get(number, [default])[0]
