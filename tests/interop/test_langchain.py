import asyncio

import pytest

pytest.importorskip('langchain_core')

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from pyserini_repbert.errors import InputError
from pyserini_repbert.interop.langchain import DocumentRetriever, RerankerCompressor


def test_documents_are_our_hits(searcher):
    retriever = DocumentRetriever(searcher=searcher, k=4)
    assert isinstance(retriever, BaseRetriever)
    hits = searcher.search('the cat', 4)
    found = retriever.invoke('the cat')
    assert [(item.metadata['docid'], item.metadata['score']) for item in found] == [
        (h.docid, h.score) for h in hits
    ]
    assert [item.page_content for item in found] == searcher.texts([hit.docid for hit in hits])
    assert [item.id for item in found] == [hit.docid for hit in hits]
    assert asyncio.run(retriever.ainvoke('the cat')) == found
    assert len(DocumentRetriever(searcher=searcher).invoke('the cat')) == 10


@pytest.mark.parametrize('system', ['mono', 'duo'])
def test_compressed_as_reranked(system, searcher, request):
    from pyserini_repbert.interop.hits import hits_with_text

    reranker = request.getfixturevalue(system)
    retriever = DocumentRetriever(searcher=searcher, k=5)
    compressor = RerankerCompressor(reranker=reranker, k=3)
    assert isinstance(compressor, BaseDocumentCompressor)
    given = retriever.invoke('the cat')
    copies = [document.model_copy(deep=True) for document in given]
    own = reranker.rerank('the cat', hits_with_text(searcher, 'the cat', 5), 3)
    found = compressor.compress_documents(given, 'the cat')
    assert [(item.metadata['docid'], item.metadata['relevance_score']) for item in found] == [
        (hit.docid, hit.score) for hit in own
    ]
    first = {document.id: document.metadata['score'] for document in given}
    assert [item.metadata['score'] for item in found] == [first[hit.docid] for hit in own], (
        "the searcher's stays"
    )
    assert given == copies, 'what was given is not changed'
    assert asyncio.run(compressor.acompress_documents(given, 'the cat')) == found
    chain = retriever | RunnableLambda(
        lambda documents: compressor.compress_documents(documents, 'the cat')
    )
    assert chain.invoke('the cat') == found


def test_documents_of_others(mono):
    compressor = RerankerCompressor(reranker=mono)
    documents = [
        Document('the cat'),
        Document('a dog ran'),
        Document('the cat', metadata={'source': 's'}),
    ]
    found = compressor.compress_documents(documents, 'cat')
    assert sorted(item.page_content for item in found) == ['a dog ran', 'the cat', 'the cat']
    assert compressor.compress_documents([], 'cat') == []
    twice = [Document('the cat', id='a'), Document('a dog', id='a')]
    with pytest.raises(InputError, match='comes twice'):
        compressor.compress_documents(twice, 'cat')
