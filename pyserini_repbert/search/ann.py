"""Approximate search with exact scores; building an index: train, fill, measure recall, and only
then write.
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

_QUERY_GROUP = 256  # queries whose candidates are in memory together
RECALL = 0.98
HITS = 1000
SAMPLE = 200  # queries on which recall is measured, where none are given
_NOISE = (
    0.5  # of each dimension's standard deviation, added to a passage's vector to make a query of it
)
_SEED = 0
_ROWS = 65536  # added at a time


def search(
    bundle: DenseBundle, ann: AnnIndex, queries: NDArray[np.float32], k: int
) -> list[TopRows]:
    """`best_of` the candidates that the approximate index has for each query, float32 (n, d)."""
    tops: list[TopRows] = []
    for start in range(0, len(queries), _QUERY_GROUP):
        group = queries[start : start + _QUERY_GROUP]
        tops += best_of(bundle, group, ann.rows(group, min(k, len(bundle))), k)
    return tops


def best_of(
    bundle: DenseBundle, queries: NDArray[np.float32], rows: NDArray[np.int64], k: int
) -> list[TopRows]:
    """The k best of each query's candidates by exact inner product, and all that tie with the last
    of them.

    `rows` are the candidates of each query, int64 (n, m), padded with -1.
    """
    rows = np.sort(rows, axis=1)  # so that neighbouring rows are read together
    scores = np.empty(rows.shape, np.float32)
    start = 0
    for shard in bundle.shards:
        end = start + len(shard.docids)
        here = np.nonzero((rows >= start) & (rows < end))
        scores[here] = products.scores(queries, shard.vectors, rows[here] - start, here[0])
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
    """Build the approximate index of a bundle, with the cheapest search setting that reaches
    `recall`.

    Recall is the mean share of exact search's `hits` best passages that are found. The same bundle,
    kind and number of threads give the same bytes; for an HNSW, whose graph depends on the order in
    which threads add vectors, only one thread does.

    Parameters
    ----------
    kind : 'pq', 'hnsw' or 'ivf', see `AnnKind`
    recall : the least that is accepted, above 0, at most 1
    hits : the depth at which recall is measured; reduced to the number of passages
    queries : float32 (n, d) to measure on; default: the vectors of 200 passages drawn with a fixed
        seed, each with Gaussian noise of half the standard deviation of each dimension
    sample : a description of `queries`, for the record
    threads : of FAISS
    on_progress : called with the number of vectors added since the last call

    Raises InputError where no setting reaches `recall`; nothing is written then.
    """
    chosen = AnnKind(kind)
    if not 0 < recall <= 1 or hits < 1:
        raise InputError(
            f'recall {recall} at {hits} hits was asked for, expected above 0 to 1, at 1 hit or more'
        )
    if queries is not None and not len(queries):
        raise InputError(
            'there are no queries to measure recall on: give some, or none of your own'
        )
    if len(bundle) < MIN_VECTORS:
        raise InputError(
            f'index {bundle.folder} has {len(bundle)} vectors, an approximate index takes at '
            f'least {MIN_VECTORS}: '
            'exact search is the better choice'
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

    description = factory(kind, bundle.settings.dimension, len(bundle))
    index = faiss.index_factory(bundle.settings.dimension, description, faiss.METRIC_INNER_PRODUCT)
    # the many small k-means of a product quantiser are far slower with several threads than with
    # one
    with faiss_threads(1 if kind is AnnKind.PQ else threads):
        index.train(_drawn(bundle, training_points(kind, len(bundle))))
    for _, vectors in bundle.blocks(_ROWS):
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        on_progress(len(vectors))
    return index


def _drawn(bundle: DenseBundle, n: int) -> NDArray[np.float32]:
    """n vectors drawn with a fixed seed, in the bundle's order: float32 (n, d)."""
    rows = np.sort(np.random.default_rng(_SEED).choice(len(bundle), n, replace=False))
    parts = [
        vectors[rows[(rows >= first) & (rows < first + len(vectors))] - first]
        for first, vectors in bundle.blocks(_ROWS)
    ]
    return np.concatenate(parts).astype(np.float32)


def _sample_queries(bundle: DenseBundle) -> NDArray[np.float32]:
    random = np.random.default_rng(_SEED)
    drawn = _drawn(bundle, min(len(bundle), training_points(AnnKind.PQ, len(bundle))))
    queries = drawn[np.sort(random.choice(len(drawn), min(SAMPLE, len(drawn)), replace=False))]
    noise = random.standard_normal(queries.shape, dtype=np.float32)
    return (queries + _NOISE * drawn.std(axis=0) * noise).astype(np.float32)  # type: ignore[no-any-return]


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
        tops = best_of(bundle, queries, candidate_rows(index, kind, queries, effort), hits)
        reached = mean_recall(truth, tops, hits)
        if reached >= recall:
            return effort, reached
        best = max(best, reached)
    raise InputError(
        f"an index of kind '{kind}' reaches recall@{hits} {best:.4f} of exact search, {recall} "
        f'was asked for: '
        'ask for less, or take another kind',
        parameters=('recall', 'kind'),
    )


def mean_recall(truth: list[TopRows], tops: list[TopRows], hits: int) -> float:
    """The mean share of the `hits` best rows that were found, 0 to 1; rows that tie with the
    last count as well.
    """
    shares = [
        np.isin(top.rows[:hits], best.rows).sum() / min(hits, len(best.rows))
        for best, top in zip(truth, tops, strict=True)
    ]
    return float(np.mean(shares))
