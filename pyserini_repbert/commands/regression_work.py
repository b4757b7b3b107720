"""The conditions that a user chooses, the workspaces of their commands, and the flags for both."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from pyserini_repbert.regression.schema import Condition, Regression
    from pyserini_repbert.regression.workspace import Workspace

    Work = list[tuple[Regression, list[tuple[Condition, Workspace]]]]


FOLDER = 'regressions'  # whose files commands take if none is named
DATA_VARIABLE = 'PYSERINI_REPBERT_DATA'
DATA = '../shared/data'
WORK = 'runs/regressions'


def add_folders(parser: argparse.ArgumentParser) -> None:
    """Add --data, where collections are found, and --work, where the commands write."""
    data = os.environ.get(DATA_VARIABLE, DATA)
    parser.add_argument(
        '--data', default=data, metavar='FOLDER', help=f'collections and run files; ${DATA_VARIABLE} sets the default'
    )
    parser.add_argument('--work', default=WORK, metavar='FOLDER', help='for what the commands make')


def all_files() -> list[str]:
    """The regression files below the working folder, which has to be the project's root, sorted."""
    return sorted(str(path) for path in Path(FOLDER).glob('*.yaml'))


def read_work(paths: Sequence[str], options: argparse.Namespace, version: str = '') -> Work:
    """The regressions of these files with the conditions that `options.condition` chooses, all for an empty list.

    `version` is of code and packages: cached results of other versions are not used.
    """
    from pyserini_repbert.catalog import did_you_mean
    from pyserini_repbert.regression.reading import read_regression
    from pyserini_repbert.regression.workspace import Workspace

    if not paths:
        raise InputError(f'no files were given, and {FOLDER}/ is not here: name them')
    work: Work = []
    names: list[str] = []
    for path in paths:
        regression = read_regression(path)
        names += [condition.name for condition in regression.conditions]
        workspace = Workspace(regression, Path(options.work), options.data, version)
        chosen = [own for own in regression.conditions if not options.condition or own.name in options.condition]
        if chosen:
            work.append((regression, [(condition, workspace) for condition in chosen]))
    for name in options.condition:
        if name not in names:
            raise UnknownNameError(f"'{name}' is no condition of these files{did_you_mean(name, names)}: see --list")
    return work
