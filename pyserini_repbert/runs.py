"""Run files: TREC (`qid Q0 docid rank score tag`) and MS MARCO (`qid docid rank`), plain or .gz; read and written here.

A run in memory is columns, not objects: {qid: RankedList(docids, scores)}, best first, so that fusing or evaluating
seven million entries takes seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, atomic_file
from pyserini_repbert.run_blocks import MSMARCO_COLUMNS, TREC_COLUMNS, Array, count_columns, line_blocks, parse_block

SCORE_DIGITS = 6
_PER_UNIT = 10.0**SCORE_DIGITS
_UNIT_IS_ENOUGH_BELOW = 16.0  # 32-bit floats below 16 lie closer than 10^-6, so that a step of one digit is never lost
_WHITE_SPACE = re.compile(r'[ \t\n\r\x0b\x0c]')


class RunFormat(StrEnum):
    """The two formats of a run file; the values are those of Pyserini's `--output-format`."""

    TREC = 'trec'
    MSMARCO = 'msmarco'


class RankedList(NamedTuple):
    """One query's hits, best first: distinct docids and their scores (which never increase)."""

    docids: list[str]
    scores: list[float]


Run = dict[str, RankedList]


def read_run(path: StrPath, depth: int | None = None) -> Run:
    """A run file in either format, told apart by its number of columns; lines may come in any order.

    A TREC run is ordered by (-score, docid): what it is worth to an evaluator, whatever its rank column says. An
    MS MARCO run is ordered by (rank, docid), ranks from 0 or 1, and gets the scores 1, 1/2, 1/3, …
    Values are separated by ASCII white space; blank lines are ignored; queries keep the order of their first lines.

    Parameters
    ----------
    depth : keep only the best `depth` hits of each query

    Raises
    ------
    InputError
        naming file and line: a malformed line, a docid that occurs twice for a query, a score that is not a number
    """
    docids: dict[str, list[str]] = {}
    keys: dict[str, list[Array]] = {}
    columns = 0
    for first, block in line_blocks(path):
        columns = columns or count_columns(path, first, block)
        if not columns:
            continue
        found = parse_block(path, first, block, columns)
        for qid, start, stop in zip(found.qids, found.starts, [*found.starts[1:], len(found.docids)], strict=True):
            own = found.docids[start:stop]
            if qid in docids:
                docids[qid] += own
            else:
                docids[qid] = own
            keys.setdefault(qid, []).append(found.keys[start:stop])
    if not docids:
        raise InputError(f"run file {path} has no lines: expected 'qid Q0 docid rank score tag' or 'qid docid rank'")
    run: Run = {}
    for qid, own in docids.items():
        if len(set(own)) != len(own):
            raise _duplicate(path, qid)
        chunks = keys.pop(qid)
        own_keys = chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
        run[qid] = (_by_rank if columns == MSMARCO_COLUMNS else _by_score)(own, own_keys, depth)
    return run


def run_format(path: StrPath) -> RunFormat:
    """The format of a run file, by its first line that is not blank. Raises InputError where it is neither's."""
    for first, block in line_blocks(path):
        if columns := count_columns(path, first, block):
            return RunFormat.TREC if columns == TREC_COLUMNS else RunFormat.MSMARCO
    raise InputError(f'run file {path} has no lines')


_RECIPROCALS = [1.0 / rank for rank in range(1, 1001)]


def reciprocal_scores(n: int) -> list[float]:
    """[1, 1/2, …, 1/n]: the scores of a ranking that has none of its own (equal numbers are shared between lists)."""
    return _RECIPROCALS[:n] + [1.0 / rank for rank in range(len(_RECIPROCALS) + 1, n + 1)]


def _by_rank(docids: list[str], ranks: Array, depth: int | None) -> RankedList:
    if (ranks[1:] <= ranks[:-1]).any():
        docids = [docid for _, docid in sorted(zip(ranks.tolist(), docids, strict=True))]
    docids = docids[:depth]
    return RankedList(docids, reciprocal_scores(len(docids)))


def _by_score(docids: list[str], scores: Array, depth: int | None) -> RankedList:
    if (scores[1:] >= scores[:-1]).any():
        pairs = sorted(zip((-scores).tolist(), docids, strict=True))
        return RankedList([docid for _, docid in pairs[:depth]], [-key for key, _ in pairs[:depth]])
    return RankedList(docids[:depth], scores[:depth].tolist())


def _duplicate(path: StrPath, qid: str) -> InputError:
    """Read the file again for the line to name: errors may be slow, reading may not."""
    first: dict[bytes, int] = {}
    for start, block in line_blocks(path):
        for number, line in enumerate(block.split(b'\n'), start):
            values = line.split()
            if not values or values[0] != qid.encode():
                continue
            docid = values[2 if len(values) == TREC_COLUMNS else 1]
            if first.setdefault(docid, number) != number:
                message = f"document '{docid.decode()}' occurs twice for query '{qid}' (first in line {first[docid]})"
                return InputError.at(path, number, message + ': remove one of the lines')
    return InputError(f'run file {path} changed while it was read: read it again')


def strictly_decreasing(scores: Sequence[float]) -> list[float]:
    """Scores with `SCORE_DIGITS` decimals that strictly decrease, also as 32-bit floats, changed as little as needed.

    Evaluators sort a run by score again, and trec_eval reads scores as 32-bit floats: a tie would leave the order to
    them. It is the order that is kept; each score is at most its own value, rounded. Scores have to be finite.
    """
    rounded = np.round(np.asarray(scores, dtype=np.float64), SCORE_DIGITS) + 0.0
    ties = _not_decreasing(rounded)
    if not len(ties):
        return rounded.tolist()  # type: ignore[no-any-return]
    if np.abs(rounded).max() + len(rounded) / _PER_UNIT < _UNIT_IS_ENOUGH_BELOW:
        steps = np.arange(len(rounded))
        units = np.minimum.accumulate(np.rint(rounded * _PER_UNIT) + steps) - steps
        return (units / _PER_UNIT + 0.0).tolist()  # type: ignore[no-any-return]
    result: list[float] = rounded.tolist()
    for tie in ties.tolist():
        for i in range(tie, len(result)):
            if np.float32(result[i]) < np.float32(result[i - 1]):
                break
            result[i] = _next_below(result[i - 1])
    return result


def _not_decreasing(values: Array) -> Array:
    """The positions, from 1, of the values that are not less than the one before them as 32-bit floats."""
    single = values.astype(np.float32)
    return np.flatnonzero(single[1:] >= single[:-1]) + 1


def _next_below(value: float) -> float:
    """The greatest multiple of 10^-6 that is less than `value` also as a 32-bit float."""
    single = np.float32(value)
    below = min(value - 1 / _PER_UNIT, float(np.nextafter(single, np.float32(-np.inf))))
    rounded = round(below, SCORE_DIGITS)
    return rounded if np.float32(rounded) < single else math.floor(below * _PER_UNIT) / _PER_UNIT


def write_run(
    path: StrPath, run: Mapping[str, RankedList], fmt: str = RunFormat.TREC, tag: str = 'pyserini_repbert'
) -> None:
    """Write a run atomically, queries in the run's order, ranks from 1, TREC scores made strictly decreasing.

    A query without hits has no line.

    Raises
    ------
    InputError
        for an unknown format, a tag, qid or docid that is empty or has white space, or a score that is not finite; the
        file that was there before is then still there
    """
    check_format(fmt, tag)
    ranks: list[str] = []
    with atomic_file(path) as stream:
        for qid, (docids, scores) in run.items():
            _check_names(qid, docids)
            n = len(docids)
            ranks.extend(str(rank) for rank in range(len(ranks) + 1, n + 1))
            if fmt == RunFormat.MSMARCO:
                stream.write(_woven(f'{qid}\t', docids, '\t', ranks[:n], '\n'))
                continue
            if len(scores) != n or not np.isfinite(scores).all():
                raise InputError(f"query '{qid}' has {n} hits and {len(scores)} scores, or one that is not finite")
            texts = (f'%.{SCORE_DIGITS}f ' * n % tuple(strictly_decreasing(scores))).split()
            stream.write(_woven(f'{qid} Q0 ', docids, ' ', ranks[:n], ' ', texts, f' {tag}\n'))


def _woven(*columns: str | list[str]) -> str:
    """The first values of all columns, then the second values, …: joining is faster than formatting line by line.

    A column that is one text is the same in each line.
    """
    n = next(len(column) for column in columns if isinstance(column, list))
    parts = [''] * (len(columns) * n)
    for i, column in enumerate(columns):
        parts[i :: len(columns)] = [column] * n if isinstance(column, str) else column
    return ''.join(parts)


def _check_names(qid: str, docids: list[str]) -> None:
    for what, names in (('qid', [qid]), ('docid', docids)):
        if '' in names or _WHITE_SPACE.search(''.join(names)):
            bad = next(name for name in names if not name or _WHITE_SPACE.search(name))
            raise InputError(f"{what} {bad!r} of query '{qid}' is empty or has white space: run files cannot hold it")


def check_format(fmt: str, tag: str) -> None:
    """Refuse an output format or a tag that no run file can have, before any work is done."""
    if fmt not in list(RunFormat):
        raise InputError(f"output format '{fmt}' is unknown: expected one of {', '.join(RunFormat)}")
    if len(tag.split()) != 1:
        raise InputError(f'run tag {tag!r} must be one word: evaluators split lines at white space')


def default_tag(path: StrPath) -> str:
    """The tag of a run when none is given: its file name without the suffixes .gz, .txt, .tsv, .run, .trec."""
    name = Path(path).name
    for suffix in ('.gz', '.txt', '.tsv', '.run', '.trec'):
        name = name.removesuffix(suffix)
    return '_'.join(name.split()) or 'run'
