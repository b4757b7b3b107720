"""Run files in blocks of whole lines: a regular block is parsed by array operations, any other line by line.

A regular block has exactly one space or tab between values and no blank lines; nearly all run files consist of them.
Both parsers give the same columns; only the line-by-line parser accepts other spacing and names malformed lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from pyserini_repbert.data.identifiers import columns as values_of
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import BYTE_ORDER_MARK, LONE_CR, StrPath, existing_file, open_binary
from pyserini_repbert.numerals import decimal, integer

BLOCK_BYTES = 1 << 18  # bytes: the arrays of a block stay in the processor's cache
_WIDEST = 64  # bytes: columns of wider values are copied byte by byte
MSMARCO_COLUMNS = 3
TREC_COLUMNS = 6
_WORD = 8
_LONGEST_RANK = 9
_GREATEST_RANK = 2**53  # up to here, float64 holds every whole number
_SPACE, _TAB, _NEWLINE, _ZERO = b' \t\n0'

Array = np.ndarray[Any, np.dtype[Any]]

_MASKS: Array = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)], dtype='<u8')  # of the first n bytes of a word


class Columns(NamedTuple):
    """Consecutive lines of a run file.

    Attributes
    ----------
    qids : the qid of each stretch of consecutive lines with the same qid
    starts : the index of each stretch's first line, from 0
    docids : one per line
    keys : float64, one per line: the rank (MS MARCO) or the score (TREC)
    """

    qids: list[str]
    starts: list[int]
    docids: list[str]
    keys: Array


def stretches(path: StrPath) -> Iterator[tuple[int, str, list[str], Array]]:
    """(3 or 6 columns, qid, docids, keys) of consecutive lines of one query; a query may come again later.

    Raises InputError naming file and line for a malformed line, and for a file without lines.
    """
    columns = 0
    for first, block in line_blocks(path):
        columns = columns or count_columns(path, first, block)
        if columns:
            qids, starts, docids, keys = parse_block(path, first, block, columns)
            if not docids:  # nothing but blank lines
                continue
            for qid, start, stop in zip(qids, starts, [*starts[1:], len(docids)], strict=True):
                yield columns, qid, docids[start:stop], keys[start:stop]
    if not columns:
        raise InputError(f"run file {path} has no lines: expected 'qid Q0 docid rank score tag' or 'qid docid rank'")


def line_blocks(path: StrPath, size: int = BLOCK_BYTES) -> Iterator[tuple[int, bytes]]:
    """(number of the first line, whole lines with '\\n' ends) for each block of about `size` bytes of a run file."""
    first, rest = 1, b''
    start = True
    with open_binary(existing_file(path, 'run file')) as stream:
        while read := stream.read(size):
            if start:
                read, start = read.removeprefix(BYTE_ORDER_MARK), False
            cut = read.rfind(b'\n') + 1
            if cut:
                block = rest + read[:cut]
                yield first, block
                first += int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == _NEWLINE))
                rest = read[cut:]
            else:
                rest += read
    if rest:
        yield first, rest + b'\n'


def count_columns(path: StrPath, first: int, block: bytes) -> int:
    """3 or 6, the columns of the first line that is not blank; 0 if all are. Raises InputError for another number."""
    for number, line in enumerate(block.split(b'\n'), first):
        if values := line.split():
            if len(values) not in (MSMARCO_COLUMNS, TREC_COLUMNS):
                _refuse(path, number, line, 0)
            return len(values)
    return 0


def parse_block(path: StrPath, first: int, block: bytes, columns: int) -> Columns:
    """The columns of a block whose first line has the number `first`; raises InputError naming file and line."""
    if b'\r' in block:
        block = block.replace(b'\r\n', b'\n')
    if BYTE_ORDER_MARK[:1] in block and BYTE_ORDER_MARK in block:  # one byte is found many times faster than three
        return _line_by_line(path, first, block, columns)
    codes = np.frombuffer(block + bytes(_WORD), dtype=np.uint8)
    ends = _value_ends(codes[:-_WORD], columns)
    found = None if ends is None else _take_apart(block, codes, ends)
    return _line_by_line(path, first, block, columns) if found is None else found


def _value_ends(codes: Array, columns: int) -> Array | None:
    """Where each value ends, int64 (lines, columns); None unless the block is regular."""
    found = np.flatnonzero(codes <= _SPACE)
    if not len(found) or len(found) % columns or found[0] == 0 or (found[1:] - found[:-1] == 1).any():
        return None
    ends: Array = found.reshape(-1, columns)
    separators = codes[ends]
    inner = separators[:, :-1]
    regular = (separators[:, -1] == _NEWLINE).all() and ((inner == _TAB) | (inner == _SPACE)).all()
    return ends if regular else None


def _take_apart(block: bytes, codes: Array, ends: Array) -> Columns | None:
    """The columns of a regular block; None if it has to be parsed line by line."""
    columns = ends.shape[1]
    doc, rank = (1, 2) if columns == MSMARCO_COLUMNS else (2, 3)
    keys = _whole_numbers(codes, ends[:, rank - 1] + 1, ends[:, rank])
    if keys is None:
        return None
    try:
        if not block.isascii():
            block.decode('utf-8')
        if columns == TREC_COLUMNS:
            scores = _column(codes, ends, 4)
            if b'_' in scores:  # Python reads 1_000 as a number, evaluators do not
                return None
            keys = np.fromiter(map(float, scores.split()), dtype=np.float64, count=len(ends))
            if not np.isfinite(keys).all():
                return None
    except ValueError:
        return None
    starts = _qid_starts(codes, ends)
    begins = [0, *(ends[:-1, -1] + 1)[[start - 1 for start in starts[1:]]].tolist()]
    qids = [block[begin:end].decode() for begin, end in zip(begins, ends[starts, 0].tolist(), strict=True)]
    return Columns(qids, starts, _decoded(_column(codes, ends, doc)), keys)


def _column(codes: Array, ends: Array, column: int) -> bytes:
    """The bytes of all values of a column (not the first), each followed by its separator."""
    starts = ends[:, column - 1] + 1
    lengths = ends[:, column] + 1 - starts
    longest = int(lengths.max())
    if longest <= _WIDEST:
        parts = [_words(codes, starts, lengths, offset) for offset in range(0, longest, _WORD)]
        return np.stack(parts, axis=1).tobytes().translate(None, b'\0')  # a regular block has no NUL of its own
    kept = np.zeros(len(codes), dtype=np.int8)
    kept[starts] = 1
    kept[ends[:, column] + 1] = -1
    return codes[np.cumsum(kept, dtype=np.int8).view(np.bool_)].tobytes()


def _words(codes: Array, starts: Array, lengths: Array, offset: int) -> Array:
    """The eight bytes from `offset` on of each value, uint64 (n,); NUL beyond its end."""
    words = np.ndarray(len(codes) - _WORD + 1, dtype='<u8', buffer=codes.data, strides=(1,))
    if offset:
        starts = np.minimum(starts + offset, len(words) - 1)
    found: Array = words[starts] & _MASKS[np.clip(lengths - offset, 0, _WORD)]
    return found


def _decoded(values: bytes) -> list[str]:
    """The values as texts, split at ASCII white space only, as bytes.split does and str.split does not."""
    return values.decode('ascii').split() if values.isascii() else [value.decode() for value in values.split()]


def _whole_numbers(codes: Array, starts: Array, ends: Array) -> Array | None:
    """The values as float64 (n,); None if one has more than nine characters, or any that is not a digit."""
    lengths = ends - starts
    longest = int(lengths.max())
    if longest > _LONGEST_RANK:
        return None
    numbers = np.zeros(len(starts), dtype=np.int64)
    wrong = np.zeros(len(starts), dtype=np.bool_)
    for place in range(longest):
        digits = codes[ends - 1 - place] - np.uint8(_ZERO)  # wraps around below '0'
        digits[lengths <= place] = 0
        wrong |= digits > 9
        numbers += digits.astype(np.int64) * 10**place
    return None if wrong.any() else numbers.astype(np.float64)


def _qid_starts(codes: Array, ends: Array) -> list[int]:
    """The lines whose qid differs from that of the line before, with the first line; compares eight bytes at a time."""
    begins = np.concatenate(([0], ends[:-1, -1] + 1))
    lengths = ends[:, 0] - begins
    differs = lengths[1:] != lengths[:-1]
    for offset in range(0, int(lengths.max()), _WORD):
        parts = _words(codes, begins, lengths, offset)
        differs |= parts[1:] != parts[:-1]
    return [0, *(np.flatnonzero(differs) + 1).tolist()]


def _line_by_line(path: StrPath, first: int, block: bytes, columns: int) -> Columns:
    qids: list[str] = []
    starts: list[int] = []
    docids: list[str] = []
    keys: list[float] = []
    doc, rank = (1, 2) if columns == MSMARCO_COLUMNS else (2, 3)
    for number, raw in enumerate(block.split(b'\n'), first):
        try:
            line = raw.rstrip(b'\r').decode('utf-8')
        except UnicodeDecodeError as error:
            raise InputError.at(path, number, f'not valid UTF-8 ({error.reason}): save the file as UTF-8') from error
        if '\r' in line:
            raise InputError.at(path, number, LONE_CR)
        try:
            values = values_of(line)
            if not values:
                continue
            if len(values) != columns:
                _refuse(path, number, raw, columns)
            key = float(integer(values[rank], 0 if columns == MSMARCO_COLUMNS else -_GREATEST_RANK, _GREATEST_RANK))
            if columns == TREC_COLUMNS:
                key = decimal(values[4])
        except ValueError as error:
            _refuse(path, number, raw, columns, f' ({error})')
        if not qids or values[0] != qids[-1]:
            qids.append(values[0])
            starts.append(len(docids))
        docids.append(values[doc])
        keys.append(key)
    return Columns(qids, starts, docids, np.array(keys, dtype=np.float64))


def _refuse(path: StrPath, number: int, line: bytes, columns: int, why: str = '') -> NoReturn:
    trec, msmarco = "'qid Q0 docid rank score tag'", "'qid docid rank'"
    wanted = {TREC_COLUMNS: trec, MSMARCO_COLUMNS: msmarco}.get(columns, f'{trec} or {msmarco}')
    raise InputError.at(path, number, f'expected {wanted}, found {line.decode("utf-8", "replace").strip()[:80]!r}{why}')
