"""Cross-validation over topics, as on Robust04: folds, their splits into train, validate and test, and joined runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pyserini_repbert.data.corpus_formats import is_data_line, parse_data_line
from pyserini_repbert.data.identifiers import columns, identifier_problem
from pyserini_repbert.data.json_values import identifier_of, parse_json
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import StrPath, existing_file, numbered_lines
from pyserini_repbert.ranking import Ranking, Run

Folds = list[list[str]]
_LEAST_FOLDS = 3  # to train, to validate, to test


class Split(NamedTuple):
    """The qids that a fold's model is trained on, chosen by, and tested on."""

    train: list[str]
    validation: list[str]
    test: list[str]


def read_folds(paths: Sequence[StrPath]) -> Folds:
    """The qids of each fold.

    Parameters
    ----------
    paths : a file for each fold, whose lines begin with a qid (a list, topics, a run, pairs, qrels: the test run of
        each fold will do); or one JSON file with a list of lists of qids

    Raises
    ------
    InputError
        for fewer than three folds, an empty one, a line that begins with no qid, a JSON file of another form
    """
    folds = _from_json(paths[0]) if len(paths) == 1 else [_first_columns(path) for path in paths]
    if len(folds) < _LEAST_FOLDS:
        raise InputError(
            f'{len(folds)} folds were given, expected at least {_LEAST_FOLDS} (train, validate, test): '
            f'{", ".join(map(str, paths))}'
        )
    for number, fold in enumerate(folds, 1):
        if not fold:
            raise InputError(f'fold {number} has no topics: {paths[min(number, len(paths)) - 1]}')
    return folds


def _first_columns(path: StrPath) -> list[str]:
    qids: dict[str, None] = {}
    for number, line in numbered_lines(path, 'fold file'):
        try:
            qid = parse_data_line(line)[1] if is_data_line(line) else next(iter(columns(line)), None)
            if qid is None:
                continue
            if problem := identifier_problem(qid):
                raise ValueError(problem)
            qids[qid] = None
        except ValueError as error:
            raise InputError.at(path, number, f'expected a line that begins with a qid, found {line[:60]!r}') from error
    return list(qids)


def _from_json(path: StrPath) -> Folds:
    try:
        content = parse_json(existing_file(path, 'fold file').read_bytes())
    except ValueError as error:
        raise InputError(f'{Path(path)} is not JSON ({error}): give a file for each fold, or one JSON file') from error
    if not isinstance(content, list) or not all(isinstance(fold, list) for fold in content):
        raise InputError(f'{Path(path)} holds no folds: a JSON list of lists of qids was expected')
    try:
        return [list(dict.fromkeys(identifier_of({'qid': qid}, ('qid',)) for qid in fold)) for fold in content]
    except ValueError as error:
        raise InputError(f'{Path(path)}: a list of qids has {error}') from error


def fold_of(folds: Folds) -> dict[str, int]:
    """The number of each topic's fold, from 1. Raises MismatchError for a topic in two folds."""
    places: dict[str, int] = {}
    for number, fold in enumerate(folds, 1):
        for qid in fold:
            if places.setdefault(qid, number) != number:
                both = f'in fold {places[qid]} and in fold {number}'
                raise MismatchError(f"topic '{qid}' is {both}: folds must be disjoint")
    return places


def check_cover(folds: Folds, qids: Sequence[str]) -> None:
    """Raise MismatchError unless the folds are disjoint and together hold exactly the topics `qids`."""
    places = fold_of(folds)
    uncovered = [qid for qid in qids if qid not in places]
    known = set(qids)
    unknown = [qid for qid in places if qid not in known]
    if uncovered:
        raise MismatchError(f'{_some(uncovered)} in no fold: folds must cover all topics')
    if unknown:
        raise MismatchError(f'{_some(unknown)} in a fold, but not among the topics')


def split_folds(folds: Folds) -> list[Split]:
    """A split for each fold: the fold tests, the one before it validates (the last before the first), the others train.

    CEDR section 3.1. Raises MismatchError for folds that are not disjoint.
    """
    fold_of(folds)
    splits = []
    for tested, fold in enumerate(folds):
        validating = (tested - 1) % len(folds)
        trained = [qid for number, own in enumerate(folds) if number not in (tested, validating) for qid in own]
        splits.append(Split(trained, list(folds[validating]), list(fold)))
    return splits


def join_runs(runs: Sequence[Mapping[str, Ranking]], folds: Folds) -> Run:
    """One run of all topics, fold by fold, from each fold's run on its own topics, in the order of `folds`.

    Raises
    ------
    MismatchError
        for a number of runs other than that of the folds, or a run with a topic of another fold
    """
    if len(runs) != len(folds):
        raise MismatchError(f'{len(runs)} runs and {len(folds)} folds were given: give one run a fold, in their order')
    places = fold_of(folds)
    joined: Run = {}
    for number, (run, fold) in enumerate(zip(runs, folds, strict=True), 1):
        for qid in run:
            if places.get(qid) != number:
                where = f'in fold {places[qid]}' if qid in places else 'in no fold'
                raise MismatchError(f"run {number} has topic '{qid}', which is {where}: runs follow the folds' order")
        joined |= {qid: run[qid] for qid in fold if qid in run}
    return joined


def _some(qids: Sequence[str]) -> str:
    if len(qids) == 1:
        return f"topic '{qids[0]}' is"
    return f'topics {", ".join(qids[:3])}{f" and {len(qids) - 3} more" if len(qids) > 3 else ""} are'
