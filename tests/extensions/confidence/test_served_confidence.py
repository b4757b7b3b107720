"""A service says how likely a question is answered and its hits are relevant."""

from dataclasses import replace

import pytest
from folders import wait_until
from judged import N_QUESTIONS, judge, wait_for_adapted
from learned_collections import PASSED

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging.from_judgments import learn_from_judgments
from pyserini_repbert.collection.judging.own_settings import set_settings


@pytest.fixture
def folder(judged_collection):
    return judged_collection


@pytest.fixture
def client(folder, serving_path):
    return serving_path(folder)


def test_an_answer_says_how_far_it_can_be_believed(client, folder):
    address = '/v1/mine/search?query=cat+w3&confidence=true'
    refused = client.get(address)
    assert refused.status_code == 400
    assert 'confidence is not known for encoder' in refused.text
    body = {'question': 'cat w3', 'order': 'unsure'}
    assert client.post('/v1/mine/pools', json=body).status_code == 400
    for number in range(N_QUESTIONS):
        judge(client, f'cat w{number}', f'wanted{number}', 2)
    learning = learn_from_judgments(folder)
    confidence = learning.report['confidence']
    shown = confidence | {'model': confidence['model'] | PASSED}
    report = {**learning.report, 'confidence': shown}
    judgments_of(folder).add_learning(replace(learning, number=2, report=report))
    plain = client.get('/v1/mine/search?query=cat+w3&hits=3').json()
    answer = client.get(f'{address}&hits=3').json()
    said = answer.pop('confidence')
    assert said['found'] in ('likely', 'weak', 'nothing')
    assert said['source'] == 'learned'
    probabilities = [candidate.pop('probability') for candidate in answer['candidates']]
    assert len(probabilities) == 3
    assert all(0 <= probability <= 1 for probability in probabilities)
    assert answer['candidates'] == plain['candidates']
    assert client.get('/v1/mine/search?like=plain3&confidence=true').status_code == 400

    other = client.get(f'{address}&prf=average')
    assert other.status_code == 400
    assert 'prf none, here average' in other.json()['error']

    body = {'question': 'cat w3', 'depth': 6}
    at_random = client.post('/v1/mine/pools', json=body).json()
    unsure = client.post('/v1/mine/pools', json={**body, 'order': 'unsure'}).json()
    docids = [document['docid'] for document in at_random['documents']]
    ordered = [document['docid'] for document in unsure['documents']]
    assert sorted(ordered) == sorted(docids)
    assert unsure['pool'].startswith('unsure-')
    hits = client.get('/v1/mine/search?query=cat+w3&confidence=true&hits=44').json()['candidates']
    doubt = {hit['docid']: abs(hit['probability'] - 0.5) for hit in hits}
    assert doubt[ordered[0]] == min(doubt[docid] for docid in docids)
    left = [docid for docid in docids if docid not in ordered[:2]]
    assert ordered[2] == left[0]

    least = sorted(probabilities)[1]
    believed = [p for p in probabilities if p >= least]
    address = f'/v1/mine/search?query=cat+w3&hits=3&min_confidence={least - 1e-6}'
    sure = client.get(address).json()
    assert [candidate['probability'] for candidate in sure['candidates']][: len(believed)]
    assert min(candidate['probability'] for candidate in sure['candidates']) >= least - 1e-5
    assert sure['confidence'] == said
    nothing = client.get('/v1/mine/search?query=cat+w3&min_confidence=1').json()
    assert nothing['candidates'] == []
    refused = client.get('/v1/mine/search?query=cat+w3&min_confidence=2')
    assert refused.status_code == 400
    assert 'min_confidence' in refused.json()['error']
    assert client.get('/v1/mine/search?like=plain3&min_confidence=0.1').status_code == 400


def test_confidence_reads_the_reranker_that_a_person_set(client, folder):
    set_settings(folder, {'stages': ['monobert-demo@3']})
    for number in range(N_QUESTIONS):
        judge(client, f'cat w{number}', f'wanted{number}', 2)
    learning = learn_from_judgments(folder)

    def believe(auc):
        number = judgments_of(folder).next_learning()
        confidence = learning.report['confidence']
        test = {'auc': auc, 'chance': 0.6}
        tests = {'hits_test': test, 'questions_test': test}
        shown = confidence | {'model': confidence['model'] | tests}
        report = {**learning.report, 'confidence': shown}
        judgments_of(folder).add_learning(replace(learning, number=number, report=report))

    believe(0.8)
    wait_for_adapted(client)
    about = client.get('/v1/mine').json()
    assert about['confidence'] is True
    assert about['lost_confidence'] is None
    address = '/v1/mine/search?query=cat+w3&confidence=true&hits=3'
    by_names = client.get(f'{address}&system=dense&rerank=monobert-demo@3').json()
    answer = client.get(address).json()
    assert answer['confidence'] == by_names['confidence']
    with Collection.open(folder) as collection:
        hits = collection.search('cat w3', 3, confidence=True)
    for candidate, hit in zip(answer['candidates'], hits, strict=True):
        assert candidate['docid'] == hit.docid
        assert candidate['probability'] == pytest.approx(hit.probability, abs=1e-4)
    # What is learned later counts.
    believe(0.5)
    wait_until(lambda: client.get(address).status_code == 400)
    assert 'confidence cannot be estimated here' in client.get(address).text
    about = client.get('/v1/mine').json()
    assert about['confidence'] is False
    assert 'AUC of 0.50' in about['lost_confidence']
