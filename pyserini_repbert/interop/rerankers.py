"""Our rerankers as a ranker of the package `rerankers`. Tested with rerankers 0.10.0."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.errors import needs
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
    ) -> RankedResults:
        """The documents by descending score, ranks from 1; equal scores keep the order that they
        came in.
        """
        if not isinstance(docs, (str, Document)):
            docs = list(docs)
        documents = prep_docs(docs, doc_ids) if docs else []
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
