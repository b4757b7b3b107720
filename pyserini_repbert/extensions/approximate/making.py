"""Making an approximate index of vectors: with the cheapest setting that reaches a recall."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.approximate.form import ANN, ANN_FORM, LOCK
from pyserini_repbert.extensions.approximate.index import AnnRecord
from pyserini_repbert.extensions.approximate.kinds import (
    MIN_VECTORS,
    AnnKind,
    Effort,
    factory,
    training_points,
)
from pyserini_repbert.files import locked
from pyserini_repbert.folder_forms import refuse_link
from pyserini_repbert.models.threads import faiss_threads
from pyserini_repbert.search.parts import Blocks

RECALL = 0.98
HITS = 1000
SEED = 0
# Vectors that are added at a time.
_ROWS = 65536


class SizedVectors(Blocks, Protocol):
    """Vectors whose length is known."""

    @property
    def settings(self) -> Any:
        """`dimension`, the length of a vector."""


@dataclass(frozen=True)
class AnnSettings:
    """How an approximate index is built, and the recall to reach.

    Attributes
    ----------
    kind : 'pq', 'hnsw' or 'ivf', see `AnnKind`; None: 'pq', or 'ivf' for vectors of tokens
    recall : the least that is accepted, above 0, at most 1
    hits : the depth at which recall is measured; reduced to the number of passages
    queries : to measure on, as the ranking encodes them: float32 (n, d) of dense vectors; default:
        the vectors of 200 passages drawn with a fixed seed, each with Gaussian noise of half the
        standard deviation of each dimension
    sample : a description of `queries`, for the record
    threads : of FAISS

    Raises InputError for other values.
    """

    kind: AnnKind | str | None = None
    recall: float = RECALL
    hits: int = HITS
    queries: Any = None
    sample: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        if self.kind is not None:
            AnnKind(self.kind)
        if not 0 < self.recall <= 1 or self.hits < 1:
            raise InputError(
                f'recall {self.recall} at {self.hits} hits was asked for, expected a recall above '
                '0, at most 1, at 1 hit or more'
            )
        if self.queries is not None and not len(self.queries):
            raise InputError(
                'no queries were given to measure recall on: give some, or leave them out'
            )


@dataclass(frozen=True)
class BuiltAnn:
    """An approximate index in memory, of FAISS, and its record except for the sha256 of its
    file.
    """

    index: Any
    record: AnnRecord


class RecallMeasure(Protocol):
    """Measures which share of exact search's hits an index of FAISS finds.

    Attributes
    ----------
    usual : the kind of index, unless a user says
    hits : the depth
    queries : those that are searched
    sample : a description of them
    """

    usual: AnnKind
    hits: int
    queries: Sequence[Any]
    sample: str

    def efforts(self, kind: AnnKind) -> Iterator[Effort]:
        """The settings to try, cheapest first."""

    def recall(self, index: Any, kind: AnnKind, effort: Effort) -> float:
        """The mean share that is found with a setting, 0 to 1."""


def check_count(count: int, folder: Path) -> None:
    """Raises InputError for an index of too few vectors to have an approximate one."""
    if count < MIN_VECTORS:
        raise InputError(
            f'index {folder} has {count} vectors, an approximate index '
            f'needs at least {MIN_VECTORS}: use exact search'
        )


@contextmanager
def ann_lock(folder: Path, overwrite: bool) -> Iterator[None]:
    """A context in which this process alone builds the approximate index of the index `folder`.

    Raises BusyError if another process builds it, InputError if it is there and must not be
    replaced, or holds what this package does not write.
    """
    with locked(folder / LOCK, f'the approximate index of {folder}'):
        if (folder / ANN).exists() and not overwrite:
            raise InputError(
                f'index {folder} has an approximate index: replace it', parameters=('overwrite',)
            )
        refuse_link(folder / ANN)
        ANN_FORM.check(folder / ANN)
        yield


def make_ann(
    vectors: SizedVectors,
    settings: AnnSettings,
    measure: RecallMeasure,
    on_progress: Callable[[int], object] = int,
) -> BuiltAnn:
    """An approximate index of vectors, in memory, with the cheapest setting that reaches a recall.

    Parameters
    ----------
    vectors : all rows are added to it
    settings : the recall to reach
    measure : of the recall
    on_progress : called with the number of vectors added since the last call

    Raises InputError if no setting reaches the recall.
    """
    kind = AnnKind(settings.kind or measure.usual)
    count = len(vectors)
    with faiss_threads(settings.threads):
        index = _filled(vectors, kind, settings.threads, on_progress)
        chosen = _cheapest(measure, index, kind, settings.recall)
    record = AnnRecord(
        ann=kind,
        factory=factory(kind, vectors.settings.dimension, count),
        index_sha256='0' * 64,
        dimension=vectors.settings.dimension,
        count=count,
        hits=measure.hits,
        candidates=chosen.effort.candidates,
        parameter=chosen.effort.parameter,
        recall=chosen.recall,
        asked=float(settings.recall),
        sample=measure.sample,
        queries=len(measure.queries),
    )
    return BuiltAnn(index, record)


def _filled(
    vectors: SizedVectors, kind: AnnKind, threads: int, on_progress: Callable[[int], object]
) -> Any:
    import faiss

    dimension = vectors.settings.dimension
    description = factory(kind, dimension, len(vectors))
    index = faiss.index_factory(dimension, description, faiss.METRIC_INNER_PRODUCT)
    # The many small k-means of a product quantiser are far slower with several threads.
    with faiss_threads(1 if kind is AnnKind.PQ else threads):
        index.train(drawn_vectors(vectors, training_points(kind, len(vectors))))
    for _, block in vectors.blocks(_ROWS):
        index.add(np.ascontiguousarray(block, dtype=np.float32))
        on_progress(len(block))
    return index


def drawn_vectors(vectors: SizedVectors, n: int) -> NDArray[np.float32]:
    """n vectors drawn with a fixed seed, in the order of their rows: float32 (n, d)."""
    rows = np.sort(np.random.default_rng(SEED).choice(len(vectors), n, replace=False))
    parts = []
    for first, block in vectors.blocks(_ROWS):
        in_block = (rows >= first) & (rows < first + len(block))
        parts.append(block[rows[in_block] - first])
    return np.concatenate(parts).astype(np.float32)


@dataclass(frozen=True)
class _MeasuredEffort:
    """A setting of the search, and the recall that it reaches."""

    effort: Effort
    recall: float


def _cheapest(measure: RecallMeasure, index: Any, kind: AnnKind, asked: float) -> _MeasuredEffort:
    """The first setting that reaches the requested recall.

    Raises InputError if none does.
    """
    best = 0.0
    for effort in measure.efforts(kind):
        reached = measure.recall(index, kind, effort)
        if reached >= asked:
            return _MeasuredEffort(effort, reached)
        best = max(best, reached)
    raise InputError(
        f"an index of kind '{kind}' reaches recall@{measure.hits} {best:.4f} of exact search, but "
        f'{asked} was asked for: ask for less, or choose another kind',
        parameters=('recall', 'kind'),
    )
