"""The package `rerankers` over our rerankers."""

import asyncio

import pytest

pytest.importorskip('rerankers')

from rerankers import Document
from rerankers.models.ranker import BaseRanker

from pyserini_repbert.errors import InputError
from pyserini_repbert.interop.rerankers import RerankerRanker
from pyserini_repbert.ranking import Candidate

DOCS = ['the red cat', 'a dog ran', 'the bird sat on the tree']


def _rerank(reranker, docids):
    """Our own reranker's hits of the three documents."""
    texts = zip(docids, DOCS, strict=True)
    return reranker.rerank('the cat', [Candidate(docid, text=text) for docid, text in texts])


@pytest.mark.parametrize('system', ['mono', 'duo'])
def test_scores_and_order_are_our_own(system, request):
    reranker = request.getfixturevalue(system)
    ranker = RerankerRanker(reranker)
    assert isinstance(ranker, BaseRanker)
    hits = _rerank(reranker, '012')
    results = ranker.rank('the cat', DOCS)
    assert [str(result.doc_id) for result in results] == [hit.docid for hit in hits]
    assert [result.score for result in results] == [hit.score for hit in hits]


def test_results_have_ranks_scores_and_the_query(mono):
    results = RerankerRanker(mono).rank('the cat', DOCS)
    assert [result.rank for result in results] == [1, 2, 3]
    assert results.has_scores
    assert results.query == 'the cat'
    assert [result.rank for result in results.top_k(2)] == [1, 2]


def test_scores_are_found_by_docid(mono):
    results = RerankerRanker(mono).rank('the cat', DOCS, doc_ids=['x', 'y', 'z'])
    score_of = {hit.docid: hit.score for hit in _rerank(mono, 'xyz')}
    assert results.get_score_by_docid('y') == score_of['y']


def test_documents_of_the_package_keep_what_they_hold(mono):
    documents = []
    for text, docid in zip(DOCS, 'abc', strict=True):
        documents.append(Document(text, doc_id=docid, metadata={'n': docid}))
    results = RerankerRanker(mono).rank('the cat', documents)
    assert [result.doc_id for result in results] == [hit.docid for hit in _rerank(mono, 'abc')]
    assert results[0].document in documents


def test_documents_need_no_id(mono):
    results = RerankerRanker(mono).rank('the cat', [Document(text) for text in DOCS])
    assert [result.score for result in results] == [hit.score for hit in _rerank(mono, '012')]


def test_one_text_is_scored_alone(mono):
    ranker = RerankerRanker(mono)
    (hit,) = mono.rerank('the cat', [Candidate('1', text=DOCS[1])])
    assert ranker.score('the cat', DOCS[1]) == hit.score
    assert ranker.rank('the cat', DOCS[1])[0].score == hit.score


def test_no_documents_have_no_results(mono):
    assert RerankerRanker(mono).rank('the cat', []).results_count() == 0


def test_texts_of_one_docid_are_ranked_each_by_itself(mono):
    results = RerankerRanker(mono).rank('the cat', DOCS, ['a', 'b', 'a'])
    hits = _rerank(mono, '012')
    assert [result.score for result in results] == [hit.score for hit in hits]
    assert [result.text for result in results] == [DOCS[int(hit.docid)] for hit in hits]


def test_results_have_the_metadata_that_were_given(mono):
    metadata = [{'n': number} for number in range(3)]
    results = RerankerRanker(mono).rank('the cat', DOCS, metadata=metadata)
    assert [DOCS[result.document.metadata['n']] for result in results] == [
        result.text for result in results
    ]
    with pytest.raises(InputError, match='3 documents have 2 metadata'):
        RerankerRanker(mono).rank('the cat', DOCS, metadata=metadata[:2])


def test_asynchronously(mono):
    results = asyncio.run(RerankerRanker(mono).rank_async('the cat', DOCS))
    assert [result.score for result in results] == [hit.score for hit in _rerank(mono, '012')]
