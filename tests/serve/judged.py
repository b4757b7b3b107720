"""People judge in a service: what its tests ask, and what they wait for."""

import time

N_QUESTIONS = 22


def judge(client, question, docid, grade, **values):
    judgment = {'question': question, 'docid': docid, 'grade': grade, **values}
    return client.post('/v1/mine/judgments', json={'judgments': [judgment]})


def wait_for_learning(client):
    for _ in range(600):
        state = client.get('/v1/mine/learn').json()
        if state['state'] != 'running':
            return state
        time.sleep(0.05)
    raise AssertionError(state)


def wait_for_adapted(client):
    for _ in range(100):
        if client.get('/v1/mine').json()['default'] == ['adapted']:
            return
        time.sleep(0.05)
    raise AssertionError('the service still searches as before')
