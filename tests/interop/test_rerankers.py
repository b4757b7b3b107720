import asyncio

import pytest

pytest.importorskip('rerankers')

from rerankers import Document
from rerankers.models.ranker import BaseRanker

from pyserini_repbert.errors import InputError
from pyserini_repbert.interop.rerankers import RerankerRanker
from pyserini_repbert.ranking import Candidate

DOCS = ['the red cat', 'a dog ran', 'the bird sat on the tree']


def _own(reranker, query, names='012'):
    hits = reranker.rerank(
        query, [Candidate(name, text=text) for name, text in zip(names, DOCS, strict=True)]
    )
    return [(hit.docid, hit.score) for hit in hits]


@pytest.mark.parametrize('system', ['mono', 'duo'])
def test_scores_and_order_are_our_own(system, request):
    reranker = request.getfixturevalue(system)
    ranker = RerankerRanker(reranker)
    assert isinstance(ranker, BaseRanker)
    own = _own(reranker, 'the cat')
    results = ranker.rank('the cat', DOCS)
    assert [(str(result.doc_id), result.score) for result in results] == own
    assert [result.rank for result in results] == [1, 2, 3]
    assert results.has_scores and results.query == 'the cat'
    assert [result.score for result in results.top_k(2)] == [score for _, score in own[:2]]
    assert (
        ranker.rank('the cat', DOCS, doc_ids=['x', 'y', 'z']).get_score_by_docid('y')
        == dict(own)['1']
    )


def test_documents_strings_and_nothing(mono):
    ranker = RerankerRanker(mono)
    documents = [
        Document(text, doc_id=name, metadata={'n': name})
        for text, name in zip(DOCS, 'abc', strict=True)
    ]
    results = ranker.rank('the cat', documents)
    assert [(result.doc_id, result.score) for result in results] == _own(mono, 'the cat', 'abc')
    assert results[0].document in documents
    unnamed = ranker.rank('the cat', [Document(text) for text in DOCS])
    assert [result.score for result in unnamed] == [score for _, score in _own(mono, 'the cat')]
    assert ranker.rank('the cat', 'a dog ran')[0].score == ranker.score('the cat', 'a dog ran')
    assert (
        ranker.score('the cat', DOCS[1])
        == mono.rerank('the cat', [Candidate('1', text=DOCS[1])])[0].score
    )
    assert ranker.rank('the cat', []).results_count() == 0
    with pytest.raises(InputError, match='comes twice'):
        ranker.rank('the cat', DOCS, ['a', 'b', 'a'])


def test_asynchronously(mono):
    results = asyncio.run(RerankerRanker(mono).rank_async('the cat', DOCS))
    assert [(str(result.doc_id), result.score) for result in results] == _own(mono, 'the cat')
