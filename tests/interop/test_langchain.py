"""LangChain's retriever and document compressor over our searchers and rerankers."""

import asyncio

import pytest

pytest.importorskip('langchain_core')
pytest.importorskip('langchain_tests')

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests

from pyserini_repbert.interop.hits import hits_with_text
from pyserini_repbert.interop.langchain import DocumentRetriever, RerankerCompressor
from pyserini_repbert.ranking import Candidate


def test_documents_are_our_hits(searcher):
    retriever = DocumentRetriever(searcher=searcher, k=4)
    assert isinstance(retriever, BaseRetriever)
    hits = searcher.search('the cat', 4)
    documents = retriever.invoke('the cat')
    assert [document.id for document in documents] == [hit.docid for hit in hits]
    texts = searcher.texts([hit.docid for hit in hits])
    assert [document.page_content for document in documents] == texts
    metadata = [{'docid': hit.docid, 'score': hit.score} for hit in hits]
    assert [document.metadata for document in documents] == metadata


def test_a_retriever_gives_ten_documents_unless_it_is_told(searcher):
    assert len(DocumentRetriever(searcher=searcher).invoke('the cat')) == 10


def test_retrieving_asynchronously(searcher):
    retriever = DocumentRetriever(searcher=searcher, k=4)
    assert asyncio.run(retriever.ainvoke('the cat')) == retriever.invoke('the cat')


@pytest.fixture
def retriever(searcher):
    """A retriever of five documents."""
    return DocumentRetriever(searcher=searcher, k=5)


@pytest.mark.parametrize('system', ['mono', 'duo'])
def test_documents_are_compressed_as_hits_are_reranked(system, retriever, searcher, request):
    reranker = request.getfixturevalue(system)
    compressor = RerankerCompressor(reranker=reranker, k=3)
    assert isinstance(compressor, BaseDocumentCompressor)
    hits = reranker.rerank('the cat', hits_with_text(searcher, 'the cat', 5), 3)
    documents = compressor.compress_documents(retriever.invoke('the cat'), 'the cat')
    assert [document.id for document in documents] == [hit.docid for hit in hits]
    scores = [document.metadata['relevance_score'] for document in documents]
    assert scores == [hit.score for hit in hits]


def test_compressing_keeps_the_searchers_scores_and_what_was_given(retriever, mono):
    given = retriever.invoke('the cat')
    copies = [document.model_copy(deep=True) for document in given]
    score_of = {document.id: document.metadata['score'] for document in given}
    compressor = RerankerCompressor(reranker=mono, k=3)
    for document in compressor.compress_documents(given, 'the cat'):
        assert document.metadata['score'] == score_of[document.id]
    assert given == copies


def test_compressing_asynchronously_and_in_a_chain(retriever, mono):
    compressor = RerankerCompressor(reranker=mono, k=3)
    given = retriever.invoke('the cat')
    compressed = compressor.compress_documents(given, 'the cat')
    assert asyncio.run(compressor.acompress_documents(given, 'the cat')) == compressed
    compress = RunnableLambda(lambda given: compressor.compress_documents(given, 'the cat'))
    assert (retriever | compress).invoke('the cat') == compressed


def test_documents_of_others_need_no_id(mono):
    documents = [
        Document('the cat'),
        Document('a dog ran'),
        Document('the cat', metadata={'source': 's'}),
    ]
    compressed = RerankerCompressor(reranker=mono).compress_documents(documents, 'cat')
    texts = sorted(document.page_content for document in compressed)
    assert texts == ['a dog ran', 'the cat', 'the cat']


def test_no_documents_stay_none(mono):
    assert RerankerCompressor(reranker=mono).compress_documents([], 'cat') == []


def test_documents_of_one_id_are_ranked_each_by_its_text(mono):
    twice = [Document('the cat', id='a'), Document('a dog', id='a'), Document('the cat sat')]
    texts = [document.page_content for document in twice]
    compressed = RerankerCompressor(reranker=mono).compress_documents(twice, 'cat')
    expected = mono.rerank('cat', [Candidate(text, text=text) for text in texts])
    assert [document.page_content for document in compressed] == [hit.docid for hit in expected]


def test_a_call_may_ask_for_another_number_of_documents(searcher):
    retriever = DocumentRetriever(searcher=searcher, k=4)
    documents = retriever.invoke('the cat', k=1)
    assert [document.id for document in documents] == [searcher.search('the cat', 1)[0].docid]
    assert len(retriever.invoke('the cat')) == 4


class TestLangChainsOwn(RetrieversIntegrationTests):
    """The tests that LangChain has for every retriever."""

    @pytest.fixture(autouse=True)
    def _searcher(self, searcher):
        self._searcher_of_test = searcher

    @property
    def retriever_constructor(self):
        return DocumentRetriever

    @property
    def retriever_constructor_params(self):
        return {'searcher': self._searcher_of_test}

    @property
    def retriever_query_example(self):
        return 'the cat'
