"""Files as accidents and attackers leave them: bytes changed, cut, doubled; tokens of other formats; lines moved."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence

TOKENS: Sequence[bytes] = [
    *(b'\r', b'\r\n', b'\n', b'\n\n', b'\t', b' ', b'\x0b', b'\x0c', b'\x1c', b'\x85', b'\0', b'\xff', b'\xc3'),
    *(b'\xef\xbb\xbf', '\u00a0'.encode(), '\u2028'.encode(), '\u0663'.encode(), '\u00b2'.encode(), 'ü'.encode()),
    *(b'0', b'-1', b'+1', b'1_0', b'01', b'1.0', b'1e3', b'1e400', b'-0.0', b'.5', b'5.', b'nan', b'inf', b'0x10'),
    *(b'9' * 400, b'1' + b'0' * 16, b'9007199254740993', b'2147483648', b'999999999', b'1234567890'),
    *(b'true', b'null', b'NaN', b'Infinity', b'[]', b'{}', b'[' * 3000, b'{"a":' * 3000, b'"\\ud800"'),
    *(b'"id": true', b'"id": 1.5', b'"id": "a b"', b'"contents": 5', b'"text": null', b'"id": "\\ufeffx"', b'\\udc00'),
    *(b'<DOC>', b'</DOC>', b'<DOD>', b'<DOCNO>', b'</DOCNO>', b'<top>', b'</top>', b'<num>', b'<title>', b'<desc>'),
    *(b'</title>', b'<b>', b'<!--', b'-->', b'Number:', b'&#xD800;', b'&amp;', b'query\t', b'doc\t', b'Q0', b'<'),
    *(b'*a', b'&a ', b'!!int x', b'? ', b'- ', b': ', b'{x}', b'2020-01-01', b'0o17', b'1:30', b'~', b'"', b"'", b'\\'),
]  # fmt: skip


def mutated(draw: random.Random, seed: bytes) -> bytes:
    """The seed after one to four accidents; now and then as it is."""
    data = seed
    for _ in range(draw.choice([0, 1, 1, 1, 1, 2, 2, 3, 4])):
        data = draw.choice(_ACCIDENTS)(draw, data)
    return data


def _insert_token(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(TOKENS) + data[at:]


def _replace_value(draw: random.Random, data: bytes) -> bytes:
    """One value between separators becomes a token."""
    ends = [at for at, byte in enumerate(data) if byte in b' \t\n,:"{}[]<>'] or [len(data)]
    start = draw.choice([-1, *ends])
    end = next((at for at in ends if at > start), len(data))
    return data[: start + 1] + draw.choice(TOKENS) + data[end:]


def _change_byte(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]


def _flip_bit(draw: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def _delete(draw: random.Random, data: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at + draw.choice([1, 1, 2, 5, 20]) :]


def _cut(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _double(draw: random.Random, data: bytes) -> bytes:
    at, size = draw.randrange(len(data) + 1), draw.choice([1, 3, 10, 40])
    return data[: at + size] + data[at:]


def _move_line(draw: random.Random, data: bytes) -> bytes:
    lines = data.split(b'\n')
    line = lines[draw.randrange(len(lines))] if draw.random() < 0.5 else lines.pop(draw.randrange(len(lines)))
    lines.insert(draw.randrange(len(lines) + 1), line)
    return b'\n'.join(lines)


def _other_line_ends(draw: random.Random, data: bytes) -> bytes:
    return data.replace(b'\n', draw.choice([b'\r', b'\r\n', b'\r\r\n', b' \n']))


_ACCIDENTS = (
    *(_insert_token, _insert_token, _replace_value, _replace_value, _change_byte, _flip_bit),
    *(_delete, _cut, _double, _move_line, _move_line, _other_line_ends),
)


def packed(draw: random.Random, data: bytes) -> bytes:
    """The data as .gz; half of the time with an accident in its bytes."""
    whole = gzip.compress(data, mtime=0)
    return whole if draw.random() < 0.5 else draw.choice([_flip_bit, _cut, _delete, _change_byte])(draw, whole)
