"""Cross-validation over topics, as on Robust04: folds, splits and joined runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyserini_repbert.data.corpus_formats import is_data_line, parse_data_line
from pyserini_repbert.data.values import checked, columns, identifier_problem, parse_json
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import StrPath, existing_file, numbered_lines
from pyserini_repbert.folder_forms import FolderForm
from pyserini_repbert.ranking import Ranking, Run

Folds = list[list[str]]
FORM = FolderForm(
    'folder of folds',
    ('fold-[0-9]+/', r'fold-[0-9]+/((train|validation|test)\.(tsv|run)|train\.pairs)'),
)
_LEAST_FOLDS = 3  # to train, to validate, to test
_SHOWN = 3  # topics that an error lists


class Split(NamedTuple):
    """The qids that a fold's model is trained on, chosen by, and tested on."""

    train: list[str]
    validation: list[str]
    test: list[str]


def read_folds(paths: Sequence[StrPath]) -> Folds:
    """The qids of each fold: three folds or more, none empty.

    Each fold has a file whose lines begin with a qid (a list, topics, a run, pairs, qrels: the test
    run of each fold will do); or one JSON file has a list of lists of qids.
    """
    if len(paths) == 1:
        folds = _from_json(paths[0])
    else:
        folds = [read_qids(path) for path in paths]
    if len(folds) < _LEAST_FOLDS:
        expected = f'expected at least {_LEAST_FOLDS} to train, to validate, to test'
        raise InputError(f'{len(folds)} folds were given, {expected}: {", ".join(map(str, paths))}')
    for number, fold in enumerate(folds, 1):
        if not fold:
            raise InputError(f'fold {number} has no topics: {paths[min(number, len(paths)) - 1]}')
    return folds


def read_qids(path: StrPath) -> list[str]:
    """The qids that the lines of a file begin with, each once."""
    qids: dict[str, None] = {}
    for number, line in numbered_lines(path, 'fold file'):
        try:
            qid = _first_column(line)
        except ValueError as error:
            raise InputError.at(
                path, number, f'expected a line that begins with a qid, found {line[:60]!r}'
            ) from error
        if qid is not None:
            qids[qid] = None
    return list(qids)


def _first_column(line: str) -> str | None:
    """The qid of a line; None for an empty one. Raises ValueError for what cannot be a qid."""
    if is_data_line(line):
        qid = parse_data_line(line).identifier
    else:
        values = columns(line)
        if not values:
            return None
        qid = values[0]
    problem = identifier_problem(qid)
    if problem:
        raise ValueError(problem)
    return qid


def _from_json(path: StrPath) -> Folds:
    file = existing_file(path, 'fold file')
    try:
        folds = checked(list[list[str | int]], parse_json(file.read_bytes()))
    except ValueError as error:
        raise InputError(
            f'{file} is not a JSON list of lists of qids ({error}): give that, or '
            'one file for each fold'
        ) from error
    return [list(dict.fromkeys(map(str, fold))) for fold in folds]


def fold_of(folds: Folds) -> dict[str, int]:
    """The number of each topic's fold, from 1. Raises MismatchError for a topic in two folds."""
    number_of: dict[str, int] = {}
    for number, fold in enumerate(folds, 1):
        for qid in fold:
            first = number_of.setdefault(qid, number)
            if first != number:
                both = f'in fold {first} and in fold {number}'
                raise MismatchError(f"topic '{qid}' is {both}: folds must be disjoint")
    return number_of


def check_cover(folds: Folds, qids: Sequence[str]) -> None:
    """Raise MismatchError unless each topic of `qids`, and no other, is in exactly one fold."""
    in_folds = fold_of(folds)
    known = set(qids)
    strays = [qid for qid in qids if qid not in in_folds]
    where = 'in no fold'
    if not strays:
        strays = [qid for qid in in_folds if qid not in known]
        where = 'in a fold, but not among the topics'
    if strays:
        shown = ', '.join(strays[:_SHOWN])
        more = ', …' if len(strays) > _SHOWN else ''
        raise MismatchError(
            f'{len(strays)} topics are {where} ({shown}{more}): folds cover all topics'
        )


def split_folds(
    folds: Folds, *, validation: Sequence[str] = (), others: Sequence[str] = ()
) -> list[Split]:
    """A split for each fold, which tests (CEDR section 3.1).

    As on Robust04, the fold before it validates (the last before the first), and the rest train. As
    on the Web tracks, `validation` validates every fold; all other folds train, and so do `others`,
    topics of years that are never tested.
    """
    fold_of([*folds, list(validation), list(others)])
    splits = []
    for tested, fold in enumerate(folds):
        validating = None if validation else (tested - 1) % len(folds)
        train = list(others)
        for number, other in enumerate(folds):
            if number not in (tested, validating):
                train += other
        chosen = validation if validating is None else folds[validating]
        splits.append(Split(train, validation=list(chosen), test=list(fold)))
    return splits


def join_runs(runs: Sequence[Mapping[str, Ranking]], folds: Folds) -> Run:
    """One run of all topics, fold by fold, from each fold's run on its own topics."""
    if len(runs) != len(folds):
        raise MismatchError(
            f'{len(runs)} runs and {len(folds)} folds were given: give one run a fold, in their '
            f'order'
        )
    number_of = fold_of(folds)
    joined: Run = {}
    for number, (run, fold) in enumerate(zip(runs, folds, strict=True), 1):
        for qid in run:
            if number_of.get(qid) != number:
                where = f'in fold {number_of[qid]}' if qid in number_of else 'in no fold'
                raise MismatchError(
                    f"run {number} has topic '{qid}', which is {where}: runs follow the folds' "
                    f'order'
                )
        joined |= {qid: run[qid] for qid in fold if qid in run}
    return joined
