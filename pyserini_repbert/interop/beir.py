"""BEIR's `BaseSearch` over RepBERT's exact search; tested with beir 2.2.0."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.corpus import encode_corpus
from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.pipeline.opening import open_searcher
from pyserini_repbert.pipeline.spec import Machine, PipelineSpec
from pyserini_repbert.ranking import topics_of
from pyserini_repbert.systems.encoders import document_encoder

with needs('beir', __name__, 'beir'):
    from beir.retrieval.search import BaseSearch


class BeirSearch(BaseSearch):  # type: ignore[misc]
    """RepBERT's exact search, for `EvaluateRetrieval(BeirSearch('repbert-demo'),
    score_function='dot')`.
    """

    def __init__(
        self, encoder: str | Path, device: str = 'cpu', precision: str = 'float32'
    ) -> None:
        self.encoder = str(encoder)
        self.device = device
        self.precision = precision
        self.passages = document_encoder(encoder, device, precision=precision)

    def search(
        self,
        corpus: Mapping[str, Mapping[str, str]],
        queries: Mapping[str, str],
        top_k: int,
        *_: Any,
        **__: Any,
    ) -> dict[str, dict[str, float]]:
        """{qid: {docid: score}}, the `top_k` best; as in BEIR's own searches, without the
        document of the same id.
        """
        passages = [
            Passage(key, f'{texts.get("title", "")} {texts["text"]}'.strip())
            for key, texts in corpus.items()
        ]
        with TemporaryDirectory() as folder:
            encode_corpus(passages, self.passages, Path(folder) / 'index')
            spec = PipelineSpec(
                index=f'{folder}/index', encoder=self.encoder, precision=self.precision
            )
            searcher = open_searcher(spec, Machine(devices=(self.device,)))
            run = searcher.rank(topics_of(list(queries.values()), list(queries)), None, top_k + 1)
        others = {
            qid: [(hit.docid, hit.score) for hit in hits if hit.docid != qid]
            for qid, hits in run.items()
        }
        return {qid: dict(hits[:top_k]) for qid, hits in others.items()}

    def encode(self, *_: Any, **__: Any) -> None:
        """Raises InputError: this package stores vectors in index folders, not in BEIR's files."""
        raise InputError(
            'BEIR stores vectors with encode: use the command encode, and search its index folder'
        )

    search_from_files = encode
