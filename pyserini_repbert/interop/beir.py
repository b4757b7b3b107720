"""BEIR's `BaseSearch` over RepBERT's exact search; tested with beir 2.2.0."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.interop.hits import index_passages, score_by_docid
from pyserini_repbert.ranking import Ranking, topics_of
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

        Parameters
        ----------
        corpus : docid -> title and text
        queries : qid -> text
        top_k : hits of a query
        """
        passages = []
        for docid, texts in corpus.items():
            text = f'{texts.get("title", "")} {texts["text"]}'
            passages.append(Passage(docid, text.strip()))
        with TemporaryDirectory() as folder:
            searcher = index_passages(
                passages,
                self.passages,
                Path(folder) / 'index',
                checkpoint=self.encoder,
                device=self.device,
                precision=self.precision,
            )
            topics = topics_of(list(queries.values()), list(queries))
            run = searcher.rank(topics, None, top_k + 1)
        scores = {}
        for qid, ranking in run.items():
            others = Ranking.of(hit for hit in ranking if hit.docid != qid)
            scores[qid] = score_by_docid(others[:top_k])
        return scores

    def encode(self, *_: Any, **__: Any) -> None:
        """Raises InputError: this package stores vectors in index folders, not in BEIR's files."""
        raise InputError(
            'BEIR stores vectors with encode: use the command encode, and search its index folder'
        )

    search_from_files = encode
