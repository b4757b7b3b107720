"""Reading and writing run files, plain or .gz.

TREC has lines `qid Q0 docid rank score tag`, MS MARCO `qid docid rank`. A run in memory is {qid:
Ranking}, best first.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from pyserini_repbert.data.ordering import Array, reciprocal_scores
from pyserini_repbert.data.run_parser import (
    MSMARCO_COLUMNS,
    Stretch,
    count_columns,
    line_blocks,
    stretches,
)
from pyserini_repbert.data.values import Choice
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath, atomic_file
from pyserini_repbert.ranking import Ranking, Run, distinct_names

# White space, and what `values` refuses: NUL, byte order marks, halves of surrogate pairs.
_FORBIDDEN = re.compile('[ \t\n\r\x0b\x0c\x00\ufeff\ud800-\udfff]')
SCORE_DIGITS = 6
_PER_UNIT = 10.0**SCORE_DIGITS
# 32-bit floats below 16 are less than 10^-6 apart: a step of one digit is not lost.
_UNIT_IS_ENOUGH_BELOW = 16.0
# 32-bit floats end at 3.4e38; a long list of ties needs room below its lowest score.
_GREATEST_SCORE = 1e38


class RunFormat(Choice, what='output format'):
    """The two formats of a run file, named as Pyserini names its output formats."""

    TREC = 'trec'
    MSMARCO = 'msmarco'


def read_run(path: StrPath, depth: int | None = None) -> Run:
    """A run file in either format, which its number of columns tells.

    Lines may come in any order. A TREC run is ordered by (-score, docid), as evaluators order it,
    whatever its rank column says. An MS MARCO run is ordered by (rank, docid), ranks from 0 or 1,
    and gets the scores 1, 1/2, 1/3, … Values are separated by ASCII white space; blank lines are
    ignored; queries keep the order of their first lines. A file without lines, which is logged as a
    warning, is a run without hits. With `depth`, only the best hits of each query are kept. Raises
    InputError, naming file and line, for a malformed line or a score that is not a finite number,
    and for a docid that occurs twice for a query.
    """
    stretches_of: dict[str, list[Stretch]] = {}
    for stretch in stretches(path):
        stretches_of.setdefault(stretch.qid, []).append(stretch)
    run: Run = {}
    for qid in list(stretches_of):
        # Popped, so that a large file is not in memory twice.
        run[qid] = _ranking(path, stretches_of.pop(qid), depth)
    return run


class ScatteredQueryError(InputError):
    """A query's lines are not consecutive, as `iter_run` requires."""


def iter_run(path: StrPath, depth: int | None = None) -> Iterator[tuple[str, Ranking]]:
    """The queries of a run file one at a time; otherwise as `read_run`.

    The memory that it takes does not grow with the file. Raises ScatteredQueryError for a query
    that comes again after another one: only `read_run` can join its lines.
    """
    seen: set[str] = set()
    for qid, of_query in itertools.groupby(stretches(path), key=lambda stretch: stretch.qid):
        if qid in seen:
            raise ScatteredQueryError(f"run file {path} has lines of query '{qid}' in two places")
        seen.add(qid)
        yield qid, _ranking(path, list(of_query), depth)


def _ranking(path: StrPath, of_query: list[Stretch], depth: int | None) -> Ranking:
    """The ranking of one query, by the rule of `read_run`."""
    first = of_query[0]
    docids = first.docids
    keys = first.keys
    if len(of_query) > 1:
        docids = list(itertools.chain.from_iterable(stretch.docids for stretch in of_query))
        keys = np.concatenate([stretch.keys for stretch in of_query])
    if len(set(docids)) < len(docids):
        twice = Counter(docids).most_common(1)[0][0]
        raise InputError(
            f"run file {path}: document '{twice}' occurs twice for query '{first.qid}': remove one "
            'of the lines'
        )
    if first.columns == MSMARCO_COLUMNS:
        return _ranking_by_rank(docids, keys, depth)
    return _ranking_by_score(docids, keys, depth)


def _ranking_by_rank(docids: list[str], ranks: Array, depth: int | None) -> Ranking:
    is_sorted = (ranks[1:] > ranks[:-1]).all()
    if not is_sorted:
        docids = [docid for _, docid in sorted(zip(ranks.tolist(), docids, strict=True))]
    kept = docids[:depth]
    return Ranking(kept, reciprocal_scores(len(kept)))


def _ranking_by_score(docids: list[str], scores: Array, depth: int | None) -> Ranking:
    is_sorted = (scores[1:] < scores[:-1]).all()
    if is_sorted:
        return Ranking(docids[:depth], scores[:depth].tolist())
    pairs = sorted(zip((-scores).tolist(), docids, strict=True))[:depth]
    return Ranking([docid for _, docid in pairs], [-negative for negative, _ in pairs])


def run_format(path: StrPath) -> RunFormat:
    """The format of a run file, by its first line; TREC if there is none.

    Raises InputError for a line of neither format.
    """
    for first, block in line_blocks(path):
        columns = count_columns(path, first, block)
        if columns:
            return RunFormat.MSMARCO if columns == MSMARCO_COLUMNS else RunFormat.TREC
    return RunFormat.TREC


def write_run(
    path: StrPath,
    run: Mapping[str, Ranking] | Iterable[tuple[str, Ranking]],
    fmt: str = RunFormat.TREC,
    tag: str = 'pyserini_repbert',
) -> None:
    """Write a run atomically: queries in the run's order, ranks from 1.

    TREC scores are made strictly decreasing. A query without hits has no line.

    Parameters
    ----------
    path : of the file to write
    run : rankings by qid, or (qid, ranking) pairs, each qid once
    fmt : a RunFormat
    tag : the last value of each line of TREC

    Raises InputError for an unknown format, a tag, qid or docid that is empty or has white space,
    or a score that is not finite (less than 1e38); an existing file then stays as it was.
    """
    check_format(fmt, tag)
    rankings = run.items() if isinstance(run, Mapping) else run
    with atomic_file(path) as stream:
        for qid, ranking in rankings:
            _check_names(qid, ranking.docids)
            if fmt == RunFormat.MSMARCO:
                lines = _msmarco_lines(qid, ranking)
            else:
                lines = _trec_lines(qid, ranking, tag)
            stream.writelines(lines)


def _msmarco_lines(qid: str, ranking: Ranking) -> Iterator[str]:
    for rank, docid in enumerate(ranking.docids, 1):
        yield f'{qid}\t{docid}\t{rank}\n'


def _trec_lines(qid: str, ranking: Ranking, tag: str) -> Iterator[str]:
    """The lines of one query, with scores that strictly decrease."""
    _check_scores(qid, ranking)
    scores = strictly_decreasing(ranking.scores)
    for rank, (docid, score) in enumerate(zip(ranking.docids, scores, strict=True), 1):
        yield f'{qid} Q0 {docid} {rank} {score:.{SCORE_DIGITS}f} {tag}\n'


def _check_scores(qid: str, ranking: Ranking) -> None:
    n_scores = len(ranking.scores)
    if n_scores != len(ranking):
        raise InputError(
            f"query '{qid}' has {len(ranking)} hits and {n_scores} scores: give one score a hit"
        )
    for score in ranking.scores:
        if not abs(score) < _GREATEST_SCORE:
            limit = f'less than {_GREATEST_SCORE:g}: evaluators read 32-bit floats'
            raise InputError(
                f"query '{qid}' has the score {score:g}, which is not finite ({limit})"
            )


def _check_names(qid: str, docids: Sequence[str]) -> None:
    for what, names in (('qid', [qid]), ('docid', docids)):
        if '' in names or _FORBIDDEN.search(''.join(names)):
            bad = next(name for name in names if not name or _FORBIDDEN.search(name))
            wrong = 'is empty or has white space, or what is not a character'
            raise InputError(f'{what} {bad!r} of query {qid!r} {wrong}: run files cannot hold it')


def check_format(fmt: str, tag: str) -> None:
    """Raises InputError for an output format or a tag that no run file can have.

    Commands call it before any work is done.
    """
    # This refuses an unknown format.
    RunFormat(fmt)
    if len(tag.split()) != 1 or _FORBIDDEN.search(tag):
        raise InputError(
            f'run tag {tag!r} must be one word in UTF-8: give another tag', parameters=('tag',)
        )


def default_tag(path: StrPath) -> str:
    """The tag of a run when none is given.

    It is the file name without the suffixes .gz, .txt, .tsv, .run, .trec.
    """
    name = Path(path).name
    for suffix in ('.gz', '.txt', '.tsv', '.run', '.trec'):
        name = name.removesuffix(suffix)
    return '_'.join(name.split()) or 'run'


def unique_names(run_paths: Sequence[StrPath]) -> list[str]:
    """A short name for each run, from its file name; no two are the same."""
    return distinct_names([default_tag(path) for path in run_paths])


def strictly_decreasing(scores: Sequence[float]) -> list[float]:
    """Scores with `SCORE_DIGITS` decimals that strictly decrease, also as 32-bit floats.

    They are changed as little as needed. Evaluators sort a run by score again, and trec_eval reads
    scores as 32-bit floats: they would order ties their way. No score exceeds its rounded value.
    Scores have to be finite.
    """
    rounded = np.round(np.asarray(scores, dtype=np.float64), SCORE_DIGITS) + 0.0
    single = rounded.astype(np.float32)
    ties = np.flatnonzero(single[1:] >= single[:-1]) + 1
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


def _next_below(value: float) -> float:
    """The greatest multiple of 10^-6 that is less than `value` also as a 32-bit float."""
    single = np.float32(value)
    below = min(value - 1 / _PER_UNIT, float(np.nextafter(single, np.float32(-np.inf))))
    rounded = round(below, SCORE_DIGITS)
    if np.float32(rounded) < single:
        return rounded
    return math.floor(below * _PER_UNIT) / _PER_UNIT
