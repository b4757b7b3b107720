"""An approximate index beside a dense bundle's shards: `ann/index.faiss`.

`ann/ann.json` describes it. The index finds candidates; their exact scores are computed from the
bundle's own vectors. The record pins the sha256 of the bundle's manifest: the index belongs to that
bundle alone.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from pyserini_repbert.checksums import compare_digest, digest
from pyserini_repbert.errors import DamagedFileError, InputError, MismatchError
from pyserini_repbert.files import atomic_folder
from pyserini_repbert.index.ann_kinds import AnnKind, Effort, read_faiss, search_parameters
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.manifest import MANIFEST, read_record, signed
from pyserini_repbert.index.records import Count, Length, Name, Share
from pyserini_repbert.models.forking import usable_threads
from pyserini_repbert.record import Sha256

ANN = 'ann'
INDEX = 'index.faiss'
RECORD = 'ann.json'
CLEARED = '.ann-cleared'  # a replaced index until it is removed
LOCK = '.ann.lock'
_AGAIN = 'build it again with `index ann`'


@dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid'))
class AnnRecord:
    """The record of an approximate index, `ann.json`."""

    ann: AnnKind
    factory: Name  # the description given to FAISS's `index_factory`
    manifest_sha256: Sha256  # of the bundle's
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


class AnnIndex:
    """The approximate index of a dense bundle, opened.

    HNSW graphs and IVF lists are memory-mapped; PQ codes, which every query scans, are loaded.
    `verify` compares the index file with its sha256; `remembered` trusts a checksum computed
    before, as long as the file seems untouched.
    """

    def __init__(self, bundle: DenseBundle, verify: bool = True, remembered: bool = True) -> None:
        folder = bundle.folder / ANN
        if not folder.exists():
            raise InputError(
                f'index {bundle.folder} has no approximate index: build it with `index ann`'
            )
        path = folder / INDEX
        try:
            self.record = read_record(folder / RECORD, AnnRecord, is_signed=True)
            if self.record.manifest_sha256 != digest(bundle.folder / MANIFEST):
                raise MismatchError(
                    f'{folder} belongs to another index, or to what this one was before: {_AGAIN}'
                )
            if verify or not path.is_file():
                compare_digest(path, self.record.index_sha256, folder / RECORD, remembered)
        except DamagedFileError as error:
            raise DamagedFileError(f'{error} with `index ann`') from error
        self._index = read_faiss(path, _AGAIN, self.record.ann)
        shape = (self._index.ntotal, self._index.d)
        expected = (len(bundle), bundle.settings.dimension)
        if shape != expected:
            raise DamagedFileError(
                f'{path} holds vectors of shape {shape}, its index of {expected}: {_AGAIN}'
            )

    def rows(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Candidates for the k best of each query, float32 (n, d).

        They are rows, int64 (n, m), padded with -1. The recorded search setting holds up to the
        depth at which recall was measured; beyond it, the number of candidates and the parameter
        grow in proportion to k.
        """
        record = self.record
        scale = max(k / record.hits, 1)
        parameter = record.parameter and math.ceil(record.parameter * scale)
        effort = Effort(min(record.count, math.ceil(record.candidates * scale)), parameter)
        return candidate_rows(self._index, record.ann, queries, effort)


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
    """
    parameters = search_parameters(kind, effort.parameter)
    rows: NDArray[np.int64]
    _, rows = index.search(queries, effort.candidates, params=parameters)
    return rows


@contextmanager
def faiss_threads(threads: int) -> Iterator[None]:
    """A context in which FAISS uses `threads` threads; 0 leaves its own setting."""
    import faiss

    before = faiss.omp_get_max_threads()
    if threads:
        faiss.omp_set_num_threads(usable_threads(threads))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def write_ann(folder: Path, index: Any, record: AnnRecord) -> AnnRecord:
    """Write a FAISS index and its record into the bundle `folder`, atomically.

    An earlier index is replaced only when the new one is complete. The caller holds the lock file
    `LOCK`. Returns the record as written.
    """
    import faiss

    target = folder / ANN
    # A killed process may have left one.
    shutil.rmtree(folder / CLEARED, ignore_errors=True)
    with atomic_folder(target) as written:
        faiss.write_index(index, str(written / INDEX))
        record = replace(record, index_sha256=digest(written / INDEX))
        (written / RECORD).write_text(signed(record), encoding='utf-8', newline='\n')
        if digest(folder / MANIFEST) != record.manifest_sha256:
            raise MismatchError(f'index {folder} was built anew meanwhile: {_AGAIN}')
        if target.exists():
            target.rename(folder / CLEARED)
    shutil.rmtree(folder / CLEARED, ignore_errors=True)
    return record
