"""People judge in a service, and a collection learns from that."""

import json
import threading
import time
from dataclasses import replace

import pandas
import pytest
from judged import N_QUESTIONS, judge, wait_for_adapted, wait_for_learning

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.adaptation import judgments_of
from pyserini_repbert.collection.judging.from_judgments import learn_from_judgments, use_learning
from pyserini_repbert.collection.judging.own_settings import set_settings
from pyserini_repbert.collection.judgments import NextQuestion, WhyNext
from pyserini_repbert.commands.command import run
from pyserini_repbert.commands.dispatcher import main
from pyserini_repbert.errors import InputError

WRITER = {'x-api-key': 'writer'}
READER = {'x-api-key': 'reader'}


@pytest.fixture
def folder(judged_collection):
    return judged_collection


@pytest.fixture
def client(folder, serving_path):
    return serving_path(folder)


def test_a_pool_is_the_union_of_the_rankings_in_a_fixed_order(client):
    body = {'question': 'mat w3', 'depth': 4, 'judge': 'ann'}
    pool = client.post('/v1/mine/pools', json=body).json()
    hits = client.get('/v1/mine/search?query=mat+w3&hits=4&system=dense').json()['candidates']
    docids = [document['docid'] for document in pool['documents']]
    assert sorted(docids) == sorted(hit['docid'] for hit in hits)
    again = client.post('/v1/mine/pools', json=body).json()
    assert again == pool
    for document in pool['documents']:
        assert set(document) == {
            *('docid', 'title', 'text', 'start', 'end', 'headings', 'display', 'fields'),
            *('same_as', 'grade', 'comment'),
        }
        assert document['text'][document['start'] : document['end']] == document['text']
        assert document['grade'] is None
    shown = {document['docid']: document for document in pool['documents']}
    assert all(shown[docid]['fields'] == {'kind': docid.rstrip('0123456789')} for docid in docids)


def test_the_order_of_a_pool_depends_on_the_question(client):
    orders = set()
    for question in ('mat w1', 'w1 mat', 'mat w2 w1'):
        body = {'question': question, 'depth': 44}
        pool = client.post('/v1/mine/pools', json=body).json()
        orders.add(tuple(document['docid'] for document in pool['documents']))
    assert len(orders) == 3
    assert len({frozenset(order) for order in orders}) == 1


def test_judgments_are_stored_shown_and_taken_back(client):
    answer = judge(client, 'mat  w3', 'wanted3', 3, judge='ann', comment='all of it')
    assert answer.json() == {'api': 'v1', 'index': 'mine', 'stored': 1}
    judge(client, 'mat w3', 'wanted3', 1, judge='bob')
    listed = client.get('/v1/mine/judgments?judge=ann&question=mat+w3').json()
    (judgment,) = listed['judgments']
    assert judgment['grade'] == 3
    assert judgment['comment'] == 'all of it'
    assert judgment['is_older'] is False
    assert listed['agreement'] == [{'judges': ['ann', 'bob'], 'documents': 1, 'kappa': 0.0}]
    body = {'question': 'mat w3', 'depth': 44, 'judge': 'ann'}
    pool = client.post('/v1/mine/pools', json=body).json()
    grades = {document['docid']: document['grade'] for document in pool['documents']}
    assert grades['wanted3'] == 3
    assert set(grades.values()) == {3, None}
    address = '/v1/mine/judgments?question=mat+w3&docid=wanted3&judge=ann'
    assert client.delete(address).json()['deleted'] == 1
    assert client.delete(address).json()['deleted'] == 0


def test_a_document_is_judged_by_the_docid_that_people_see(folder, serving_path):
    with Collection.open(folder) as collection:
        collection.add([{'id': 'my%20notes/snails', 'text': 'cat', 'kind': 'plain'}])
    client = serving_path(folder)
    judge(client, 'cat', 'my notes/snails', 2)
    (judgment,) = client.get('/v1/mine/judgments').json()['judgments']
    assert judgment['docid'] == 'my%20notes/snails'
    address = '/v1/mine/judgments?question=cat&docid=my+notes/snails'
    assert client.delete(address).json()['deleted'] == 1


def test_judgments_are_exported(client):
    judge(client, 'mat w3', 'wanted3', 3, judge='ann')
    judge(client, 'cat', 'plain1', 0)
    assert client.get('/v1/mine/judgments?format=topics').text == '1\tmat w3\n2\tcat\n'
    assert client.get('/v1/mine/judgments?format=qrels').text == '1 0 wanted3 3\n2 0 plain1 0\n'
    lines = client.get('/v1/mine/judgments?format=jsonl').text.splitlines()
    assert [json.loads(line)['judge'] for line in lines] == ['ann', '']
    assert client.get('/v1/mine/judgments?format=xml').status_code == 400


def test_questions_come_in_their_order_with_progress(client):
    added = client.post('/v1/mine/questions?judge=ann', json={'questions': ['mat w3', 'cat ']})
    assert [question['text'] for question in added.json()['questions']] == ['mat w3', 'cat']
    client.post('/v1/mine/pools', json={'question': 'cat', 'depth': 2})
    judge(client, 'cat', 'plain1', 0, judge='ann')
    judge(client, 'cat', 'plain2', 0, judge='bob')
    state = client.get('/v1/mine/questions?judge=ann').json()
    assert state['questions'] == [
        {'text': 'mat w3', 'judged': 0, 'pooled': None},
        {'text': 'cat', 'judged': 1, 'pooled': 2},
    ]
    assert (state['total'], state['judged']) == (2, 1)
    refused = client.post('/v1/mine/questions', json={'questions': [' ']})
    assert refused.status_code == 400
    assert 'a question is empty' in refused.json()['error']


def test_a_changed_document_keeps_its_judgments_as_older(client, folder):
    judge(client, 'mat w3', 'wanted3', 3)
    judge(client, 'mat w3', 'plain3', 0)
    with Collection.open(folder) as collection:
        collection.add([{'id': 'wanted3', 'text': 'another text'}])
    for _ in range(100):
        judgments = client.get('/v1/mine/judgments').json()['judgments']
        if any(judgment['is_older'] for judgment in judgments):
            break
        time.sleep(0.05)
    older = {judgment['docid']: judgment['is_older'] for judgment in judgments}
    assert older == {'wanted3': True, 'plain3': False}


@pytest.mark.parametrize(
    ('values', 'status', 'problem'),
    [
        ({'grade': 4}, 422, 'less than or equal to 3'),
        ({'docid': 'a b'}, 400, 'docid'),
        ({'question': ''}, 400, 'a question is empty'),
        ({'by': 'ann'}, 422, 'Extra inputs'),
    ],
)
def test_a_wrong_judgment_is_refused(client, values, status, problem):
    judgment = {'question': 'q', 'docid': 'd', 'grade': 1, **values}
    answer = client.post('/v1/mine/judgments', json={'judgments': [judgment]})
    assert answer.status_code == status
    assert problem in answer.json()['error']
    assert client.get('/v1/mine/judgments').json()['judgments'] == []


JUDGMENT = {'judgments': [{'question': 'q', 'docid': 'd', 'grade': 1}]}
WRITES = [
    ('POST', 'judgments', JUDGMENT),
    ('DELETE', 'judgments?question=q&docid=d', None),
    ('POST', 'questions', {'questions': ['q']}),
    ('POST', 'pools', {'question': 'cat', 'depth': 1}),
    ('POST', 'learn', {}),
    ('PUT', 'learn', {'in_use': False}),
]


@pytest.mark.parametrize(('method', 'address', 'body'), WRITES)
def test_judging_and_learning_take_a_key_where_keys_may_write(
    folder, serving_path, method, address, body, in_this_process
):
    client = serving_path(folder, write_keys=['writer'])
    for headers in ({}, READER):
        refused = client.request(method, f'/v1/mine/{address}', json=body, headers=headers)
        assert refused.status_code == 403
        assert refused.json()['error'] == (
            'judging and learning take a key that may write: send it as X-API-Key'
        )
    assert client.get('/v1/mine/judgments').json()['judgments'] == []
    assert client.get('/v1/mine/questions').json()['questions'] == []
    answer = client.request(method, f'/v1/mine/{address}', json=body, headers=WRITER)
    # Learning is allowed, but there are no judgments to learn from.
    expected = 400 if (method, address) == ('POST', 'learn') else 200
    assert answer.status_code == expected


def test_every_route_that_writes_is_among_those(folder, serving_path):
    addresses = {(method, address.partition('?')[0]) for method, address, _ in WRITES}
    writing = set()
    for path, methods in serving_path(folder).get('/openapi.json').json()['paths'].items():
        for method, operation in methods.items():
            if operation.get('tags') == ['judging'] and method != 'get':
                writing.add((method.upper(), path.rpartition('/')[2]))
    assert writing == addresses


def test_any_key_judges_where_no_key_may_write(folder, serving_path):
    client = serving_path(folder, api_keys=['reader'])
    assert client.post('/v1/mine/judgments', json=JUDGMENT).status_code == 401
    assert client.post('/v1/mine/judgments', json=JUDGMENT, headers=READER).status_code == 200
    use = client.put('/v1/mine/learn', json={'in_use': True}, headers=READER)
    assert use.status_code == 400
    assert 'has not learned yet' in use.json()['error']


def test_an_index_may_take_no_judgments(folder, bundle, serving_path):
    closed = serving_path(folder, {'judgments': False})
    assert closed.get('/v1/mine').json()['judging'] is False
    assert judge(closed, 'q', 'd', 1).status_code == 403
    frozen = serving_path(bundle)
    assert frozen.get('/v1/mine').json()['judging'] is False


def test_a_frozen_index_has_a_file_of_judgments(bundle, serving_path, tmp_path):
    path = tmp_path / 'own.sqlite'
    client = serving_path(bundle, {'judgments': str(path)})
    about = client.get('/v1/mine').json()
    assert about['judging'] is True
    assert about['learning'] is False
    pool = client.post('/v1/mine/pools', json={'question': 'cat', 'depth': 3}).json()
    assert len(pool['documents']) == 3
    assert all(document['text'] for document in pool['documents'])
    assert judge(client, 'cat', pool['documents'][0]['docid'], 2).status_code == 200
    assert path.is_file()
    assert client.get('/v1/mine/learn').status_code == 403


def test_twenty_people_judge_at_once(client):
    statuses = []

    def work(name):
        for number in range(5):
            answer = judge(client, f'w{number}', f'wanted{number}', 2, judge=name)
            statuses.append(answer.status_code)

    threads = [threading.Thread(target=work, args=[f'judge{n}']) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 100
    assert len(client.get('/v1/mine/judgments').json()['judgments']) == 100


def test_a_collection_learns_and_is_searched_so(client, in_this_process, folder):
    state = client.get('/v1/mine/learn').json()
    assert (state['state'], state['report'], state['in_use']) == ('none', None, False)
    assert (state['questions_judged'], state['questions_needed']) == (0, 20)
    for number in range(N_QUESTIONS):
        judge(client, f'cat w{number}', f'wanted{number}', 2)
    before = client.get('/v1/mine/search?query=cat+w3').json()
    assert client.post('/v1/mine/learn', json={}).json()['state'] == 'running'
    again = client.post('/v1/mine/learn', json={})
    assert again.status_code == 409 and 'learns already' in again.json()['error']
    state = wait_for_learning(client)
    assert state['state'] == 'done'
    assert state['questions_judged'] == N_QUESTIONS
    assert len(state['report']['questions']) == N_QUESTIONS
    assert client.get('/v1/mine/search?query=cat+w3').json()['system'] == ['dense']

    assert client.put('/v1/mine/learn', json={'in_use': True}).json()['in_use'] is True
    about = client.get('/v1/mine').json()
    assert about['default'] == ['adapted']
    learned = client.get('/v1/mine/search?query=cat+w3').json()
    assert learned['system'] == ['adapted']
    scores = [hit['score'] for hit in before['candidates']]
    assert [hit['score'] for hit in learned['candidates']] != scores
    within = client.get('/v1/mine/search?query=cat+w3&filter=kind:plain').json()['candidates']
    assert len(within) == 10
    assert all(hit['fields'] == {'kind': 'plain'} for hit in within)

    like = client.get('/v1/mine/search?like=wanted3').json()
    assert like['system'] == ['adapted']
    assert 'wanted3' not in [hit['docid'] for hit in like['candidates']]

    client.put('/v1/mine/learn', json={'in_use': False})
    again = client.get('/v1/mine/search?query=cat+w3').json()
    assert again['system'] == ['dense']
    assert [hit['score'] for hit in again['candidates']] == scores


def test_questions_that_are_to_be_judged_next_come_first(client, folder):
    client.post('/v1/mine/questions', json={'questions': ['one', 'two', 'three']})
    store = judgments_of(folder)
    qid_of = {question.text: question.qid for question in store.questions()}
    store.set_next_questions([NextQuestion(qid_of['three'], 'three', WhyNext.RANDOM)])
    listed = client.get('/v1/mine/questions').json()['questions']
    assert [question['text'] for question in listed] == ['three', 'one', 'two']


def test_what_is_not_better_is_used_only_by_those_who_insist(client, folder):
    for number in range(N_QUESTIONS):
        judge(client, f'cat w{number}', f'wanted{number}', 2)
    learning = learn_from_judgments(folder)
    below = {'gain': -0.05, 'low': -0.09, 'high': -0.01, 'is_worth_using': False}
    store = judgments_of(folder)
    store.add_learning(replace(learning, number=2, report={**learning.report, **below}))
    refused = client.put('/v1/mine/learn', json={'in_use': True})
    assert refused.status_code == 409
    assert 'is below the present search, -0.050 nDCG@10' in refused.json()['error']
    assert client.get('/v1/mine/learn').json()['in_use'] is False
    insisted = client.put('/v1/mine/learn', json={'in_use': True, 'even_if_worse': True})
    assert insisted.json()['in_use'] is True


def test_without_judgments_learning_is_refused_at_once(client, folder):
    """The answer was 'running', and the learning failed later."""
    refused = client.post('/v1/mine/learn', json={})
    assert refused.status_code == 400
    with pytest.raises(InputError) as error:
        learn_from_judgments(folder)
    assert str(error.value).startswith('nobody has judged in collection ')
    assert refused.json()['error'] == str(error.value)


def test_too_few_judgments_are_said(client, in_this_process):
    judge(client, 'cat w1', 'wanted1', 2)
    client.post('/v1/mine/learn', json={})
    state = wait_for_learning(client)
    assert state['state'] == 'failed'
    assert 'at least 20 are needed' in state['error']


def test_a_service_follows_what_another_program_lets_the_collection_use(client, folder):
    for number in range(N_QUESTIONS):
        judge(client, f'cat w{number}', f'wanted{number}', 2)
    learn_from_judgments(folder)
    use_learning(folder, True)
    wait_for_adapted(client)


def test_a_service_searches_as_a_person_sets(client, folder):
    def answer(parameters=''):
        return client.get(f'/v1/mine/search?query=cat+w3{parameters}').json()

    assert answer()['rerank'] == []
    set_settings(folder, {'stages': ['monobert-demo@3'], 'aggregate': 'mean'})
    wait_for_adapted(client)
    assert answer()['rerank'] == ['monobert-demo@3']
    assert answer('&system=dense')['rerank'] == []
    assert client.get('/v1/mine/search?like=plain3').json()['rerank'] == []
    # A setting is not a learning.
    assert client.get('/v1/mine/learn').json()['in_use'] is False


def test_python_command_and_service_rerank_as_a_person_sets(client, folder, tmp_path):
    plain = client.get('/v1/mine/search?query=cat+w3&hits=4').json()['candidates']
    set_settings(folder, {'stages': ['monobert-demo@3']})
    wait_for_adapted(client)
    served = client.get('/v1/mine/search?query=cat+w3&hits=4').json()['candidates']
    docids = [candidate['docid'] for candidate in served]
    scores = [candidate['score'] for candidate in served]
    assert scores != [candidate['score'] for candidate in plain]

    topics = tmp_path / 'topics.tsv'
    topics.write_text('1\tcat w3\n', encoding='utf-8')
    output = tmp_path / 'run.txt'
    flags = ('--topics', str(topics), '--hits', '4', '--output', str(output))
    assert run(main, ['search', '--index', str(folder), *flags]) == 0
    assert [line.split()[2] for line in output.read_text().splitlines()] == docids

    with Collection.open(folder) as collection:
        hits = collection.search('cat w3', 4)
        frame = collection.search(pandas.DataFrame({'qid': ['1'], 'query': ['cat w3']}), 4)
        within = collection.search('cat w3', 4, filter='kind:plain')
    assert [hit.docid for hit in hits] == list(frame['docid']) == docids
    assert [hit.score for hit in hits] == pytest.approx(scores, rel=1e-4)
    filtered = client.get('/v1/mine/search?query=cat+w3&hits=4&filter=kind:plain').json()
    assert [hit.docid for hit in within] == [hit['docid'] for hit in filtered['candidates']]


@pytest.mark.slow
def test_a_learning_in_a_process_of_its_own(client):
    for number in range(N_QUESTIONS):
        judge(client, f'cat w{number}', f'wanted{number}', 2)
    assert client.post('/v1/mine/learn', json={}).json()['state'] == 'running'
    assert wait_for_learning(client)['state'] == 'done'


def test_the_description_has_what_is_enforced(client):
    description = client.get('/openapi.json').json()
    listed = description['paths']['/v1/{index}/judgments']['get']['responses']['200']
    assert set(listed['content']) == {'application/json', 'text/plain'}
    schemas = description['components']['schemas']
    question = schemas['GivenJudgment']['properties']['question']
    assert (question['minLength'], question['pattern']) == (1, r'\S')
