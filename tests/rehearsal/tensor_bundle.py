"""Writes TensorFlow checkpoints without TensorFlow, for stand-ins and tests; checksums inside
are left 0.
"""

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

_KINDS = {'float32': 1, 'float16': 19, 'int64': 9}


def number(value: int) -> bytes:
    """A number as a varint: base 128, low digits first."""
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def write_bundle(
    prefix: Path, tensors: Mapping[str, np.ndarray], per_block: int = 16, shards: int = 1
) -> None:
    """Write a tensor bundle: `PREFIX.index`, in blocks of `per_block` entries, and
    `PREFIX.data-00000-of-0000N`.
    """
    data = [b''] * shards
    records = [(b'', _field(1, shards) + _field(3, _field(1, 1)))]
    for place, (name, value) in enumerate(sorted(tensors.items())):
        shard = place % shards
        shape = b''.join(_field(2, _field(1, size)) for size in value.shape)
        where = _field(3, shard) + _field(4, len(data[shard])) + _field(5, value.nbytes)
        kind = _KINDS[str(value.dtype)]
        records.append(
            (name.encode(), _field(1, kind) + _field(2, shape) + where + b'\x35' + bytes(4))
        )
        data[shard] += value.tobytes()
    for shard, content in enumerate(data):
        prefix.with_name(f'{prefix.name}.data-{shard:05d}-of-{shards:05d}').write_bytes(content)
    table = b''
    handles = []
    for start in range(0, len(records), per_block):
        part = records[start : start + per_block]
        made = _block(part)
        handles.append((part[-1][0], number(len(table)) + number(len(made) - 5)))
        table += made
    meta = _block([])
    index = _block(handles)
    footer = (
        number(len(table))
        + number(len(meta) - 5)
        + number(len(table) + len(meta))
        + number(len(index) - 5)
    )
    table += meta + index + footer.ljust(40, b'\0') + bytes.fromhex('57fb808b247547db')
    prefix.with_name(f'{prefix.name}.index').write_bytes(table)


def _field(tag: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer."""
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    return number(tag << 3 | 2) + number(len(value)) + value


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
    """A block of a sorted string table, whose keys omit what they share with the one before."""
    out = b''
    before = b''
    for key, value in entries:
        shared = 0
        while shared < min(len(key), len(before)) and key[shared] == before[shared]:
            shared += 1
        out += (
            number(shared) + number(len(key) - shared) + number(len(value)) + key[shared:] + value
        )
        before = key
    return out + struct.pack('<II', 0, 1) + bytes(5)
