"""People judge in a service: what its tests ask, and what they wait for."""

from folders import wait_until

N_QUESTIONS = 22


def judge(client, question, docid, grade, **values):
    judgment = {'question': question, 'docid': docid, 'grade': grade, **values}
    return client.post('/v1/mine/judgments', json={'judgments': [judgment]})


def wait_for_learning(client):
    def state():
        return client.get('/v1/mine/learn').json()

    wait_until(lambda: state()['state'] != 'running')
    return state()


def wait_for_adapted(client):
    wait_until(lambda: client.get('/v1/mine').json()['default'] == ['adapted'])
