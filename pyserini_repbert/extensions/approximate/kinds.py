"""The kinds of approximate index: what FAISS builds for each, and how it is searched."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.data.values import Choice

# 39 training points for each of 16 centroids, below which FAISS warns of a poor quantiser.
MIN_VECTORS = 624
_PQ_POINTS = 16 * 256  # as many as FAISS uses to train 16 centroids
_IVF_POINTS = 64  # training points a centroid: FAISS asks for 39 to 256
_LISTS = 4  # times the square root of the number of vectors: FAISS's guideline
_FACTORS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50)  # PQ: candidates for each hit
_LINKS = 32  # HNSW's M
_LEAST_TOKENS = 32  # candidates of each vector of a question, where few hits are wanted


class AnnKind(Choice, what='kind of approximate index'):
    """How candidates are found.

    `pq`: 4-bit product quantisation of pairs of dimensions, all codes scanned (FAISS's fast scan).
    `ivf`: the nearest of k-means lists, 8 bits a dimension. `hnsw`: a graph over float16 vectors.
    """

    PQ = 'pq'
    HNSW = 'hnsw'
    IVF = 'ivf'


@dataclass(frozen=True)
class Effort:
    """A setting of the search."""

    candidates: int  # how many rows get exact scores
    parameter: int | None = None  # `nprobe` of an IVF or `efSearch` of an HNSW


def factory(kind: AnnKind, dimension: int, count: int) -> str:
    """The description that FAISS's `index_factory` takes: 'PQ192x4fs' for 384 dimensions."""
    chosen = AnnKind(kind)
    if chosen is AnnKind.PQ:
        n_parts = dimension // 2 if dimension % 2 == 0 else dimension
        return f'PQ{n_parts}x4fs'
    if chosen is AnnKind.HNSW:
        return f'HNSW{_LINKS}_SQfp16'
    return f'IVF{_n_lists(count)},SQ8'


def training_points(kind: AnnKind, count: int) -> int:
    """How many vectors the index is trained on."""
    is_ivf = AnnKind(kind) is AnnKind.IVF
    points = _IVF_POINTS * _n_lists(count) if is_ivf else _PQ_POINTS
    return min(count, points)


def efforts(kind: AnnKind, count: int, hits: int) -> Iterator[Effort]:
    """The settings to try for `hits` hits, cheapest first."""
    chosen = AnnKind(kind)
    if chosen is AnnKind.PQ:
        for factor in _FACTORS:
            yield Effort(min(count, factor * hits))
            if factor * hits >= count:
                return
        return
    # The order by codes of 8 or 16 bits is nearly the exact one.
    spare = min(count, math.ceil(1.25 * hits))
    value = spare
    most = count
    if chosen is AnnKind.IVF:
        value = 1
        most = _n_lists(count)
    while value < most:
        yield Effort(spare, value)
        value *= 2
    yield Effort(spare, most)


def token_efforts(kind: AnnKind, count: int, hits: int) -> Iterator[Effort]:
    """The settings to try for `hits` passages of several vectors each, cheapest first.

    Each vector of a question has candidates: half as many vectors as hits, and then twice as many
    each time, from twice as many lists. The last setting looks at all vectors.
    """
    chosen = AnnKind(kind)
    candidates = max(_LEAST_TOKENS, hits // 2)
    lists = 1
    while candidates < count or (chosen is AnnKind.IVF and lists < _n_lists(count)):
        yield _token_effort(chosen, min(candidates, count), min(lists, _n_lists(count)))
        candidates *= 2
        lists *= 2
    yield _token_effort(chosen, count, _n_lists(count))


def _token_effort(kind: AnnKind, candidates: int, lists: int) -> Effort:
    """The effort for so many candidates; of an HNSW, `efSearch` is their number."""
    parameters = {AnnKind.IVF: lists, AnnKind.HNSW: candidates}
    return Effort(candidates, parameters.get(kind))


def search_parameters(kind: AnnKind, parameter: int | None) -> Any:
    """The `params` of FAISS's `search`; None for PQ, which has none."""
    import faiss

    chosen = AnnKind(kind)
    # FAISS's annotations lack the classes that SWIG generates.
    engine: Any = faiss
    if chosen is AnnKind.IVF:
        return engine.SearchParametersIVF(nprobe=parameter)
    if chosen is AnnKind.HNSW:
        return engine.SearchParametersHNSW(efSearch=parameter)
    return None


def reading_flag(kind: AnnKind) -> int:
    """What FAISS's `read_index` is told: to map an index into memory, where its kind allows it."""
    import faiss

    flags = {AnnKind.IVF: faiss.IO_FLAG_MMAP, AnnKind.HNSW: getattr(faiss, 'IO_FLAG_MMAP_IFC', 0)}
    return int(flags.get(AnnKind(kind), 0))


def _n_lists(count: int) -> int:
    return max(1, min(round(_LISTS * math.sqrt(count)), count // 39))
