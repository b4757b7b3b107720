"""Confidence where token vectors order the hits: learned, and told by Python, commands, service."""

import pytest
from folders import question_documents
from learned_collections import let_learn
from ready_services import ready_client
from sentence_folders import write_multi_vector

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging.next_questions import order_questions
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.serve.settings import IndexSettings, ServeSettings

pytest.importorskip('sentence_transformers')


@pytest.fixture
def folder(tiny_checkpoint, tmp_path):
    """A collection that token vectors order by default; it learned from judgments."""
    path = tmp_path / 'mine'
    models = {'encoder': str(tiny_checkpoint()), 'multi_vector': write_multi_vector(tmp_path / 'm')}
    with Collection.open(path, sparse='none', **models) as collection:
        collection.sync(question_documents())
    confidence = let_learn(path)
    assert confidence['model']['search']['rankings'] == ['dense', 'rescored']
    return path


def test_confidence_where_token_vectors_order(folder, capsys):
    """Learning ended in an error, and a service told none."""
    with Collection.open(folder) as collection:
        hits = collection.search('w1 mat', 3, confidence=True)
    words = ['search', '--index', str(folder), '--query', 'w1 mat', '--hits', '3', '--confidence']
    capsys.readouterr()
    assert run(main, words) == 0
    out = capsys.readouterr().out
    for hit in hits:
        assert f'{hit.docid}  ({hit.score:.4f}, relevant: {hit.probability:.2f})' in out
    settings = ServeSettings(indexes={'mine': IndexSettings(path=str(folder))})
    with ready_client(settings) as client:
        assert client.get('/v1/mine').json()['confidence'] is True
        address = '/v1/mine/search?query=w1+mat&hits=3&confidence=true'
        answer = client.get(address).json()
        # What was learned is of this search alone.
        assert client.get(f'{address}&system=dense').status_code == 400
    found = [(own['docid'], own['probability']) for own in answer['candidates']]
    assert found == [(hit.docid, pytest.approx(hit.probability, abs=1e-4)) for hit in hits]
    assert f'(answered: {answer["confidence"]["answered"]:.2f})' in out


def test_questions_to_judge_are_ordered(folder):
    judgments_of(folder).add_questions(['cat w1', 'moon', 'sea'])
    assert len(order_questions(folder)) == 3
