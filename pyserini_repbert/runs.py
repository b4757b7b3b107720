"""Run files: TREC (`qid Q0 docid rank score tag`) and MS MARCO (`qid docid rank`), plain or .gz, read and written here only.

A run in memory is columns, not objects: {qid: RankedList(docids, scores)}, best first, so that fusing or evaluating
seven million entries takes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, atomic_file, numbered_lines

SCORE_DIGITS = 6
_UNIT = 10.0**-SCORE_DIGITS


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

    Parameters
    ----------
    depth : keep only the best `depth` hits of each query

    Raises
    ------
    InputError
        naming file and line: a malformed line, a docid that occurs twice for a query, a score that is not a number
    """
    docids: dict[str, list[str]] = {}
    keys: dict[str, list[float]] = {}
    columns = 0
    number = 0
    line = ''
    sign = 1.0
    qid, own_docids, own_keys = None, [], []  # type: tuple[str | None, list[str], list[float]]
    try:
        for number, line in numbered_lines(path, 'run file'):
            values = line.split()
            if not columns:
                if not values:
                    continue
                columns, sign = len(values), 1.0 if len(values) == 3 else -1.0
                if columns not in (3, 6):
                    raise ValueError
            if len(values) != columns:
                if not values:
                    continue
                raise ValueError
            if values[0] != qid:
                qid = values[0]
                own_docids, own_keys = docids.setdefault(qid, []), keys.setdefault(qid, [])
            if columns == 6:
                own_docids.append(values[2])
                int(values[3])
                own_keys.append(-float(values[4]))
            else:
                own_docids.append(values[1])
                own_keys.append(int(values[2]))
    except ValueError as error:
        expected = 'qid docid rank' if columns == 3 else 'qid Q0 docid rank score tag'
        either = expected if columns in (3, 6) else f"{expected}' or 'qid docid rank"
        raise InputError.at(path, number, f"expected '{either}', found {line[:80]!r}") from error
    if not docids:
        raise InputError(f'run file {path} has no lines')
    run: Run = {}
    for qid in docids:
        if len(set(docids[qid])) != len(docids[qid]):
            raise _duplicate(path, qid)
        if not all(map(math.isfinite, keys[qid])):
            raise _not_finite(path, qid)
        run[qid] = _ordered(docids[qid], keys[qid], sign, depth)
    return run


def _ordered(docids: list[str], keys: list[float], sign: float, depth: int | None) -> RankedList:
    """Sorted by (key, docid) where key is the rank, or minus the score; already sorted lists are left as they are."""
    if any(a >= b for a, b in zip(keys, keys[1:], strict=False)):
        order = sorted(range(len(docids)), key=lambda i: (keys[i], docids[i]))
        docids, keys = [docids[i] for i in order], [keys[i] for i in order]
    docids, keys = docids[:depth], keys[:depth]
    return RankedList(docids, [1.0 / (i + 1) for i in range(len(keys))] if sign > 0 else [-key for key in keys])


def _columns_with_numbers(path: StrPath) -> Iterable[tuple[int, list[str]]]:
    return ((number, line.split()) for number, line in numbered_lines(path, 'run file') if line.strip())


def _duplicate(path: StrPath, qid: str) -> InputError:
    """Read the file again for the line to name: errors may be slow, reading may not."""
    first: dict[str, int] = {}
    for number, columns in _columns_with_numbers(path):
        docid = columns[2 if len(columns) == 6 else 1]
        if columns[0] == qid and first.setdefault(docid, number) != number:
            message = f"document '{docid}' occurs twice for query '{qid}' (first in line {first[docid]})"
            return InputError.at(path, number, message + ': remove one of the lines')
    raise AssertionError('unreachable: a duplicate was counted')


def _not_finite(path: StrPath, qid: str) -> InputError:
    for number, columns in _columns_with_numbers(path):
        if columns[0] == qid and len(columns) == 6 and not math.isfinite(float(columns[4])):
            return InputError.at(path, number, f"score '{columns[4]}' is not a finite number")
    raise AssertionError('unreachable: a bad score was counted')


def strictly_decreasing(scores: Sequence[float]) -> list[float]:
    """Scores with `SCORE_DIGITS` decimals that strictly decrease, also as 32-bit floats, changed as little as needed.

    Evaluators sort a run by score again, and trec_eval reads scores as 32-bit floats: a tie would leave the order to
    them. Input must not increase; it is the order that is kept, each score is at most its own value.
    """
    rounded = np.round(np.asarray(scores, dtype=np.float64), SCORE_DIGITS)
    if len(rounded) < 2 or (np.diff(rounded.astype(np.float32)) < 0).all():
        return [float(value) for value in rounded]
    result = [float(rounded[0])]
    for value in rounded[1:].tolist():
        last = result[-1]
        if np.float32(value) >= np.float32(last):
            below = float(np.nextafter(np.float32(last), np.float32(-np.inf)))
            value = round(min(last - _UNIT, below), SCORE_DIGITS)  # noqa: PLW2901
        result.append(value)
    return result


def write_run(
    path: StrPath, run: Mapping[str, RankedList], fmt: str = RunFormat.TREC, tag: str = 'pyserini_repbert'
) -> None:
    """Write a run atomically, queries in the run's order, ranks from 1, TREC scores made strictly decreasing.

    A query without hits has no line. Raises InputError for an unknown format or a tag with white space.
    """
    check_format(fmt, tag)
    with atomic_file(path) as stream:
        for qid, (docids, scores) in run.items():
            if fmt == RunFormat.MSMARCO:
                stream.writelines([f'{qid}\t{docid}\t{rank}\n' for rank, docid in enumerate(docids, 1)])
            else:
                written = strictly_decreasing(scores)
                stream.writelines(
                    [
                        f'{qid} Q0 {docid} {rank} {score:.6f} {tag}\n'
                        for rank, (docid, score) in enumerate(zip(docids, written, strict=True), 1)
                    ]
                )


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
