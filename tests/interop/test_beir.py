"""BEIR's own evaluation over a few passages."""

import pytest

pytest.importorskip('beir')

from beir.retrieval.evaluation import EvaluateRetrieval

from pyserini_repbert.encode import RepBertDocumentEncoder, RepBertQueryEncoder
from pyserini_repbert.interop.beir import BeirSearch

CORPUS = {
    'd1': {'title': '', 'text': 'the cat sat on the mat'},
    'd2': {'title': 'red', 'text': 'dog ran'},
    'q2': {'text': 'red dog'},
}
QUERIES = {'q1': 'cat mat', 'q2': 'red dog'}


def test_scores_are_inner_products_without_the_document_of_the_querys_id(tiny_checkpoint):
    checkpoint = tiny_checkpoint()
    evaluation = EvaluateRetrieval(BeirSearch(checkpoint), k_values=[1, 2], score_function='dot')
    scores = evaluation.retrieve(CORPUS, QUERIES)
    texts = ['the cat sat on the mat', 'red dog ran', 'red dog']
    vectors = RepBertDocumentEncoder(checkpoint).encode(texts)
    products = RepBertQueryEncoder(checkpoint).encode_batch(list(QUERIES.values())) @ vectors.T
    for qid, row in zip(QUERIES, products, strict=True):
        score_of = dict(zip(CORPUS, row, strict=True))
        score_of.pop(qid, None)
        best_two = sorted(score_of, key=score_of.get, reverse=True)[:2]
        assert scores[qid] == pytest.approx(
            {docid: score_of[docid] for docid in best_two}, rel=1e-5
        )


def test_beirs_measures(tiny_checkpoint):
    evaluation = EvaluateRetrieval(BeirSearch(tiny_checkpoint()), k_values=[1, 2])
    scores = evaluation.retrieve(CORPUS, QUERIES)['q1']
    first = next(iter(scores))
    ndcg, *_ = evaluation.evaluate({'q1': {first: 1}}, {'q1': scores}, [1])
    assert ndcg['NDCG@1'] == 1.0
