"""The approximate index of a dense bundle, which belongs only to that bundle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass

from pyserini_repbert.checksums import digest
from pyserini_repbert.errors import DamagedFileError, MismatchError
from pyserini_repbert.extensions.approximate.dense_candidates import (
    QUERY_GROUP,
    DenseRecall,
    best_of,
)
from pyserini_repbert.extensions.approximate.form import ANN, RECORD
from pyserini_repbert.extensions.approximate.index import (
    AGAIN,
    RECORD_CONFIG,
    AnnIndex,
    AnnRecord,
    read_ann_record,
    write_ann,
)
from pyserini_repbert.extensions.approximate.making import (
    AnnSettings,
    ann_lock,
    check_count,
    make_ann,
)
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.manifest import MANIFEST
from pyserini_repbert.models.threads import faiss_threads
from pyserini_repbert.record import Sha256
from pyserini_repbert.search.scores import TopRows


@dataclass(frozen=True, kw_only=True, config=RECORD_CONFIG)
class BundleAnnRecord(AnnRecord):
    """The record of a bundle's approximate index."""

    manifest_sha256: Sha256  # of the bundle's


def build_bundle_ann(
    bundle: DenseBundle,
    settings: AnnSettings,
    overwrite: bool,
    on_progress: Callable[[int], object],
) -> BundleAnnRecord:
    """Build a bundle's approximate index, with the cheapest setting that reaches the recall.

    Recall is the mean share of exact search's best passages that are found. The same bundle, kind
    and number of threads give the same bytes; for an HNSW, whose graph depends on the order in
    which threads add vectors, only one thread does.

    Parameters
    ----------
    bundle : the vectors
    settings : the recall to reach
    overwrite : replace the bundle's approximate index
    on_progress : called with the number of vectors added since the last call

    Raises InputError if no setting reaches the recall; nothing is written then.
    """
    check_count(len(bundle), bundle.folder)
    with ann_lock(bundle.folder, overwrite):
        manifest = digest(bundle.folder / MANIFEST)
        built = make_ann(bundle, settings, DenseRecall(bundle, settings), on_progress=on_progress)
        record = BundleAnnRecord(**vars(built.record), manifest_sha256=manifest)
        check = partial(_check_manifest, bundle.folder, manifest)
        return write_ann(bundle.folder, built.index, record, check)


def _check_manifest(folder: Path, sha256: str) -> None:
    """Raises MismatchError for a bundle whose manifest is another one now."""
    if digest(folder / MANIFEST) != sha256:
        raise MismatchError(f'index {folder} was rebuilt meanwhile: {AGAIN}')


def open_ann(
    bundle: DenseBundle, verify: bool = True, remembered: bool = True
) -> AnnIndex[BundleAnnRecord]:
    """The approximate index of a dense bundle.

    `verify` and `remembered` are as in `AnnIndex`. Raises InputError if there is none,
    MismatchError for another bundle's, DamagedFileError as `AnnIndex`.
    """
    folder = bundle.folder / ANN
    record = read_ann_record(bundle.folder, BundleAnnRecord)
    if record.manifest_sha256 != digest(bundle.folder / MANIFEST):
        raise MismatchError(
            f'{folder} belongs to another index, or to what this one was before: {AGAIN}'
        )
    shape = (len(bundle), bundle.settings.dimension)
    if (record.count, record.dimension) != shape:
        raise DamagedFileError(
            f'{folder / RECORD} is of vectors of shape {(record.count, record.dimension)}, its '
            f'index has {shape}: {AGAIN}'
        )
    return AnnIndex(folder, record, verify, remembered)


class BundleAnn:
    """Approximate search of a bundle, as a `BundleScan`.

    Parameters
    ----------
    bundle : the vectors
    verify : compare the files of its index with their checksums

    Raises InputError for a bundle without an approximate index, and as `open_ann`.
    """

    def __init__(self, bundle: DenseBundle, verify: bool = True) -> None:
        self._bundle = bundle
        self.index = open_ann(bundle, verify)
        self.record = self.index.record
        self.name = ANN
        self.sha256 = self.record.index_sha256

    def search(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """The k best of the candidates for each query, float32 (n, d); see `best_of` for ties."""
        tops: list[TopRows] = []
        for start in range(0, len(queries), QUERY_GROUP):
            group = queries[start : start + QUERY_GROUP]
            candidates = self.index.rows(group, min(k, len(self._bundle)))
            tops += best_of(self._bundle, group, candidates, k)
        return tops

    def computing_in(self, threads: int) -> contextlib.AbstractContextManager[None]:
        """As in `OpenScan`."""
        return faiss_threads(threads)
