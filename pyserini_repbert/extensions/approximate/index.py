"""An approximate index beside an index's shards: `ann/index.faiss`.

`ann/ann.json` describes it. The index finds candidates; their exact scores are computed from the
shards' own vectors. What an index belongs to is in the records of `bundles` and `covered`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pyserini_repbert.checksums import compare_digest, digest
from pyserini_repbert.data.values import MAX_COUNT
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extensions.approximate.form import ANN, ANN_FORM, CLEARED, INDEX, RECORD
from pyserini_repbert.extensions.approximate.kinds import (
    AnnKind,
    Effort,
    reading_flag,
    search_parameters,
)
from pyserini_repbert.files import atomic_folder
from pyserini_repbert.index.faiss_layout import read_faiss
from pyserini_repbert.index.manifest import read_record, signed
from pyserini_repbert.index.records import Count, Length, Name, Share
from pyserini_repbert.record import Sha256

AGAIN = 'build it again with `index ann`'
RECORD_CONFIG = ConfigDict(strict=True, extra='forbid', defer_build=True)


@dataclass(frozen=True, kw_only=True, config=RECORD_CONFIG)
class AnnRecord:
    """The record of an approximate index, `ann.json`, without the index it belongs to."""

    ann: AnnKind
    factory: Name  # the description given to FAISS's `index_factory`
    index_sha256: Sha256  # of `index.faiss`
    dimension: Length
    count: Count
    hits: Count  # the depth at which recall was measured
    candidates: Count  # rows requested from the index for up to `hits` hits
    parameter: Count | None  # `nprobe` of an IVF or `efSearch` of an HNSW; None for PQ
    recall: Share  # mean share of the exact top `hits` that the index finds
    asked: Share  # the least share accepted
    sample: Name  # a description of the queries that recall was measured on
    queries: Count  # their number
    format_version: Annotated[int, Field(ge=1, le=1)] = 1

    def __str__(self) -> str:
        """'pq (PQ192x4fs), 5000 candidates: recall@1000 0.9861 of exact search on 200 queries'"""
        parameter_names = {AnnKind.IVF: 'nprobe', AnnKind.HNSW: 'efSearch'}
        setting = f'{self.candidates} candidates'
        if self.ann in parameter_names:
            setting += f', {parameter_names[self.ann]} {self.parameter}'
        measured = (
            f'recall@{self.hits} {self.recall:.4f} of exact search on {self.queries} queries '
            f'({self.sample})'
        )
        return f'{self.ann} ({self.factory}), {setting}: {measured}'


RecordT = TypeVar('RecordT', bound=AnnRecord)


class AnnIndex(Generic[RecordT]):
    """An approximate index, opened.

    HNSW graphs and IVF lists are memory-mapped; PQ codes, which every query scans, are loaded.

    Parameters
    ----------
    folder : of the index, 'ann'
    record : what the index must match
    verify : compare the index file with its sha256
    remembered : trust a checksum computed before, as long as the file seems untouched

    Raises DamagedFileError for a file that is missing or is not as its record says.
    """

    def __init__(
        self, folder: Path, record: RecordT, verify: bool = True, remembered: bool = True
    ) -> None:
        self.record = record
        path = folder / INDEX
        if verify or not path.is_file():
            with advising():
                compare_digest(path, record.index_sha256, folder / RECORD, remembered)
        self._path = path
        self._index = read_faiss(path, AGAIN, reading_flag(record.ann))
        shape = (self._index.ntotal, self._index.d)
        expected = (record.count, record.dimension)
        if shape != expected:
            raise DamagedFileError(
                f'{path} holds vectors of shape {shape}, its record says {expected}: {AGAIN}'
            )

    def rows(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Candidates for the k best of each query, float32 (n, d).

        They are rows, int64 (n, m), padded with -1. The recorded search setting holds up to the
        depth at which recall was measured; beyond it, the number of candidates and the parameter
        grow in proportion to k.

        Raises DamagedFileError for an index of another kind, or one that gives other rows.
        """
        record = self.record
        scale = max(k / record.hits, 1)
        parameter = record.parameter and math.ceil(record.parameter * scale)
        if parameter is not None:
            parameter = min(MAX_COUNT, parameter)
        effort = Effort(min(record.count, math.ceil(record.candidates * scale)), parameter)
        try:
            return candidate_rows(self._index, record.ann, queries, effort)
        except RuntimeError as error:
            raise DamagedFileError(
                f'{self._path} is not of the kind that its record names, {record.ann}: {AGAIN}'
            ) from error


def read_ann_record(folder: Path, kind: type[RecordT]) -> RecordT:
    """The record of the approximate index in the folder of an index.

    Raises InputError if there is none, and DamagedFileError for an incomplete record.
    """
    if not (folder / ANN).exists():
        raise InputError(f'index {folder} has no approximate index: build it with `index ann`')
    with advising():
        return read_record(folder / ANN / RECORD, kind, is_signed=True)


@contextmanager
def advising() -> Iterator[None]:
    """A context whose errors about damaged files say what builds the index again."""
    try:
        yield
    except DamagedFileError as error:
        raise DamagedFileError(f'{error} with `index ann`') from error


def candidate_rows(
    index: Any, kind: AnnKind, queries: NDArray[np.float32], effort: Effort
) -> NDArray[np.int64]:
    """The rows that a FAISS index finds, int64 (n, candidates), padded with -1.

    Parameters
    ----------
    index : of FAISS
    kind : its kind
    queries : float32 (n, d)
    effort : how much is looked at

    Raises DamagedFileError for an index that gives a row that it does not have.
    """
    chosen = AnnKind(kind)
    parameters = search_parameters(chosen, effort.parameter)
    rows: NDArray[np.int64]
    _, rows = index.search(queries, effort.candidates, params=parameters)
    if rows.max(initial=-1) >= index.ntotal:
        raise DamagedFileError(
            f'the approximate index gives row {rows.max()}, it has {index.ntotal}: {AGAIN}'
        )
    return rows


def write_ann(
    folder: Path, index: Any, record: RecordT, check: Callable[[], object] = bool
) -> RecordT:
    """Write a FAISS index and its record into the folder of an index, atomically.

    An earlier index is replaced only when the new one is complete. The caller holds the lock file
    `LOCK`.

    Parameters
    ----------
    folder : of the index that gets it
    index : of FAISS
    record : its values, except for the sha256 of its file
    check : called last; an error that it raises leaves the index before

    Returns the record as written.
    """
    import faiss

    target = folder / ANN
    # A killed process may have left one.
    ANN_FORM.remove(folder / CLEARED)
    with atomic_folder(target) as written:
        faiss.write_index(index, str(written / INDEX))
        record = replace(record, index_sha256=digest(written / INDEX))
        (written / RECORD).write_text(signed(record), encoding='utf-8', newline='\n')
        check()
        if target.exists():
            target.rename(folder / CLEARED)
    ANN_FORM.remove(folder / CLEARED)
    return record
