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


def test_scores_and_beirs_measures(tiny_checkpoint):
    checkpoint = tiny_checkpoint()
    evaluation = EvaluateRetrieval(BeirSearch(checkpoint), k_values=[1, 2], score_function='dot')
    found = evaluation.retrieve(CORPUS, QUERIES)
    vectors = RepBertDocumentEncoder(checkpoint).encode(
        ['the cat sat on the mat', 'red dog ran', 'red dog']
    )
    expected = RepBertQueryEncoder(checkpoint).encode_batch(list(QUERIES.values())) @ vectors.T
    for row, qid in enumerate(QUERIES):
        own = {docid: expected[row, column] for column, docid in enumerate(CORPUS) if docid != qid}
        best = dict(sorted(own.items(), key=lambda item: -item[1])[:2])
        assert found[qid] == pytest.approx(best, rel=1e-5)
    ndcg, *_ = evaluation.evaluate({'q1': {next(iter(found['q1'])): 1}}, {'q1': found['q1']}, [1])
    assert ndcg['NDCG@1'] == 1.0
