"""Feedback of dense search: by hand, as Pyserini has it, in bundles and collections."""

import numpy as np
import pytest

from pyserini_repbert.collection import Collection
from pyserini_repbert.encode import RepBertDocumentEncoder, encode_corpus
from pyserini_repbert.errors import InputError
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.pipeline.opening import open_pipeline
from pyserini_repbert.pipeline.spec import PipelineSpec
from pyserini_repbert.ranking import Query, Ranker
from pyserini_repbert.search import DenseSearcher
from pyserini_repbert.search.feedback import FeedbackMethod, VectorFeedback

TOPICS = [Query('1', 'cat sat on the mat'), Query('2', 'red fish in the sea')]


@pytest.fixture
def bundle(tiny_checkpoint, corpus_file, tmp_path):
    encoder = RepBertDocumentEncoder(tiny_checkpoint('encoder'))
    encode_corpus(open_corpus(corpus_file(30)), encoder, tmp_path / 'bundle')
    return tmp_path / 'bundle'


def test_by_hand():
    query = np.array([1.0, 0.0], np.float32)
    hits = np.array([[0.0, 1.0], [0.0, 3.0]], np.float32)
    average = VectorFeedback.parse('average')
    np.testing.assert_allclose(average.expand(query, hits), [1 / 3, 4 / 3], rtol=1e-6)
    rocchio = VectorFeedback.parse('rocchio:alpha=0.5,beta=2,gamma=1,bottomk=1')
    np.testing.assert_allclose(rocchio.expand(query, hits), [0.5, 2 * 2 - 3], rtol=1e-6)
    np.testing.assert_array_equal(rocchio.expand(query, hits[:0]), query)


def test_settings():
    assert VectorFeedback.parse('rocchio') == VectorFeedback(FeedbackMethod.ROCCHIO)
    assert VectorFeedback.parse('average:depth=5').depth == 5
    assert VectorFeedback.parse('rocchio:bottomk=0').bottomk == 0
    for text, said in [
        ('mean', "feedback method 'mean' is unknown: expected one of average, rocchio"),
        ('average:alpha=1', 'expected average:depth='),
        ('rocchio:depth=0', 'depth has to be a number'),
        ('rocchio:alpha=nan', 'alpha has to be a number'),
        ('rocchio:beta=-1', 'beta has to be a number'),
        ('rocchio:', 'expected rocchio:depth='),
    ]:
        with pytest.raises(InputError) as error:
            VectorFeedback.parse(text)
        assert said in str(error.value)


def average(query, hits):
    """As `DenseVectorAveragePrf` of Pyserini."""
    return np.mean(np.vstack((query, hits)), axis=0)


def rocchio(query, hits):
    """As Pyserini's `DenseVectorRocchioPrf`: alpha 0.4, beta 0.6, gamma 0.1, topk 3, bottomk 2."""
    return 0.4 * query + 0.6 * np.mean(hits[:3], axis=0) - 0.1 * np.mean(hits[-2:], axis=0)


@pytest.mark.parametrize(
    ('text', 'move'),
    [
        ('average:depth=4', average),
        ('rocchio:depth=5,alpha=0.4,beta=0.6,gamma=0.1,topk=3,bottomk=2', rocchio),
    ],
)
def test_a_bundle_is_searched_as_pyserini_would(bundle, text, move):
    feedback = VectorFeedback.parse(text)
    plain = DenseSearcher(bundle)
    queries = plain.encode([topic.text for topic in TOPICS])
    expected = {}
    for topic, query in zip(TOPICS, queries, strict=True):
        docids = [hit.docid for hit in plain.search(query, feedback.depth)]
        rows = plain.index.rows(docids)
        moved = move(query, plain.index.vectors(rows)).astype(np.float32)
        expected[topic.qid] = plain.of_vectors(moved.reshape(1, -1), 10)[0]
    pipeline = open_pipeline(PipelineSpec(index=str(bundle), prf=text)).pipeline
    found = pipeline.rank(TOPICS, None, 10)
    for qid, ranking in expected.items():
        np.testing.assert_allclose(found[qid].scores, ranking.scores, atol=1e-5)
        assert set(found[qid].docids) == set(ranking.docids)
    assert found['1'].scores != plain.rank(TOPICS, None, 10)['1'].scores


def test_a_collection_takes_feedback_from_all_documents(tiny_checkpoint, tmp_path):
    documents = [
        {'id': f'd{number}', 'text': f'{word} sat on the mat', 'even': number % 2}
        for number, word in enumerate(('cat', 'dog', 'fish', 'bird', 'moon', 'tree'))
    ]
    encoder = str(tiny_checkpoint('encoder'))
    with Collection.open(tmp_path / 'mine', encoder=encoder, sparse='none') as collection:
        collection.sync(documents)
    spec = PipelineSpec(index=str(tmp_path / 'mine'), prf='average:depth=2')
    whole = open_pipeline(spec).pipeline.rank(TOPICS, None, 10)
    plain = open_pipeline(spec.model_copy(update={'prf': None})).pipeline.rank(TOPICS, None, 10)
    assert whole['1'].scores != plain['1'].scores
    part = open_pipeline(spec.model_copy(update={'filter': 'even:1'})).pipeline
    found = part.rank(TOPICS, None, 10)
    for qid, ranking in whole.items():
        kept = [(hit.docid, hit.score) for hit in ranking if hit.docid in ('d1', 'd3', 'd5')]
        assert [hit.docid for hit in found[qid]] == [docid for docid, _ in kept]
        np.testing.assert_allclose(found[qid].scores, [score for _, score in kept], atol=1e-5)


class Words(Ranker):
    """A first stage of one's own, which finds nothing."""

    def __init__(self):
        self.name = 'words'

    def _rank(self, topics, run, k, trace):
        return {}


def test_feedback_without_a_dense_ranking():
    with pytest.raises(InputError, match=r'none: for Lucene, name bm25\+rm3'):
        open_pipeline(PipelineSpec(sparse=(f'{__name__}:Words',), prf='average'))
