"""Dense search with any encoder: the passages whose vectors have the greatest inner products.

Use `VectorSearcher` with an index that is open and an encoder of yours. Its subclass
`indexes.dense.searcher.DenseSearcher` opens both by name. A score is the inner product of the
query's vector with the passage's (RepBERT eq. 3, https://arxiv.org/abs/2006.15498).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.ordering import rank_by_score
from pyserini_repbert.encode.text_encoder import check_model, truncated_as
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.files import StrPath
from pyserini_repbert.fusion.settings import FusionSettings
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.faiss_form import is_faiss_folder
from pyserini_repbert.index.faiss_layout import FaissFolder
from pyserini_repbert.index.manifest import MANIFEST
from pyserini_repbert.index.sample import background_of
from pyserini_repbert.models.precision import checked_device
from pyserini_repbert.models.threads import torch_threads
from pyserini_repbert.ranking import (
    Candidate,
    Query,
    QueryRewriting,
    Ranking,
    Run,
    Searcher,
    topics_of,
)
from pyserini_repbert.search.document_rows import BundleRows, DocumentRows
from pyserini_repbert.search.parts import Blocks
from pyserini_repbert.search.quick_exact import QuickIndex
from pyserini_repbert.search.scans import OpenScan, scans
from pyserini_repbert.search.scores import NotFiniteError, TopRows, VectorSearch
from pyserini_repbert.trace import Trace

if TYPE_CHECKING:
    import torch

    from pyserini_repbert.search.feedback import VectorFeedback

DenseIndex = DenseBundle | FaissFolder
# In messages: what takes a document's own vector as the query.
_LIKE = 'a search for what is like a document'


class VectorIndex(Blocks, Protocol):
    """Vectors in the rows of an index, and the docid of each."""

    @property
    def folder(self) -> Path:
        """Where it is."""

    @property
    def settings(self) -> Any:
        """`encoder`, `dimension`, and the checksums of the model."""

    @property
    def sample(self) -> NDArray[np.float32] | None:
        """A sample of the vectors, float32 (m, d); None if they cannot be read."""

    @property
    def sample_mean(self) -> NDArray[np.float32] | None:
        """The mean of the sample, float32 (d,)."""

    def docids(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of rows."""


class QueryEncoder(Protocol):
    """A query encoder with Pyserini's interface."""

    def encode(self, query: str) -> NDArray[np.float32]:
        """One query's vector, float32 (d,)."""


class VectorSearcher(Searcher, recorded_as='DenseSearcher'):
    """Searches a dense index that is open.

    Equal scores are ordered by docid. Hits have texts where the index stores them.

    Parameters
    ----------
    index : a dense bundle, or a folder of Pyserini's FAISS layout (`open_dense_index`)
    query_encoder : an encoder with Pyserini's interface
    device : where vectors are multiplied: 'cpu', 'cuda' for all GPUs, 'cuda:N', 'mps'
    verify : compare the files that a scan reads with their checksums
    scan : the name of the scan of a bundle, of `scans()`; '': exact search
    device_dtype : 'float16' or 'float32': the type in which a CUDA device stores and multiplies
        vectors; a CPU multiplies in float32
    spread : makes, from the bundle, a search of its vectors on other machines

    Attributes
    ----------
    query_map : A, float32 (d, d), learned from judgments: a query's vector q becomes q (I + A);
        None: q does not change
    takes_docids : whether the texts of topics are docids, see `by_documents`
    feedback : moves a query's vector towards its best hits' vectors; None: it does not change
    scan : what finds the best rows; None: exact search
    dimension : d, the length of a vector

    Raises
    ------
    InputError : settings that do not go together
    MismatchError : the index was built with another encoder
    """

    query_map: NDArray[np.float32] | None = None
    feedback: VectorFeedback | None = None
    takes_docids: bool = False
    takes_feedback = True

    def __init__(
        self,
        index: DenseIndex | VectorIndex,
        query_encoder: QueryEncoder,
        device: str = 'cpu',
        verify: bool = True,
        scan: str = '',
        device_dtype: str = 'float16',
        spread: Callable[[DenseBundle], VectorSearch] | None = None,
    ) -> None:
        check_settings(device_dtype=device_dtype, scan=scan, spreads=spread is not None)
        self.index = index
        # None: its texts, and the vectors of its rows, are not at hand.
        self._bundle = index if isinstance(index, DenseBundle) else None
        self.index_dir = Path(index.folder)
        self.device_name = checked_device(device)
        self.scan: OpenScan | None = None
        if isinstance(index, FaissFolder):
            self.dimension = index.dimension
        else:
            self.dimension = int(index.settings.dimension)
        bundle_scan = None
        if scan and self._bundle is not None:
            bundle_scan = scans()[scan].of_bundle(self._bundle, verify)
            self.scan = bundle_scan
        elif scan or (spread and self._bundle is None):
            kind = 'FAISS folder' if isinstance(index, FaissFolder) else 'index'
            raise InputError(
                f'{kind} {self.index_dir} is only searched exactly, and on one machine: '
                'give a dense bundle'
            )
        if bundle_scan is None:
            self._top_rows = self._search_of(index, device_dtype, spread)
        else:
            self._top_rows = bundle_scan.search
        if not isinstance(index, FaissFolder):
            query_encoder = truncated_as(query_encoder, index.settings)
        self.query_encoder = query_encoder
        self.name = str(getattr(query_encoder, 'name', type(query_encoder).__name__))
        self._check_encoder()

    @cached_property
    def device(self) -> torch.device:
        """Where vectors are multiplied, as PyTorch has it."""
        import torch

        return torch.device(self.device_name)

    def _search_of(
        self,
        index: DenseIndex | VectorIndex,
        device_dtype: str,
        spread: Callable[[DenseBundle], VectorSearch] | None,
    ) -> VectorSearch:
        """The search of an index's vectors."""
        if isinstance(index, FaissFolder):
            return partial(_search_faiss, index)
        if isinstance(index, DenseBundle):
            if spread:
                return spread(index)
            if self.device_name.startswith('cuda'):
                from pyserini_repbert.search.gpu_index import GpuIndex

                return GpuIndex(index, self.dimension, self.device, device_dtype).search
        return QuickIndex(index, self.device_name).search

    def _check_encoder(self) -> None:
        """Raise MismatchError if the index was built with another encoder."""
        known = '' if self._bundle is None else f" ('{self._bundle.settings.encoder}')"
        given = getattr(self.query_encoder, 'dimension', self.dimension)
        if given != self.dimension:
            raise MismatchError(
                f"index has dimension {self.dimension}, encoder '{self.name}' gives {given}: pass "
                f'the encoder it was built with{known}'
            )
        if self._bundle is not None:
            check_model(self.index_dir, self._bundle.settings, self.query_encoder)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def n_searched(self) -> int:
        """How many vectors are compared with a query."""
        return len(self.index)

    def _rank(self, topics: Sequence[Query], run: Run | None, k: int | None, trace: Trace) -> Run:
        with torch_threads(self.threads), self._threads_of_scan():
            if self.takes_docids:
                return self._rank_like(topics, k)
            vectors = self.encode([topic.text for topic in topics])
            rankings = self._with_feedback(vectors, k)
        return {topic.qid: ranking for topic, ranking in zip(topics, rankings, strict=True)}

    def _rank_like(self, topics: Sequence[Query], k: int | None) -> Run:
        """The ranking for each document that has vectors, by the docids of topics."""
        by_docid = self.document_vectors([topic.text for topic in topics])
        known = [topic for topic in topics if topic.text in by_docid]
        if not known:
            return {}
        vectors = np.array([by_docid[topic.text] for topic in known], np.float32)
        # One more, as a document finds itself.
        rankings = self._with_feedback(vectors, None if k is None else k + 1)
        run: Run = {}
        for topic, ranking in zip(known, rankings, strict=True):
            run[topic.qid] = ranking.without(topic.text)
        return run

    def _with_feedback(self, vectors: NDArray[np.float32], k: int | None) -> list[Ranking]:
        """The ranking of each query vector, after feedback if there is any."""
        if self.feedback is not None:
            vectors = self._expand(vectors, self.feedback)
        return self.of_vectors(vectors, k)

    def by_documents(self) -> Self:
        """As in `Ranker`: a document's query is its own vector, without the query map.

        Raises InputError for a FAISS folder.
        """
        self._bundle_for(_LIKE)
        return self.with_settings(takes_docids=True)

    def with_rewriting(self, rewriting: QueryRewriting) -> Self:
        return self.with_settings(query_encoder=rewriting.query_encoder(self.query_encoder))

    def holds(self, docid: str) -> bool:
        return docid in self.document_vectors([docid])

    def document_vectors(self, docids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of documents, float32 (d,), by docid; one that does not exist has none.

        Raises InputError for a FAISS folder.
        """
        bundle = self._bundle_for(_LIKE)
        rows = bundle.rows(docids)
        known = [docid for docid, row in zip(docids, rows.tolist(), strict=True) if row >= 0]
        vectors = bundle.vectors(rows[rows >= 0])
        return dict(zip(known, vectors, strict=True))

    def scores_by_docid(
        self, query: NDArray[np.float32], docids: Sequence[str]
    ) -> dict[str, float]:
        """The scores of documents, by docid; one without a vector has none.

        `query` is a vector of `encode`, float32 (d,). Raises InputError for a FAISS folder.
        """
        by_docid = self.document_vectors(docids)
        return {docid: float(vector @ query) for docid, vector in by_docid.items()}

    def _expand(
        self, queries: NDArray[np.float32], feedback: VectorFeedback
    ) -> NDArray[np.float32]:
        """The vectors that are searched for instead of queries', float32 (n, d)."""
        expanded = []
        tops = self._feedback_rows(queries, feedback.depth)
        for query, top in zip(queries, tops, strict=True):
            # Of those that tie with the last, the first rows.
            order = np.lexsort((top.rows, -top.scores))[: feedback.depth]
            expanded.append(feedback.expand(query, self._vectors_of(top.rows[order])))
        return np.array(expanded, np.float32).reshape(queries.shape)

    def _feedback_rows(self, queries: NDArray[np.float32], depth: int) -> list[TopRows]:
        """The best rows of each query, from which feedback is taken."""
        return list(self._top_rows(queries, depth))

    def _vectors_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of rows, float32 (n, d). Raises InputError if the index lacks them."""
        bundle = self._bundle_for('feedback', 'prf')
        return np.asarray(bundle.vectors(rows), np.float32)

    def _bundle_for(self, use: str, *parameters: str) -> DenseBundle:
        """The bundle that is searched.

        `use` says what needs its vectors, `parameters` are the parameters that ask for it. Raises
        InputError for a FAISS folder, whose vectors are not at hand.
        """
        if self._bundle is None:
            raise InputError(
                f'{self.index_dir} is a FAISS folder, {use} takes the vectors of a bundle: make '
                'one with `encode`',
                parameters=parameters,
            )
        return self._bundle

    def document_rows(self) -> DocumentRows:
        """Its vectors, by the passages or documents to which they belong.

        Raises InputError for a FAISS folder.
        """
        return BundleRows(self._bundle_for('`adapt`'))

    def usual_fusion(self, others: Sequence[str]) -> FusionSettings:
        """How its ranking is fused with others, by their names, unless a user says."""
        return FusionSettings()

    def _threads_of_scan(self) -> contextlib.AbstractContextManager[None]:
        if self.scan is not None and self.threads > 1:
            return self.scan.computing_in(self.threads)
        return contextlib.nullcontext()

    def search(self, query: str | NDArray[np.float32], k: int = 10, **_: Any) -> list[Candidate]:
        """`Searcher.search`, also for a query's vector, float32 (d,)."""
        if isinstance(query, str):
            return super().search(query, k)
        return list(self.with_stored_texts('', self.of_vectors(query.reshape(1, -1), k)[0]))

    def batch_search(
        self,
        queries: Sequence[str] | NDArray[np.float32],
        qids: Sequence[str],
        k: int = 10,
        threads: int = 1,
        **_: Any,
    ) -> dict[str, list[Candidate]]:
        """`Searcher.batch_search`, also for the queries' vectors, float32 (n, d).

        Parameters
        ----------
        queries : texts, or vectors
        qids : one for each query
        k : hits of a query
        threads : CPU threads
        """
        if isinstance(queries, np.ndarray):
            topics_of(qids, qids)
            with torch_threads(threads):
                rankings = self.of_vectors(queries, k)
            return {qid: list(hits) for qid, hits in zip(qids, rankings, strict=True)}
        return super().batch_search(queries, qids, k, threads)

    def encode(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """The queries' vectors, float32 (n, d), after the query map."""
        encode_batch = getattr(self.query_encoder, 'encode_batch', None)
        if encode_batch:
            encoded = encode_batch(queries)
        else:
            encoded = [self.query_encoder.encode(query) for query in queries]
        vectors = np.asarray(encoded, dtype=np.float32).reshape(len(queries), self.dimension)
        if self.query_map is None:
            return vectors
        mapped: NDArray[np.float32] = vectors + vectors @ self.query_map
        return mapped

    def texts(self, docids: Sequence[str]) -> list[str | None]:
        if self._bundle is None:
            return [None] * len(docids)
        return self._bundle.texts(docids)

    def of_vectors(self, vectors: NDArray[np.float32], k: int | None) -> list[Ranking]:
        """The ranking of each query vector, ties by docid.

        Parameters
        ----------
        vectors : of the queries, float32 (n, d)
        k : hits of a query; None: all passages

        Raises InputError for vectors that are not finite, MismatchError for another shape, and
        NotFiniteError if the part of the index that is read has a vector that is not finite.
        """
        if k is None:
            k = max(1, len(self))
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
        try:
            rankings = self._rankings(vectors, k)
        except NotFiniteError as error:
            raise NotFiniteError(f'index {self.index_dir}') from error
        for ranking in rankings:
            # Scores fall: of finite vectors, only the ends can be infinite.
            if len(ranking) and not math.isfinite(ranking.scores[0] - ranking.scores[-1]):
                raise NotFiniteError(f'index {self.index_dir}')
        sample = self.index.sample
        mean = self.index.sample_mean
        if sample is None or mean is None:
            return rankings
        with_backgrounds = []
        for ranking, vector in zip(rankings, vectors, strict=True):
            # Each separately, because a product in a batch may be rounded differently.
            background = background_of(sample @ vector, self.n_searched, float(mean @ vector))
            with_backgrounds.append(ranking.with_background(background))
        return with_backgrounds

    def _rankings(self, vectors: NDArray[np.float32], k: int) -> list[Ranking]:
        """The ranking of each query vector, k at least 1."""
        rankings = []
        for top in self._top_rows(vectors, k):
            docids = np.array(self.index.docids(top.rows), dtype=object)
            rankings.append(rank_by_score(docids, top.scores, k))
        return rankings


def open_dense_index(folder: StrPath, verify: bool = True) -> DenseIndex:
    """A dense bundle, or a folder that holds only Pyserini's files `index` and `docid`.

    `verify` compares the files with their checksums: the first time, then only if they have
    changed.
    """
    if is_faiss_folder(folder) and not (Path(folder) / MANIFEST).is_file():
        return FaissFolder(folder, verify)
    return DenseBundle(folder, verify)


def check_settings(*, device_dtype: str, scan: str, spreads: bool) -> None:
    """Raise InputError for settings of a search that are unknown or do not go together."""
    if device_dtype not in ('float16', 'float32'):
        raise InputError(f"device dtype '{device_dtype}' was given, expected float16 or float32")
    if scan and spreads:
        raise InputError(f"'{scan}' searches on one machine", parameters=(scan, 'ray'))


def _search_faiss(folder: FaissFolder, queries: NDArray[np.float32], k: int) -> list[TopRows]:
    """The best rows of a FAISS folder, for each query."""
    return [TopRows(*folder.search(query, k)) for query in queries]
