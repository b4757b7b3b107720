"""Our rerankers as a ranker of the package `rerankers`. Tested with rerankers 0.10.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.interop.hits import rerank_texts
from pyserini_repbert.rerank.base import Reranker

with needs('rerankers', __name__, 'rerankers'):
    from rerankers.documents import Document
    from rerankers.models.ranker import BaseRanker
    from rerankers.results import RankedResults, Result
    from rerankers.utils import prep_docs


class RerankerRanker(BaseRanker):  # type: ignore[misc]
    """A `BaseRanker` over any of our rerankers; `verbose` is the base class's, nothing is
    printed.
    """

    def __init__(self, reranker: Reranker, verbose: int = 0) -> None:
        self.reranker = reranker
        self.verbose = verbose

    def score(self, query: str, doc: str) -> float:
        """The score of one text, as if it were the only candidate."""
        (ranked,) = rerank_texts(self.reranker, query, [doc], [None])
        return ranked.score

    def rank(
        self,
        query: str,
        docs: str | Document | Sequence[str] | Sequence[Document],
        doc_ids: Sequence[str] | Sequence[int] | None = None,
        metadata: Sequence[dict[str, Any]] | None = None,
    ) -> RankedResults:
        """The documents by descending score, ranks from 1; equal scores keep the order that they
        came in.

        Parameters
        ----------
        query : a question
        docs : texts, or documents of the package
        doc_ids : one for each document
        metadata : one for each document, which its result has

        Raises InputError unless there are as many metadata as documents.
        """
        if not isinstance(docs, (str, Document)):
            docs = list(docs)
        documents = prep_docs(docs, doc_ids) if docs else []
        if metadata is not None:
            documents = _with_metadata(documents, metadata)
        texts = [document.text for document in documents]
        docids: list[str | None] = []
        for document in documents:
            docid = document.doc_id
            docids.append(None if docid is None else str(docid))
        results = []
        for rank, ranked in enumerate(rerank_texts(self.reranker, query, texts, docids), 1):
            document = documents[ranked.position]
            results.append(Result(document=document, score=ranked.score, rank=rank))
        return RankedResults(results=results, query=query, has_scores=True)


def _with_metadata(
    documents: Sequence[Document], metadata: Sequence[dict[str, Any]]
) -> list[Document]:
    """Copies of documents with these metadata."""
    if len(metadata) != len(documents):
        raise InputError(
            f'{len(documents)} documents have {len(metadata)} metadata: give one for each'
        )
    return [
        Document(document.text, doc_id=document.doc_id, metadata=dict(values))
        for document, values in zip(documents, metadata, strict=True)
    ]
