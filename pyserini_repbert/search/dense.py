"""RepBERT as a first stage: encode the query, return the passages with the greatest inner
products (eq. 3).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from pyserini_repbert.data.runs import ranked
from pyserini_repbert.data.values import MAX_THREADS
from pyserini_repbert.encode import encoders
from pyserini_repbert.encode.text_encoder import check_model
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.ann import AnnIndex, faiss_threads
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.faiss_layout import FaissFolder, is_faiss_folder
from pyserini_repbert.models.forking import usable_threads
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.ranking import Candidate, Query, Ranker, Ranking, Run, topics_of
from pyserini_repbert.search import ann as approximate, exact
from pyserini_repbert.search.gpu_index import GpuIndex
from pyserini_repbert.trace import Trace


class QueryEncoder(Protocol):
    """A query encoder with Pyserini's interface."""

    def encode(self, query: str) -> NDArray[np.float32]:
        """One query's vector, float32 (d,)."""


class RepBertSearcher(Ranker):
    """Exact or approximate search in a dense bundle, or search in a folder of Pyserini's FAISS
    layout.

    Parameters
    ----------
    index_dir : a dense bundle, or a folder with Pyserini's files `index` and `docid`
    query_encoder : an encoder, a catalog name or a checkpoint folder; default: the one that the
        bundle names
    device : where queries are encoded and vectors are multiplied
    verify : compare the index's files with their checksums (the first time, then only if they have
        changed)
    ann : search the bundle's approximate index, which `index ann` builds; scores are exact all the
        same
    device_dtype : 'float16' or 'float32': the type in which a CUDA device stores and multiplies
        vectors; a CPU multiplies in float32
    spread : makes, from the bundle, a search of its vectors on other machines, which verify the
        files they open
    precision, max_length : of the query encoder, unless that is open already; as in
        `RepBertQueryEncoder`
    """

    query_map: NDArray[np.float32] | None = (
        None  # A, float32 (d, d): a query's vector q becomes q (I + A)
    )

    def __init__(
        self,
        index_dir: StrPath,
        query_encoder: QueryEncoder | str | Path | None = None,
        device: str = 'cpu',
        verify: bool = True,
        ann: bool = False,
        device_dtype: str = 'float16',
        spread: Callable[[DenseBundle], exact.Search] | None = None,
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
    ) -> None:
        if device_dtype not in ('float16', 'float32'):
            raise InputError(
                f"device dtype '{device_dtype}' was given, expected float16 or float32"
            )
        if ann and spread:
            raise InputError(
                'an approximate index is searched on one machine', parameters=('ann', 'ray')
            )
        self.index_dir = Path(index_dir)
        self.device = usable_device(device)
        self.index: DenseBundle | FaissFolder
        self.ann: AnnIndex | None = None
        if is_faiss_folder(index_dir) and not (self.index_dir / 'manifest.json').is_file():
            if ann or spread:
                raise InputError(
                    f'FAISS folder {index_dir} is searched as it is, on one machine: give a bundle'
                )
            self.index = folder = FaissFolder(index_dir, verify)
            settings = None
            self.dimension = folder.dimension
            self._top_rows: exact.Search = lambda queries, k: [
                exact.TopRows(*folder.search(q, k)) for q in queries
            ]
        else:
            self.index = bundle = DenseBundle(index_dir, verify and spread is None)
            settings = bundle.settings
            self.dimension = bundle.settings.dimension
            if ann:
                self.ann = AnnIndex(bundle, verify)
                self._top_rows = partial(approximate.search, bundle, self.ann)
            elif spread:
                self._top_rows = spread(bundle)
            elif self.device.type == 'cuda':
                self._top_rows = GpuIndex(bundle, self.dimension, self.device, device_dtype).search
            else:
                self._top_rows = exact.ExactIndex(bundle, self.device).search
        if query_encoder is None:
            if settings is None:
                raise InputError(f'FAISS folder {index_dir} does not name its encoder: pass one')
            query_encoder = settings.encoder
        if isinstance(query_encoder, (str, Path)):
            query_encoder = encoders.query_encoder(
                query_encoder, device, precision=precision, max_length=max_length
            )
        self.query_encoder: QueryEncoder = query_encoder
        self.name = str(getattr(query_encoder, 'name', type(query_encoder).__name__))
        given = getattr(query_encoder, 'dimension', self.dimension)
        if given != self.dimension:
            known = f" ('{settings.encoder}')" if settings else ''
            raise MismatchError(
                f"index has dimension {self.dimension}, encoder '{self.name}' gives {given}: pass "
                f'the encoder it was '
                f'built with{known}'
            )
        if settings:
            check_model(self.index_dir, settings, query_encoder)

    @classmethod
    def from_prebuilt_index(
        cls,
        name: str,
        query_encoder: str | Path | None = None,
        device: str = 'cpu',
        build: bool = False,
        ann: bool = False,
    ) -> RepBertSearcher:
        """A searcher for an index of the catalog; small ones ('demo') are built on first use,
        others with `build`.

        The default encoder is the one that the catalog names.
        """
        from pyserini_repbert.names.indexes import ready_folder

        encoder = None if query_encoder is None else str(query_encoder)
        return cls(ready_folder(name, encoder, device, build), encoder, device, ann=ann)

    def __len__(self) -> int:
        return len(self.index)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        faiss = (
            faiss_threads(self.threads)
            if self.ann and self.threads > 1
            else contextlib.nullcontext()
        )
        with _threads(self.threads), faiss:
            vectors = self.encode([topic.text for topic in topics])
            return dict(
                zip([topic.qid for topic in topics], self.of_vectors(vectors, k), strict=True)
            )

    def search(self, query: str | NDArray[np.float32], k: int = 10, **_: Any) -> list[Candidate]:
        """`Ranker.search`, also for a query's vector, float32 (d,)."""
        if isinstance(query, str):
            return super().search(query, k)
        return self.shown(self.of_vectors(query.reshape(1, -1), k)[0])

    def batch_search(
        self,
        queries: Sequence[str] | NDArray[np.float32],
        qids: Sequence[str],
        k: int = 10,
        threads: int = 1,
        **_: Any,
    ) -> dict[str, list[Candidate]]:
        """`Ranker.batch_search`, also for the queries' vectors, float32 (n, d)."""
        if isinstance(queries, np.ndarray):
            topics_of(qids, qids)
            with _threads(threads):
                return dict(zip(qids, map(list, self.of_vectors(queries, k)), strict=True))
        return super().batch_search(queries, qids, k, threads)

    def encode(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """The queries' vectors, float32 (n, d), after the query map."""
        batch = getattr(self.query_encoder, 'encode_batch', None)
        encoded = (
            batch(queries) if batch else [self.query_encoder.encode(query) for query in queries]
        )
        vectors = np.asarray(encoded, dtype=np.float32).reshape(len(queries), self.dimension)
        return vectors if self.query_map is None else vectors + vectors @ self.query_map

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        return (
            self.index.texts(docids)
            if isinstance(self.index, DenseBundle)
            else [None] * len(docids)
        )

    def of_vectors(self, vectors: NDArray[np.float32], k: int | None) -> list[Ranking]:
        """The k best passages (None: all) for each query vector, float32 (n, d), ties by docid."""
        k = max(1, len(self)) if k is None else k
        if k < 1:
            raise InputError(f'k={k} hits were asked for, expected at least 1')
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise MismatchError(
                f'query vectors of shape {vectors.shape} were given, index {self.index_dir} takes '
                f'(n, {self.dimension})'
            )
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise InputError('a query vector has values that are not finite: check what made it')
        tops = self._top_rows(vectors, k)
        return [
            ranked(np.array(self.index.docids(top.rows), dtype=object), top.scores, k)
            for top in tops
        ]


@contextlib.contextmanager
def _threads(threads: int) -> Iterator[None]:
    if not 1 <= threads <= MAX_THREADS:
        raise InputError(f'threads={threads} were asked for, expected 1 to {MAX_THREADS}')
    before = torch.get_num_threads()
    torch.set_num_threads(usable_threads(threads) if threads > 1 else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
