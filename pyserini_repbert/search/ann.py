"""Approximate search with exact scores, and the building of approximate indexes.

Use it where exact search is too slow on a CPU: `build_ann` measures which share of the exact hits
is found, and writes no index that finds fewer than you ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.checksums import digest
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import locked
from pyserini_repbert.index.ann import (
    ANN,
    LOCK,
    AnnIndex,
    AnnRecord,
    candidate_rows,
    faiss_threads,
    write_ann,
)
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
from pyserini_repbert.search import products
from pyserini_repbert.search.exact import ExactIndex, TopRows, top_rows

# Queries whose candidates are in memory together.
_QUERY_GROUP = 256
RECALL = 0.98
HITS = 1000
# Queries on which recall is measured, where none are given.
SAMPLE = 200
# Noise that makes a query of a passage's vector, in standard deviations of each dimension.
_NOISE = 0.5
_SEED = 0
# Vectors that are added at a time.
_ROWS = 65536


def search(
    bundle: DenseBundle, ann: AnnIndex, queries: NDArray[np.float32], k: int
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
    bundle: DenseBundle, queries: NDArray[np.float32], rows: NDArray[np.int64], k: int
) -> list[TopRows]:
    """The k best of each query's candidates by exact inner product, and all that tie with the last.

    Parameters
    ----------
    bundle : the vectors
    queries : float32 (n, d)
    rows : the candidates of each query, int64 (n, m), padded with -1
    k : how many
    """
    # Sorted, neighbouring rows are read together.
    rows = np.sort(rows, axis=1)
    scores = np.empty(rows.shape, np.float32)
    start = 0
    for shard in bundle.shards:
        end = start + len(shard.docids)
        here = np.nonzero((rows >= start) & (rows < end))
        scores[here] = products.pair_scores(queries, shard.vectors, rows[here] - start, here[0])
        start = end
    return [
        top_rows(values[real], row[real], k)
        for values, row, real in zip(scores, rows, rows >= 0, strict=True)
    ]


def build_ann(
    bundle: DenseBundle,
    kind: str = AnnKind.PQ,
    recall: float = RECALL,
    hits: int = HITS,
    queries: NDArray[np.float32] | None = None,
    sample: str | None = None,
    threads: int = 1,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
) -> AnnRecord:
    """Build a bundle's approximate index, with the cheapest setting that reaches `recall`.

    Recall is the mean share of exact search's `hits` best passages that are found. The same bundle,
    kind and number of threads give the same bytes; for an HNSW, whose graph depends on the order in
    which threads add vectors, only one thread does.

    Parameters
    ----------
    bundle : the vectors
    kind : 'pq', 'hnsw' or 'ivf', see `AnnKind`
    recall : the least that is accepted, above 0, at most 1
    hits : the depth at which recall is measured; reduced to the number of passages
    queries : float32 (n, d) to measure on; default: the vectors of 200 passages drawn with a fixed
        seed, each with Gaussian noise of half the standard deviation of each dimension
    sample : a description of `queries`, for the record
    threads : of FAISS
    overwrite : replace the bundle's approximate index
    on_progress : called with the number of vectors added since the last call

    Raises InputError where no setting reaches `recall`; nothing is written then.
    """
    chosen = AnnKind(kind)
    if not 0 < recall <= 1 or hits < 1:
        raise InputError(
            f'recall {recall} at {hits} hits was asked for, expected a recall above 0, '
            'at most 1, at 1 hit or more'
        )
    if queries is not None and not len(queries):
        raise InputError('no queries were given to measure recall on: give some, or leave them out')
    if len(bundle) < MIN_VECTORS:
        raise InputError(
            f'index {bundle.folder} has {len(bundle)} vectors, an approximate index '
            f'needs at least {MIN_VECTORS}: use exact search'
        )
    with locked(bundle.folder / LOCK, f'the approximate index of {bundle.folder}'):
        if (bundle.folder / ANN).exists() and not overwrite:
            raise InputError(
                f'index {bundle.folder} has an approximate index: replace it',
                parameters=('overwrite',),
            )
        manifest = digest(bundle.folder / MANIFEST)
        with faiss_threads(threads):
            hits = min(hits, len(bundle))
            index = _filled(bundle, chosen, threads, on_progress)
            if queries is None:
                queries = _sample_queries(bundle)
                sample = f'passages with noise, seed {_SEED}'
            effort, reached = _cheapest(bundle, index, chosen, queries, hits, recall)
        record = AnnRecord(
            ann=chosen,
            factory=factory(chosen, bundle.settings.dimension, len(bundle)),
            manifest_sha256=manifest,
            index_sha256='0' * 64,
            dimension=bundle.settings.dimension,
            count=len(bundle),
            hits=hits,
            candidates=effort.candidates,
            parameter=effort.parameter,
            recall=reached,
            asked=float(recall),
            sample=sample or 'queries',
            queries=len(queries),
        )
        return write_ann(bundle.folder, index, record)


def _filled(
    bundle: DenseBundle, kind: AnnKind, threads: int, on_progress: Callable[[int], object]
) -> Any:
    import faiss

    dimension = bundle.settings.dimension
    description = factory(kind, dimension, len(bundle))
    index = faiss.index_factory(dimension, description, faiss.METRIC_INNER_PRODUCT)
    # The many small k-means of a product quantiser are far slower with several threads.
    with faiss_threads(1 if kind is AnnKind.PQ else threads):
        index.train(_drawn(bundle, training_points(kind, len(bundle))))
    for _, vectors in bundle.blocks(_ROWS):
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        on_progress(len(vectors))
    return index


def _drawn(bundle: DenseBundle, n: int) -> NDArray[np.float32]:
    """n vectors drawn with a fixed seed, in the bundle's order: float32 (n, d)."""
    rows = np.sort(np.random.default_rng(_SEED).choice(len(bundle), n, replace=False))
    parts = []
    for first, vectors in bundle.blocks(_ROWS):
        in_block = (rows >= first) & (rows < first + len(vectors))
        parts.append(vectors[rows[in_block] - first])
    return np.concatenate(parts).astype(np.float32)


def _sample_queries(bundle: DenseBundle) -> NDArray[np.float32]:
    """Queries to measure recall on: passages' vectors with noise, float32 (n, d)."""
    random = np.random.default_rng(_SEED)
    drawn = _drawn(bundle, min(len(bundle), training_points(AnnKind.PQ, len(bundle))))
    rows = np.sort(random.choice(len(drawn), min(SAMPLE, len(drawn)), replace=False))
    chosen = drawn[rows]
    noise = random.standard_normal(chosen.shape, dtype=np.float32)
    queries: NDArray[np.float32] = chosen + _NOISE * drawn.std(axis=0) * noise
    return queries.astype(np.float32)


def _cheapest(
    bundle: DenseBundle,
    index: Any,
    kind: AnnKind,
    queries: NDArray[np.float32],
    hits: int,
    recall: float,
) -> tuple[Effort, float]:
    """The first setting that reaches `recall`, and the recall that it reaches.

    Raises InputError if none does.
    """
    truth = ExactIndex(bundle).search(queries, hits)
    best = 0.0
    for effort in efforts(kind, len(bundle), hits):
        candidates = candidate_rows(index, kind, queries, effort)
        tops = best_of(bundle, queries, candidates, hits)
        reached = mean_recall(truth, tops, hits)
        if reached >= recall:
            return effort, reached
        best = max(best, reached)
    raise InputError(
        f"an index of kind '{kind}' reaches recall@{hits} {best:.4f} of exact "
        f'search, but {recall} was asked for: ask for less, or choose another kind',
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
