"""Searchers as retrievers of LangChain, rerankers as its document compressors.

Tested with langchain-core 1.8.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyserini_repbert.errors import needs
from pyserini_repbert.interop.hits import (
    excerpt_metadata,
    open_named,
    rerank_texts,
    retrieved_hits,
)
from pyserini_repbert.rerank.base import Reranker

with needs('langchain-core', __name__, 'langchain'):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, field_validator


class DocumentRetriever(BaseRetriever):  # type: ignore[misc]
    """A `BaseRetriever`: documents are passages, with `docid` and `score` in their metadata.

    Its fields are the parameters of `interop.hits.retrieved_hits`; `searcher` may be the folder of
    an index or a collection. Of a document of a collection, the content is the passage that
    decided, and the metadata have the document's title, and the passage's number and characters.
    What extensions say of hits, further fields ask for: with `confidence=True`, the metadata have
    the `probability` that the document is relevant.
    `invoke(query, k=5)` asks for 5 documents instead of `k`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra='allow')

    searcher: Any
    k: int = 10
    texts: Any = None

    @field_validator('searcher')
    @classmethod
    def _opened(cls, searcher: Any) -> Any:
        return open_named(searcher)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,
        k: int | None = None,
    ) -> list[Document]:
        if k is None:
            k = self.k
        documents = []
        for hit in retrieved_hits(self.searcher, query, k, self.texts, self.model_extra or {}):
            metadata = {'docid': hit.docid, 'score': hit.score, **excerpt_metadata(hit)}
            documents.append(Document(id=hit.docid, page_content=hit.text, metadata=metadata))
        return documents


class RerankerCompressor(BaseDocumentCompressor):  # type: ignore[misc]
    """A `BaseDocumentCompressor`: the `k` best documents in a new order, with `relevance_score`
    in their metadata.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    reranker: Reranker
    k: int | None = None

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """New documents, best first. A docid is `docid` of the metadata, otherwise the id."""
        texts = [document.page_content for document in documents]
        docids = [document.metadata.get('docid', document.id) for document in documents]
        ranked_documents = []
        for ranked in rerank_texts(self.reranker, query, texts, docids, self.k):
            document = documents[ranked.position]
            metadata = {**document.metadata, 'relevance_score': ranked.score}
            ranked_documents.append(document.model_copy(update={'metadata': metadata}))
        return ranked_documents
