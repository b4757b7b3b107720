import asyncio

import pytest

pytest.importorskip('llama_index.core')

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import QueryBundle

from pyserini_repbert.interop.hits import hits_with_text
from pyserini_repbert.interop.llama_index import NodeRetriever, RerankerPostprocessor


def _pairs(nodes):
    return [(node.node_id, node.score) for node in nodes]


def test_nodes_are_our_hits(searcher):
    retriever = NodeRetriever(searcher, k=4)
    assert isinstance(retriever, BaseRetriever)
    hits = searcher.search('the cat', 4)
    nodes = retriever.retrieve('the cat')
    assert _pairs(nodes) == [(hit.docid, hit.score) for hit in hits]
    assert [node.text for node in nodes] == searcher.texts([hit.docid for hit in hits])
    assert _pairs(asyncio.run(retriever.aretrieve('the cat'))) == _pairs(nodes)
    assert len(NodeRetriever(searcher, texts=searcher).retrieve(QueryBundle('the cat'))) == 10


@pytest.mark.parametrize('system', ['mono', 'duo'])
def test_processed_as_reranked(system, searcher, request):
    reranker = request.getfixturevalue(system)
    processor = RerankerPostprocessor(reranker=reranker, k=3)
    assert (
        isinstance(processor, BaseNodePostprocessor)
        and processor.class_name() == 'RerankerPostprocessor'
    )
    nodes = NodeRetriever(searcher, k=5).retrieve('the cat')
    before = _pairs(nodes)
    own = reranker.rerank('the cat', hits_with_text(searcher, 'the cat', 5), 3)
    found = processor.postprocess_nodes(nodes, query_str='the cat')
    assert _pairs(found) == [(hit.docid, hit.score) for hit in own]
    assert _pairs(nodes) == before, 'what was given is not changed'
    assert _pairs(processor.postprocess_nodes(nodes, QueryBundle('the cat'))) == _pairs(found)
    assert _pairs(asyncio.run(processor.apostprocess_nodes(nodes, query_str='the cat'))) == _pairs(
        found
    )
    assert 'reranker' not in processor.to_dict()
