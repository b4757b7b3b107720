"""Our rerankers as a ranker of the package `rerankers`. Tested with rerankers 0.10.0."""

from __future__ import annotations

from collections.abc import Sequence

from pyserini_repbert.errors import needs
from pyserini_repbert.interop.hits import reranked
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
        ((_, score),) = reranked(self.reranker, query, [doc], [None])
        return score

    def rank(
        self,
        query: str,
        docs: str | Document | Sequence[str] | Sequence[Document],
        doc_ids: Sequence[str] | Sequence[int] | None = None,
    ) -> RankedResults:
        """The documents by descending score, ranks from 1; equal scores keep the order that they
        came in.
        """
        listed = docs if isinstance(docs, (str, Document)) else list(docs)
        documents = prep_docs(listed, doc_ids) if listed else []
        docids = [
            None if document.doc_id is None else str(document.doc_id) for document in documents
        ]
        ranked = enumerate(
            reranked(self.reranker, query, [document.text for document in documents], docids), 1
        )
        results = [
            Result(document=documents[place], score=score, rank=rank)
            for rank, (place, score) in ranked
        ]
        return RankedResults(results=results, query=query, has_scores=True)
