"""Whether a model's files name sizes that its weights can have.

transformers builds a model before it reads the weights. A config.json with a hundred million layers
would keep it busy for minutes, and one with a great hidden size takes all memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.data.values import read_object
from pyserini_repbert.errors import DamagedFileError

# Keys of how many parts a model has; each part has at least one tensor.
_PARTS = re.compile(r'layers?$|(^|_)n(um)?_(hidden_)?(layers?|experts|groups|blocks)')
# Keys of a dimension of tensors.
_WIDTHS = re.compile(
    r'(vocab|hidden|intermediate|embedding|mem|cell)_size$|(^|_)dim(ension)?$|^d_|_heads$|'
    r'(in|out)_features$|^(out_)?channels$'
)
# Some weights are packed, or parts of them are joined: a dimension may be so many times as long.
_FACTOR = 16
# Smaller sizes cost little, whatever the weights are.
_SMALL_WIDTH = 1024
_SMALL_COUNT = 100


@dataclass(frozen=True)
class _Extent:
    """How many tensors a model has, and the length of their longest dimension."""

    n_tensors: int
    longest: int


def check_sizes(folder: Path) -> None:
    """Raises DamagedFileError for a model with a size that its weights cannot have.

    A folder without weights in safetensors, which cannot be opened, is passed over.
    """
    extent = _extent(folder)
    if extent is None:
        return
    most_parts = max(_SMALL_COUNT, extent.n_tensors)
    widest = max(_SMALL_WIDTH, _FACTOR * extent.longest)
    for path in sorted(folder.rglob('*config.json')):
        for key, size in _whole_numbers(read_object(path)):
            most = None
            if _WIDTHS.search(key):
                most = widest
            elif _PARTS.search(key):
                most = most_parts
            if most is not None and size > most:
                raise DamagedFileError(
                    f'{path} has {key} {size}, and its weights are {extent.n_tensors} tensors of '
                    f'at most {extent.longest} rows or columns: fetch the model again'
                )


def _extent(folder: Path) -> _Extent | None:
    """The extent of the weights in a folder and its modules; None if there are none."""
    from safetensors import SafetensorError, safe_open

    n_tensors = 0
    longest = 0
    files = sorted(folder.rglob('*.safetensors'))
    for path in files:
        try:
            with safe_open(path, framework='numpy') as tensors:
                for name in tensors.keys():  # noqa: SIM118 - it is not a mapping
                    n_tensors += 1
                    longest = max(longest, *tensors.get_slice(name).get_shape(), 1)
        except SafetensorError as error:
            raise DamagedFileError(
                f'{path} is damaged ({error}): fetch the checkpoint again'
            ) from error
    return _Extent(n_tensors, longest) if files else None


def _whole_numbers(values: Any, key: str = '') -> Iterator[tuple[str, int]]:
    """(key, number) of each integer in JSON, however deep."""
    if isinstance(values, dict):
        for name, value in values.items():
            yield from _whole_numbers(value, name)
    elif isinstance(values, list):
        for value in values:
            yield from _whole_numbers(value, key)
    elif isinstance(values, (int, float)) and not isinstance(values, bool) and values > 0:
        # JSON does not tell integers from other numbers: 1e8 is also one.
        yield key, min(2**63, int(min(values, 2.0**63)))
