"""What a collection keeps of the fixed questions: the file `off_topic.safetensors`.

It has what the encoder makes of them, the best rows of each shard, and the threshold of one
generation. If it is missing or damaged, nothing is claimed until the next generation writes it
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from pyserini_repbert.collection.shards import ShardName
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.extensions.off_topic.best_passages import N_ROWS, BestRows
from pyserini_repbert.extensions.off_topic.file import FILE, N_QUESTIONS
from pyserini_repbert.extensions.off_topic.fixed_vectors import FixedVectors
from pyserini_repbert.extensions.off_topic.threshold import OF_WORDS
from pyserini_repbert.files import atomic_file

_RECORD = 'record'
_BACKGROUND = 'background'
_ANSWERS = 'answers'


@checked_dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid'))
class KeptRecord:
    """What the file says of itself.

    Attributes
    ----------
    model : `CollectionSettings.model_key` in hexadecimal: whose vectors they are
    dimension : of these
    generation : sha256 of the generation to which the threshold belongs
    threshold : of the score of a question's best passage above its background
    shards : the names of those whose best rows follow
    """

    model: str
    dimension: Annotated[int, Field(ge=1)]
    generation: str
    threshold: Annotated[float, Field(allow_inf_nan=False)]
    shards: tuple[ShardName, ...]


@dataclass(frozen=True)
class Threshold:
    """By what a question is known that is not about a collection.

    Attributes
    ----------
    value : its best passage has a lower score above its background
    answer : the median of the same of right answers to the fixed questions
    background : as in `FixedVectors`
    """

    value: float
    answer: float
    background: NDArray[np.float32]

    def with_words(self, share: float) -> float:
        """The threshold for a question, if one hit has such a share of its words."""
        return self.value - OF_WORDS * share * (self.answer - self.value)


@dataclass(frozen=True)
class KeptQuestions:
    """All that a collection keeps."""

    record: KeptRecord
    vectors: FixedVectors
    shards: Mapping[str, BestRows]


_FORM = TypeAdapter(KeptRecord)


def write_kept(folder: Path, kept: KeptQuestions) -> None:
    """Write the file of a collection; until it is complete, readers get the one before."""
    arrays = {}
    for field in fields(FixedVectors):
        arrays[field.name] = np.ascontiguousarray(getattr(kept.vectors, field.name), np.float32)
    arrays['rows'] = np.array([kept.shards[name].rows for name in kept.record.shards])
    arrays['scores'] = np.array([kept.shards[name].scores for name in kept.record.shards])
    record = _FORM.dump_json(kept.record).decode()
    with atomic_file(folder / FILE, 'wb') as file:
        file.write(save(arrays, {_RECORD: record}))


def read_threshold(folder: Path, generation: str) -> Threshold | None:
    """The threshold of a generation, by its sha256; None if there is none.

    Raises DamagedFileError for a file that differs from what was written.
    """
    try:
        written = (folder / FILE).stat().st_mtime_ns
    except FileNotFoundError:
        return None
    of_generation = _read_threshold(folder, written)
    if of_generation is None or of_generation.generation != generation:
        return None
    return of_generation.threshold


@dataclass(frozen=True)
class _ThresholdOfGeneration:
    generation: str
    threshold: Threshold


# A service asks it of each question.
@lru_cache(maxsize=64)
def _read_threshold(folder: Path, written: int) -> _ThresholdOfGeneration | None:
    """What the file has that was written then, in nanoseconds."""
    kept = _read(folder, names=[_BACKGROUND, _ANSWERS])
    if kept is None:
        return None
    threshold = Threshold(
        value=kept.record.threshold,
        # NumPy's median imports masked arrays, which takes longer than all else here.
        answer=median(kept.arrays[_ANSWERS].tolist()),
        background=kept.arrays[_BACKGROUND],
    )
    return _ThresholdOfGeneration(kept.record.generation, threshold)


def read_kept(folder: Path) -> KeptQuestions | None:
    """All that a collection keeps; None if there is no file. Raises as `read_threshold`."""
    names = [field.name for field in fields(FixedVectors)]
    kept = _read(folder, [*names, 'rows', 'scores'])
    if kept is None:
        return None
    vectors = FixedVectors(**{name: kept.arrays[name] for name in names})
    rows = zip(kept.arrays['rows'], kept.arrays['scores'], strict=True)
    shards = {}
    for name, (own_rows, own_scores) in zip(kept.record.shards, rows, strict=True):
        shards[name] = BestRows(own_rows, own_scores)
    return KeptQuestions(kept.record, vectors, shards)


@dataclass(frozen=True)
class _FileParts:
    """The values read from the file."""

    record: KeptRecord
    arrays: Mapping[str, NDArray[np.float32]]


def _read(folder: Path, names: list[str]) -> _FileParts | None:
    """The record and some arrays of the file; None if there is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    arrays = {}
    try:
        with safe_open(path, 'numpy') as file:
            record = _FORM.validate_json((file.metadata() or {}).get(_RECORD, ''))
            shapes = _shapes(record)
            for name in names:
                array = file.get_tensor(name)
                if array.shape != shapes[name] or array.dtype != _dtype(name):
                    raise _damage(path)
                arrays[name] = array
    except (SafetensorError, ValidationError, OSError) as error:
        raise _damage(path) from error
    return _FileParts(record, arrays)


def _shapes(record: KeptRecord) -> dict[str, tuple[int, ...]]:
    """The shape of each array."""
    of_rows = (len(record.shards), N_QUESTIONS, N_ROWS)
    return {
        'questions': (N_QUESTIONS, record.dimension),
        _BACKGROUND: (record.dimension,),
        'backgrounds': (N_QUESTIONS,),
        _ANSWERS: (N_QUESTIONS,),
        'rows': of_rows,
        'scores': of_rows,
    }


def _dtype(name: str) -> np.dtype[np.generic]:
    return np.dtype(np.int32 if name == 'rows' else np.float32)


def _damage(path: Path) -> DamagedFileError:
    return DamagedFileError(f'{path} differs from what was written: remove it, and sync again')
