"""Our systems as models that `mteb.evaluate` takes. Tested with mteb 2.26.24.

A search model indexes a task's corpus in a temporary folder and searches that; on a task with
candidates (a reranking task) it ranks only those. Texts are as mteb joins them: title, then
passage. mteb keeps results under a model's name and revision: the revision is a digest of
everything that decides the scores.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Corpus, Passage
from pyserini_repbert.errors import needs
from pyserini_repbert.fusion.methods import FusionMethod
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.interop.hits import Documents, index_passages, score_by_docid
from pyserini_repbert.lucene.searcher import LuceneSparseSearcher
from pyserini_repbert.lucene.sparse_settings import SparseSettings
from pyserini_repbert.pipeline.opening import join_rankers
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Candidate, Query, Ranking, topics_of
from pyserini_repbert.rerank.base import Reranker
from pyserini_repbert.systems.encoders import (
    document_encoder,
    query_encoder,
)

with needs('mteb', __name__, 'mteb'):
    from mteb._create_dataloaders import create_dataloader
    from mteb.models import ModelMeta
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ScoringFunction
    from mteb.types import PromptType


def _meta(
    name: str, settings: Mapping[str, object], model_type: str = 'dense', **fields: Any
) -> ModelMeta:
    """What mteb knows of a model, with a digest of its settings as its revision."""
    decisive = json.dumps(settings, sort_keys=True, default=str)
    revision = hashlib.sha256(decisive.encode()).hexdigest()
    return ModelMeta.create_empty(
        {
            'name': f'pyserini_repbert/{Path(name).name}',
            'revision': revision,
            'model_type': [model_type],
            **fields,
        }
    )


def _column(loader: Any, name: str) -> list[str]:
    """A column of a data loader's batches; empty if they lack it."""
    values: list[str] = []
    for batch in loader:
        values += batch.get(name, ())
    return values


def _texts(dataset: Any, kind: PromptType, task_metadata: Any, num_proc: int | None) -> list[str]:
    """The texts of a task's corpus or queries, as mteb joins them."""
    loader = create_dataloader(
        dataset, task_metadata=task_metadata, prompt_type=kind, num_proc=num_proc
    )
    return _column(loader, 'text')


class RepBertEncoder(AbsEncoder):  # type: ignore[misc]
    """mteb's `EncoderProtocol`: queries with token type 0, all other texts with type 1; similarity
    is inner product.

    mteb's revision is ignored: a checkpoint is identified by the checksum of its weights.
    """

    def __init__(
        self, model_name: str | Path, device: str = 'cpu', precision: str = 'float32', **_: Any
    ) -> None:
        self.device = device
        self.queries = query_encoder(model_name, self.device, precision=precision)
        self.passages = document_encoder(
            model_name, self.device, precision=precision, open_encoder=self.queries
        )
        self.settings = {
            'weights_sha256': self.queries.weights_sha256,
            'limits': (self.queries.limit, self.passages.limit),
            'precision': str(self.queries.precision),
        }
        space = {
            'embed_dim': self.queries.dimension,
            'similarity_fn_name': ScoringFunction.DOT_PRODUCT,
        }
        self.mteb_model_meta = _meta(self.queries.name, self.settings, **space)

    def encode(
        self, inputs: Any, *, prompt_type: PromptType | None = None, **_: Any
    ) -> NDArray[np.float32]:
        """The vectors of a data loader's texts, float32 (n, d), in their order."""
        encoder = self.queries if prompt_type == PromptType.query else self.passages
        return encoder.embed(_column(inputs, 'text'))


class _Search(ABC):
    """What the search models share; subclasses build their searcher."""

    model_type = 'dense'

    def __init__(self, name: str, settings: Mapping[str, object]) -> None:
        self.settings = settings
        self.mteb_model_meta = _meta(name, settings, self.model_type)

    @abstractmethod
    def searcher(self, corpus: Corpus, folder: Path) -> Any:
        """Index a corpus into a new folder, and open it."""

    def index(
        self, corpus: Any, *, task_metadata: Any, num_proc: int | None = None, **_: Any
    ) -> None:
        """Index a task's corpus; this replaces an earlier one."""
        texts = _texts(corpus, PromptType.document, task_metadata, num_proc)
        self._size = len(texts)
        self._folder = TemporaryDirectory(prefix='pyserini-repbert-')
        passages = list(map(Passage, corpus['id'], texts))
        documents = Documents(task_metadata.name, passages, keep_empty=True)
        self._searcher = self.searcher(documents, Path(self._folder.name) / 'index')

    def search(
        self,
        queries: Any,
        *,
        task_metadata: Any,
        top_k: int,
        top_ranked: Mapping[str, Collection[str]] | None = None,
        num_proc: int | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """{qid: {docid: score}}, best first, at most `top_k`, and only docids of
        `top_ranked[qid]` if that is given.

        Parameters
        ----------
        queries : with columns id and text
        task_metadata : of the task
        top_k : hits of a query
        top_ranked : the candidates of a reranking task, by qid
        num_proc : processes that read the texts
        """
        qids = list(queries['id'])
        texts = _texts(queries, PromptType.query, task_metadata, num_proc)
        if top_ranked is None:
            run = self._searcher.rank(topics_of(texts, qids), None, top_k)
        else:
            run = {}
            for qid, text in zip(qids, texts, strict=True):
                ranking = self._rank_candidates(text, top_ranked.get(qid, ()))
                run[qid] = ranking[:top_k]
        return {qid: score_by_docid(ranking) for qid, ranking in run.items()}

    def _rank_candidates(self, query: str, docids: Collection[str]) -> Ranking:
        """The ranking of the passages with these docids."""
        ranking = self._searcher.rank([Query('', query)], None, self._size)['']
        return _select(ranking, docids)


def _select(ranking: Ranking, docids: Collection[str]) -> Ranking:
    """The hits with these docids."""
    wanted = set(docids)
    return Ranking.of(hit for hit in ranking if hit.docid in wanted)


class DenseSearch(_Search):
    """mteb's `SearchProtocol`: RepBERT's exact search.

    The parameters are as in `RepBertEncoder`.
    """

    def __init__(
        self, model_name: str | Path, device: str = 'cpu', precision: str = 'float32'
    ) -> None:
        self.model_name = model_name
        self.precision = precision
        self.encoder = RepBertEncoder(model_name, device=device, precision=precision)
        super().__init__(self.encoder.queries.name, self.encoder.settings)

    def searcher(self, corpus: Corpus, folder: Path) -> Any:
        return index_passages(
            corpus,
            self.encoder.passages,
            folder,
            checkpoint=str(self.model_name),
            device=self.encoder.device,
            precision=str(self.precision),
        )


class SparseSearch(_Search):
    """mteb's `SearchProtocol`: Lucene's BM25, query likelihood, RM3 or SDM, as the settings say;
    default: BM25.
    """

    model_type = 'sparse'

    def __init__(self, settings: SparseSettings | None = None) -> None:
        self.sparse_settings = settings or SparseSettings()
        super().__init__(self.sparse_settings.model, asdict(self.sparse_settings))

    def searcher(self, corpus: Corpus, folder: Path) -> LuceneSparseSearcher:
        build_lucene_index(corpus, folder)
        return LuceneSparseSearcher(folder, self.sparse_settings)


class HybridSearch(_Search):
    """mteb's `SearchProtocol`: a dense and a sparse search; `settings` are fusion's in
    `PipelineSpec`.
    """

    model_type = 'hybrid'

    def __init__(
        self,
        dense: DenseSearch,
        sparse: SparseSearch,
        method: str = FusionMethod.INTERLEAVE,
        **settings: Any,
    ) -> None:
        chosen = str(FusionMethod(method))
        self.dense = dense
        self.sparse = sparse
        self.spec = PipelineSpec.of({'fusion': chosen, **settings})
        identity = {
            'dense': dense.settings,
            'sparse': sparse.settings,
            'method': chosen,
            **settings,
        }
        dense_name = Path(dense.mteb_model_meta.name).name
        sparse_name = Path(sparse.mteb_model_meta.name).name
        super().__init__(f'{dense_name}-{chosen}-{sparse_name}', identity)

    def searcher(self, corpus: Corpus, folder: Path) -> Any:
        dense = self.dense.searcher(corpus, folder / 'dense')
        sparse = self.sparse.searcher(corpus, folder / 'sparse')
        searchers = [dense, sparse]
        if self.spec.sparse_first:
            searchers.reverse()
        return join_rankers(self.spec, searchers).first

    def _rank_candidates(self, query: str, docids: Collection[str]) -> Ranking:
        """The fusion of the rankings of these docids."""
        topics = [Query('', query)]
        runs = []
        for part in self._searcher.parts:
            ranking = part.rank(topics, None, self._size)['']
            runs.append({'': _select(ranking, docids)})
        fused: Ranking = self._searcher.fused(topics, runs, None)['']
        return fused


class RerankerCrossEncoder:
    """mteb's `CrossEncoderProtocol` over any of our rerankers, for reranking tasks."""

    def __init__(self, reranker: Reranker) -> None:
        self.reranker = reranker
        identity = reranker.identity()
        name = str(identity.get('name', identity['reranker']))
        self.mteb_model_meta = _meta(name, identity, 'cross-encoder')

    def predict(self, inputs1: Any, inputs2: Any, **_: Any) -> NDArray[np.floating]:
        """Scores of pairs of a query (`inputs1`) and a passage (`inputs2`), float (n,).

        The pairs of a query have to be adjacent: duoBERT compares their passages with each other.
        """
        texts = _column(inputs1, 'text')
        passages = _column(inputs2, 'text')
        qids = _column(inputs1, 'id') or texts
        docids = _column(inputs2, 'id') or [str(row) for row in range(len(passages))]
        queries = []
        lists = []
        for _, rows in groupby(range(len(texts)), lambda row: qids[row]):
            group = list(rows)
            queries.append(texts[group[0]])
            lists.append(Ranking.of(Candidate(docids[row], text=passages[row]) for row in group))
        scores = self.reranker.score_lists(queries, lists)
        if not scores:
            return np.empty(0)
        return np.concatenate(scores)
