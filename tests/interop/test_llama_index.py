"""LlamaIndex's retriever and node postprocessor over our searchers and rerankers."""

import asyncio

import pytest

pytest.importorskip('llama_index.core')

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from pyserini_repbert.interop.hits import hits_with_text
from pyserini_repbert.interop.llama_index import NodeRetriever, RerankerPostprocessor
from pyserini_repbert.ranking import Candidate


def _pairs(nodes):
    return [(node.node_id, node.score) for node in nodes]


def test_nodes_are_our_hits(searcher):
    retriever = NodeRetriever(searcher, k=4)
    assert isinstance(retriever, BaseRetriever)
    hits = searcher.search('the cat', 4)
    nodes = retriever.retrieve('the cat')
    assert _pairs(nodes) == [(hit.docid, hit.score) for hit in hits]
    assert [node.text for node in nodes] == searcher.texts([hit.docid for hit in hits])


def test_retrieving_asynchronously(searcher):
    retriever = NodeRetriever(searcher, k=4)
    nodes = asyncio.run(retriever.aretrieve('the cat'))
    assert _pairs(nodes) == _pairs(retriever.retrieve('the cat'))


def test_a_query_bundle_and_texts_from_elsewhere(searcher):
    assert len(NodeRetriever(searcher, texts=searcher).retrieve(QueryBundle('the cat'))) == 10


@pytest.fixture
def nodes(searcher):
    """The five best hits of 'the cat'."""
    return NodeRetriever(searcher, k=5).retrieve('the cat')


@pytest.mark.parametrize('system', ['mono', 'duo'])
def test_nodes_are_processed_as_hits_are_reranked(system, nodes, searcher, request):
    reranker = request.getfixturevalue(system)
    processor = RerankerPostprocessor(reranker=reranker, k=3)
    assert isinstance(processor, BaseNodePostprocessor)
    hits = reranker.rerank('the cat', hits_with_text(searcher, 'the cat', 5), 3)
    processed = processor.postprocess_nodes(nodes, query_str='the cat')
    assert _pairs(processed) == [(hit.docid, hit.score) for hit in hits]


def test_processing_changes_nothing_that_was_given(nodes, mono):
    before = _pairs(nodes)
    RerankerPostprocessor(reranker=mono).postprocess_nodes(nodes, query_str='the cat')
    assert _pairs(nodes) == before


def test_processing_a_query_bundle_and_asynchronously(nodes, mono):
    processor = RerankerPostprocessor(reranker=mono, k=3)
    processed = processor.postprocess_nodes(nodes, query_str='the cat')
    of_bundle = processor.postprocess_nodes(nodes, QueryBundle('the cat'))
    assert _pairs(of_bundle) == _pairs(processed)
    later = asyncio.run(processor.apostprocess_nodes(nodes, query_str='the cat'))
    assert _pairs(later) == _pairs(processed)


def test_a_processor_is_described_without_its_model(mono):
    processor = RerankerPostprocessor(reranker=mono)
    assert processor.class_name() == 'RerankerPostprocessor'
    assert 'reranker' not in processor.to_dict()


def test_nodes_of_one_id_are_ranked_each_by_its_text(mono):
    texts = ['the cat', 'a dog', 'the cat sat']
    nodes = [NodeWithScore(node=TextNode(id_='a', text=text)) for text in texts]
    processed = RerankerPostprocessor(reranker=mono).postprocess_nodes(nodes, query_str='cat')
    expected = mono.rerank('cat', [Candidate(text, text=text) for text in texts])
    assert [node.text for node in processed] == [hit.docid for hit in expected]
