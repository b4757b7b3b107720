"""Our searchers as retrievers of LangChain, our rerankers as its document compressors.

Tested with langchain-core 1.7.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyserini_repbert.errors import needs
from pyserini_repbert.interop.hits import hits_with_text, reranked
from pyserini_repbert.rerank.base import Reranker

with needs('langchain-core', __name__, 'langchain'):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict

DOCID = 'docid'  # keys of a document's metadata
SCORE = 'score'
RELEVANCE = 'relevance_score'  # as LangChain's own compressors have it


class SearcherRetriever(BaseRetriever):  # type: ignore[misc]
    """A `BaseRetriever`: documents are passages, with `docid` and `score` in their metadata.

    Parameters
    ----------
    searcher, k, texts : as in `interop.hits.hits_with_text`

    Raises
    ------
    InputError
        by `invoke`, for a hit without text
    """

    searcher: Any
    k: int = 10
    texts: Any = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun | None = None
    ) -> list[Document]:
        return [
            Document(id=hit.docid, page_content=hit.text, metadata={DOCID: hit.docid, SCORE: hit.score})
            for hit in hits_with_text(self.searcher, query, self.k, self.texts)
        ]


class RerankerCompressor(BaseDocumentCompressor):  # type: ignore[misc]
    """A `BaseDocumentCompressor`: the documents in a new order, with `relevance_score` in their metadata.

    Parameters
    ----------
    reranker : monoBERT, duoBERT, EPIC or CEDR
    k : how many documents to return; default: all
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    reranker: Reranker
    k: int | None = None

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """New documents, best first; those given are not changed.

        A document's docid is `docid` of its metadata, or else its id.

        Raises
        ------
        InputError
            for a docid given twice, and what `reranker.rerank` raises
        """
        texts = [document.page_content for document in documents]
        docids = [document.metadata.get(DOCID, document.id) for document in documents]
        return [
            documents[place].model_copy(update={'metadata': {**documents[place].metadata, RELEVANCE: score}})
            for place, score in reranked(self.reranker, query, texts, docids, self.k)
        ]
