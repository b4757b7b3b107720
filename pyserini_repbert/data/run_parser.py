"""Run files in blocks of whole lines.

Arrow's CSV reader parses a regular block; any other is read line by line. A regular block has
exactly one space or tab between values and no blank lines; nearly all run files consist of them.
Both ways give the same columns; only reading line by line accepts other spacing and names malformed
lines.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from pyserini_repbert.data.values import columns as values_of, decimal, integer
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import (
    BYTE_ORDER_MARK,
    StrPath,
    decoded_lines,
    existing_file,
    open_binary,
)

logger = logging.getLogger(__name__)

# The lines around metadata at the beginning of a run (https://www.ir-metadata.org/).
HEADER_START = b'# ir_metadata.start'
HEADER_END = b'# ir_metadata.end'
MSMARCO_COLUMNS = 3
TREC_COLUMNS = 6
_MSMARCO_NAMES = ['qid', 'docid', 'rank']
_TREC_NAMES = ['qid', 'Q0', 'docid', 'rank', 'score', 'tag']
_LONGEST_RANK = 15  # digits that float64 always holds
_GREATEST_RANK = 2**53  # up to here, float64 holds every whole number
_BLOCK_BYTES = 1 << 20
_FEW_BYTES = 1 << 16

Array = np.ndarray[Any, np.dtype[Any]]


class Columns(NamedTuple):
    """Lines of a run file."""

    queries: list[tuple[str, int]]  # the qid and the number of consecutive lines of one query
    docids: list[str]
    keys: Array  # float64: the rank (MS MARCO) or the score (TREC)


class Stretch(NamedTuple):
    """Consecutive lines of one query."""

    columns: int  # of each line, 3 or 6
    qid: str
    docids: list[str]
    keys: Array  # as in `Columns`


def stretches(path: StrPath) -> Iterator[Stretch]:
    """Consecutive lines of one query; a query may come again later.

    A file without lines is a run without hits, which is a warning. Raises InputError naming file
    and line for a malformed line.
    """
    columns = 0
    for first, block in line_blocks(path):
        columns = columns or count_columns(path, first, block)
        if not columns:
            continue
        queries, docids, keys = parse_block(path, first, block, columns)
        start = 0
        for qid, lines in queries:
            stop = start + lines
            yield Stretch(columns, qid, docids[start:stop], keys[start:stop])
            start = stop
    if not columns:
        logger.warning('run file %s is empty: it counts as a run without hits', path)


def line_blocks(path: StrPath) -> Iterator[tuple[int, bytes]]:
    """A run file in blocks of about `_BLOCK_BYTES`, without a header of ir-metadata.

    Yields (number of the first line, whole lines with '\\n' ends). Raises InputError for a header
    without an end.
    """
    first = 1
    with open_binary(existing_file(path, 'run file')) as stream:
        while block := stream.read(_BLOCK_BYTES) + stream.readline():
            if first == 1:
                block = block.removeprefix(BYTE_ORDER_MARK)
                header = _header(path, block)
                block = block.removeprefix(header)
                first += header.count(b'\n')
            whole = block if block.endswith(b'\n') else block + b'\n'
            yield first, whole
            # Faster than `block.count`.
            first += int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord('\n')))


def _header(path: StrPath, block: bytes) -> bytes:
    """The ir-metadata header at the beginning of a run's first block; b'' if there is none."""
    if not block.startswith(HEADER_START):
        return b''
    end = block.find(b'\n' + HEADER_END)
    if end < 0:
        raise InputError(
            f'run file {path}: its header of ir-metadata has no line '
            f"'{HEADER_END.decode()}': write the run again"
        )
    last = block.find(b'\n', end + 1)
    return block if last < 0 else block[: last + 1]


def count_columns(path: StrPath, first: int, block: bytes) -> int:
    """3 or 6, the columns of the first line that is not blank; 0 if all are.

    Raises InputError for another number.
    """
    for number, line in enumerate(block.split(b'\n'), first):
        values = line.split()
        if not values:
            continue
        if len(values) not in (MSMARCO_COLUMNS, TREC_COLUMNS):
            _refuse(path, number, line.decode('utf-8', 'replace'), 0)
        return len(values)
    return 0


def parse_block(path: StrPath, first: int, block: bytes, columns: int) -> Columns:
    """The columns of a block of lines.

    Parameters
    ----------
    path : of the file, for errors
    first : the number of the block's first line
    block : whole lines with their ends
    columns : how many each line has

    Raises InputError naming file and line.
    """
    if b'\r' in block:
        block = block.replace(b'\r\n', b'\n')
    # Importing Arrow takes longer than reading a few lines one by one.
    if len(block) < _FEW_BYTES and 'pyarrow' not in sys.modules:
        return _line_by_line(path, first, block, columns)
    return _at_once(block, columns) or _line_by_line(path, first, block, columns)


def _at_once(block: bytes, columns: int) -> Columns | None:
    """The columns of a regular block.

    None for any other block, and if a value has to be checked separately.
    """
    from pyarrow import compute

    if b'\t' in block:
        block = block.replace(b'\t', b' ')
    separates = np.frombuffer(block, np.uint8) <= ord(' ')
    has_empty_values = separates[0] or (separates[1:] & separates[:-1]).any()
    if b'\r' in block or has_empty_values:
        return None
    names = _MSMARCO_NAMES if columns == MSMARCO_COLUMNS else _TREC_NAMES
    table = _arrow_table(block, names)
    if table is None:
        return None
    if np.count_nonzero(separates) != table.num_rows * len(names):
        # Other white space, or control characters.
        return None
    keys = _keys(table)
    if keys is None:
        return None
    runs = compute.run_end_encode(table['qid'].combine_chunks())
    lengths = np.diff(np.from_dlpack(runs.run_ends), prepend=0).tolist()
    queries = list(zip(runs.values.to_pylist(), lengths, strict=True))
    return Columns(queries, table['docid'].to_pylist(), keys)


def _arrow_table(block: bytes, names: Sequence[str]) -> Any:
    """The columns of a block that are read, as Arrow's table; None if it cannot read them."""
    from pyarrow import ArrowInvalid, csv, float64, py_buffer, string

    kinds = {'qid': string(), 'docid': string(), 'rank': string(), 'score': float64()}
    read_names = [name for name in names if name in kinds]
    try:
        if not block.isascii() and '\ufeff' in block.decode('utf-8'):
            return None
        table = csv.read_csv(
            py_buffer(block),
            csv.ReadOptions(use_threads=False, column_names=names, block_size=len(block) + 1),
            csv.ParseOptions(delimiter=' ', quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=kinds, include_columns=read_names),
        )
    except (ArrowInvalid, UnicodeDecodeError):
        return None
    return table.combine_chunks()


def _keys(table: Any) -> Array | None:
    """The scores of a TREC run or the ranks of an MS MARCO run; None if one has to be checked."""
    from pyarrow import compute, float64

    ranks = table['rank']
    if not compute.all(compute.ascii_is_decimal(ranks)).as_py():
        return None
    if compute.max(compute.binary_length(ranks)).as_py() > _LONGEST_RANK:
        return None
    column = ranks.cast(float64())
    if 'score' in table.column_names:
        column = table['score']
    if column.null_count:
        return None
    # Arrow's to_numpy imports pandas, which takes longer than most runs.
    keys: Array = np.from_dlpack(column.combine_chunks())
    return keys if np.isfinite(keys).all() else None


def _line_by_line(path: StrPath, first: int, block: bytes, columns: int) -> Columns:
    qids: list[str] = []
    docids: list[str] = []
    keys: list[float] = []
    for number, line in decoded_lines(path, enumerate(block.split(b'\n'), first)):
        try:
            values = values_of(line)
            if not values:
                continue
            if len(values) != columns:
                _refuse(path, number, line, columns)
            if columns == MSMARCO_COLUMNS:
                qid, docid, rank = values
                key = float(integer(rank, 0, _GREATEST_RANK))
            else:
                qid, _, docid, rank, score, _ = values
                integer(rank, -_GREATEST_RANK, _GREATEST_RANK)
                key = decimal(score)
        except ValueError as error:
            _refuse(path, number, line, columns, f' ({error})')
        qids.append(qid)
        docids.append(docid)
        keys.append(key)
    queries = [(qid, len(list(lines))) for qid, lines in itertools.groupby(qids)]
    return Columns(queries, docids, np.array(keys, dtype=np.float64))


def _refuse(path: StrPath, number: int, line: str, columns: int, why: str = '') -> NoReturn:
    trec = "'qid Q0 docid rank score tag'"
    msmarco = "'qid docid rank'"
    wanted = {TREC_COLUMNS: trec, MSMARCO_COLUMNS: msmarco}.get(columns, f'{trec} or {msmarco}')
    raise InputError.at(path, number, f'expected {wanted}, found {line.strip()[:80]!r}{why}')
