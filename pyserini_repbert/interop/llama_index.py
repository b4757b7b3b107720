"""Searchers as retrievers of LlamaIndex, rerankers as its node postprocessors; a node's id is its
docid.

Tested with llama-index-core 0.14.25.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pyserini_repbert.data.passages import PassageTexts
from pyserini_repbert.errors import InputError, needs
from pyserini_repbert.interop.hits import (
    excerpt_metadata,
    open_named,
    rerank_texts,
    retrieved_hits,
)
from pyserini_repbert.rerank.base import Reranker

with needs('llama-index-core', __name__, 'llama-index'):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

# The parameters of `BaseRetriever`.
_OF_BASE = ('callback_manager', 'object_map', 'objects', 'verbose')


class NodeRetriever(BaseRetriever):  # type: ignore[misc]
    """A `BaseRetriever`; its parameters are as in `interop.hits.retrieved_hits`.

    `searcher` may be the folder of an index or a collection. Of a document of a collection, the
    node's text is the passage that decided, and the metadata have the document's title, and the
    passage's number and characters, and what extensions say of the hit, as further parameters ask:
    with `confidence=True` the `probability` that the document is relevant. No model reads them.

    `callback_manager`, `object_map`, `objects` and `verbose` are of `BaseRetriever`.
    """

    def __init__(
        self,
        searcher: Any,
        k: int = 10,
        texts: PassageTexts | None = None,
        **further: Any,
    ) -> None:
        settings = {name: further.pop(name) for name in _OF_BASE if name in further}
        super().__init__(**settings)
        self.searcher = open_named(searcher)
        self.k = k
        self.texts = texts
        self.of_extensions = further

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        hits = retrieved_hits(self.searcher, query, self.k, self.texts, self.of_extensions)
        nodes = []
        for hit in hits:
            metadata = excerpt_metadata(hit)
            node = TextNode(
                id_=hit.docid,
                text=hit.text,
                metadata=metadata,
                start_char_idx=metadata.get('start'),
                end_char_idx=metadata.get('end'),
                excluded_llm_metadata_keys=list(metadata),
                excluded_embed_metadata_keys=list(metadata),
            )
            nodes.append(NodeWithScore(node=node, score=hit.score))
        return nodes

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class RerankerPostprocessor(BaseNodePostprocessor):  # type: ignore[misc]
    """A `BaseNodePostprocessor`: the `k` best nodes in a new order, with new scores."""

    reranker: Reranker = Field(exclude=True)
    k: int | None = None

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex serialises it."""
        return cls.__name__

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InputError(
                'no query was given: a reranker needs one, give query_str or query_bundle'
            )
        texts = [node.get_content() for node in nodes]
        docids = [node.node_id for node in nodes]
        query = query_bundle.query_str
        return [
            NodeWithScore(node=nodes[ranked.position].node, score=ranked.score)
            for ranked in rerank_texts(self.reranker, query, texts, docids, self.k)
        ]
