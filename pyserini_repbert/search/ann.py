"""Approximate search with exact scores, and the building of approximate indexes.

Use it where exact search is too slow on a CPU: `build_ann` measures which share of the exact hits
is found, and writes no index that finds fewer than you ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.checksums import digest
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import locked
from pyserini_repbert.folder_forms import refuse_link
from pyserini_repbert.index.ann import (
    AGAIN,
    AnnIndex,
    AnnRecord,
    BundleAnnRecord,
    candidate_rows,
    write_ann,
)
from pyserini_repbert.index.ann_form import ANN, ANN_FORM, LOCK
from pyserini_repbert.index.ann_kinds import (
    MIN_VECTORS,
    AnnKind,
    Effort,
    efforts,
    factory,
    training_points,
)
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.manifest import MANIFEST
from pyserini_repbert.models.threads import faiss_threads
from pyserini_repbert.search.parts import Blocks
from pyserini_repbert.search.quick_exact import QuickIndex
from pyserini_repbert.search.scores import (
    NotFiniteError,
    TopRows,
    VectorShard,
    shard_pair_scores,
    top_rows,
)

# Queries whose candidates are in memory together.
_QUERY_GROUP = 256
RECALL = 0.98
HITS = 1000
# Queries on which recall is measured, where none are given.
SAMPLE = 200
# Noise that makes a query of a passage's vector, in standard deviations of each dimension.
_NOISE = 0.5
SEED = 0
# Vectors that are added at a time.
_ROWS = 65536


class SizedVectors(Blocks, Protocol):
    """Vectors whose length is known."""

    @property
    def settings(self) -> Any:
        """`dimension`, the length of a vector."""


class ShardedVectors(SizedVectors, Protocol):
    """Vectors in the rows of the shards of a bundle, or of a collection."""

    @property
    def folder(self) -> Path:
        """Where the index is."""

    @property
    def shards(self) -> Sequence[VectorShard]:
        """In the order of their rows."""


@dataclass(frozen=True)
class AnnSettings:
    """How an approximate index is built, and what it has to reach.

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

    Raises InputError for values that are none of these.
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


def search(
    bundle: DenseBundle, ann: AnnIndex[BundleAnnRecord], queries: NDArray[np.float32], k: int
) -> list[TopRows]:
    """The best of the candidates that an approximate index has for each query.

    Parameters
    ----------
    bundle : the vectors
    ann : their approximate index
    queries : float32 (n, d)
    k : how many; see `best_of` for ties
    """
    tops: list[TopRows] = []
    for start in range(0, len(queries), _QUERY_GROUP):
        group = queries[start : start + _QUERY_GROUP]
        candidates = ann.rows(group, min(k, len(bundle)))
        tops += best_of(bundle, group, candidates, k)
    return tops


def best_of(
    vectors: ShardedVectors, queries: NDArray[np.float32], rows: NDArray[np.int64], k: int
) -> list[TopRows]:
    """The k best of each query's candidates by exact inner product, and all that tie with the last.

    Parameters
    ----------
    vectors : of the index
    queries : float32 (n, d)
    rows : the candidates of each query, int64 (n, m), padded with -1
    k : how many

    Raises NotFiniteError where a score is not finite.
    """
    # Sorted, neighbouring rows are read together.
    rows = np.sort(rows, axis=1)
    owners, columns = np.nonzero(rows >= 0)
    candidates = rows[owners, columns]
    scores = shard_pair_scores(queries, vectors.shards, candidates, owners)
    if not np.isfinite(scores).all():
        raise NotFiniteError(f'index {vectors.folder}')
    ends = np.cumsum(np.bincount(owners, minlength=len(queries)))
    tops = []
    start = 0
    for end in ends.tolist():
        tops.append(top_rows(scores[start:end], candidates[start:end], k))
        start = end
    return tops


def build_ann(
    bundle: DenseBundle,
    settings: AnnSettings | None = None,
    *,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
) -> BundleAnnRecord:
    """Build a bundle's approximate index, with the cheapest setting that reaches the recall.

    Recall is the mean share of exact search's best passages that are found. The same bundle, kind
    and number of threads give the same bytes; for an HNSW, whose graph depends on the order in
    which threads add vectors, only one thread does.

    Parameters
    ----------
    bundle : the vectors
    settings : what it has to reach; default: 0.98 of exact search's 1,000 best passages
    overwrite : replace the bundle's approximate index
    on_progress : called with the number of vectors added since the last call

    Raises InputError where no setting reaches the recall; nothing is written then.
    """
    wanted = settings or AnnSettings()
    check_count(len(bundle), bundle.folder)
    with ann_lock(bundle.folder, overwrite):
        manifest = digest(bundle.folder / MANIFEST)
        built = make_ann(bundle, wanted, DenseRecall(bundle, wanted), on_progress=on_progress)
        record = BundleAnnRecord(**vars(built.record), manifest_sha256=manifest)
        check = partial(_check_manifest, bundle.folder, manifest)
        return write_ann(bundle.folder, built.index, record, check)


def _check_manifest(folder: Path, sha256: str) -> None:
    """Raises MismatchError for a bundle whose manifest is another one now."""
    if digest(folder / MANIFEST) != sha256:
        raise MismatchError(f'index {folder} was rebuilt meanwhile: {AGAIN}')


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

    Raises BusyError where another process builds it, InputError where it is there and must not be
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


class DenseRecall:
    """The recall of passages' vectors, one a passage, as a `RecallMeasure`.

    Parameters
    ----------
    vectors : of the passages
    settings : `queries` and `hits` are taken
    live : the rows that can be hits, bool (rows,); None: all
    """

    usual = AnnKind.PQ

    def __init__(
        self,
        vectors: ShardedVectors,
        settings: AnnSettings,
        live: NDArray[np.bool_] | None = None,
    ) -> None:
        self._vectors = vectors
        self._live = live
        n_live = len(vectors) if live is None else int(np.count_nonzero(live))
        self.hits = min(settings.hits, n_live)
        self.sample = settings.sample or 'queries'
        self.queries = settings.queries
        if self.queries is None:
            self.queries = _sample_queries(vectors)
            self.sample = f'passages with noise, seed {SEED}'

    @cached_property
    def _truth(self) -> list[TopRows]:
        return QuickIndex(self._vectors).search(self.queries, self.hits, self._live)

    def efforts(self, kind: AnnKind) -> Iterator[Effort]:
        return efforts(AnnKind(kind), len(self._vectors), self.hits)

    def recall(self, index: Any, kind: AnnKind, effort: Effort) -> float:
        chosen = AnnKind(kind)
        found = candidate_rows(index, chosen, self.queries, effort)
        candidates = allowed_rows(found, self._live)
        tops = best_of(self._vectors, self.queries, candidates, self.hits)
        return mean_recall(self._truth, tops, self.hits)


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
    settings : what it has to reach
    measure : of the recall
    on_progress : called with the number of vectors added since the last call

    Raises InputError where no setting reaches the recall.
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
        index.train(_drawn(vectors, training_points(kind, len(vectors))))
    for _, block in vectors.blocks(_ROWS):
        index.add(np.ascontiguousarray(block, dtype=np.float32))
        on_progress(len(block))
    return index


def _drawn(vectors: SizedVectors, n: int) -> NDArray[np.float32]:
    """n vectors drawn with a fixed seed, in the order of their rows: float32 (n, d)."""
    rows = np.sort(np.random.default_rng(SEED).choice(len(vectors), n, replace=False))
    parts = []
    for first, block in vectors.blocks(_ROWS):
        in_block = (rows >= first) & (rows < first + len(block))
        parts.append(block[rows[in_block] - first])
    return np.concatenate(parts).astype(np.float32)


def _sample_queries(vectors: SizedVectors) -> NDArray[np.float32]:
    """Queries to measure recall on: passages' vectors with noise, float32 (n, d)."""
    random = np.random.default_rng(SEED)
    drawn = _drawn(vectors, min(len(vectors), training_points(AnnKind.PQ, len(vectors))))
    rows = np.sort(random.choice(len(drawn), min(SAMPLE, len(drawn)), replace=False))
    chosen = drawn[rows]
    noise = random.standard_normal(chosen.shape, dtype=np.float32)
    queries: NDArray[np.float32] = chosen + _NOISE * drawn.std(axis=0) * noise
    return queries.astype(np.float32)


def allowed_rows(rows: NDArray[np.int64], allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Candidates, int64 (n, m), with -1 instead of those that are not allowed, bool (rows,)."""
    if allowed is None:
        return rows
    # A -1 stays what it is, whatever the last row is.
    return np.where((rows >= 0) & allowed[rows], rows, -1)


@dataclass(frozen=True)
class _MeasuredEffort:
    """A setting of the search, and the recall that it reaches."""

    effort: Effort
    recall: float


def _cheapest(measure: RecallMeasure, index: Any, kind: AnnKind, asked: float) -> _MeasuredEffort:
    """The first setting that reaches the recall that is asked for.

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


def mean_recall(truth: list[TopRows], tops: list[TopRows], hits: int) -> float:
    """The mean share of the `hits` best rows that were found, 0 to 1.

    Rows that tie with the last count as well. `truth` is what exact search found for each query,
    `tops` what is judged.
    """
    shares = [
        np.isin(top.rows[:hits], best.rows).sum() / min(hits, len(best.rows))
        for best, top in zip(truth, tops, strict=True)
    ]
    return float(np.mean(shares))
