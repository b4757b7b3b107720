"""Data sets of ir_datasets by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyserini_repbert.errors import UnknownNameError, needs

IR_DATASETS = 'ir_datasets:'


def dataset(spec: str) -> Any:
    """The data set of `ir_datasets:ID`.

    Raises UnknownNameError for an id that ir_datasets does not have.
    """
    with needs('ir_datasets', spec, 'datasets'):
        import ir_datasets
    load: Callable[[str], Any] = ir_datasets.load
    name = spec.removeprefix(IR_DATASETS)
    try:
        return load(name)
    except KeyError as error:
        raise UnknownNameError(
            f"ir_datasets has no '{name}': see https://ir-datasets.com"
        ) from error
