"""A language model reranks in a service only where its settings name one."""

import logging

import pytest
from chat_server import by_last_number, chat_server, status

from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.language_models.serving import ModelSettings
from pyserini_repbert.serve import command
from pyserini_repbert.serve.rerankers import Rerankers
from pyserini_repbert.serve.settings import ServeSettings, read_settings

SEARCH = '/v1/tiny/search'
QUESTION = {'query': 'cat', 'hits': 3, 'rerank': 'llm@3'}


@pytest.fixture(autouse=True)
def _may_ask(monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_OFFLINE', '')
    monkeypatch.setattr('pyserini_repbert.extensions.language_models.exchange.TRIES', 2)
    monkeypatch.setattr('openai._base_client.INITIAL_RETRY_DELAY', 0.0)


@pytest.fixture
def served(serving, tmp_path):
    """make(server) -> a client of a service that offers the model of a server."""

    def make(server):
        answers = str(tmp_path / 'answers.sqlite')
        return serving(llm=ModelSettings(model='m', address=server.address, answers=answers))

    return make


def by_word(prompt):
    """The last passage first."""
    n = prompt.count('\n[')
    return ' > '.join(f'[{number}]' for number in range(n, 0, -1))


def test_a_model_is_a_stage_as_others(served):
    with chat_server(by_word) as server:
        client = served(server)
        # Nothing is asked before a client asks.
        assert server.bodies == []
        offered = client.get('/v1/tiny').json()['rerankers']
        assert {'name': 'llm', 'system': 'llm'} in offered
        plain = client.get(SEARCH, params={'query': 'cat', 'hits': 3}).json()
        answer = client.get(SEARCH, params=QUESTION).json()
        again = client.get(SEARCH, params=QUESTION).json()
        assert len(server.bodies) == 1
    docids = [hit['docid'] for hit in plain['candidates']]
    assert [hit['docid'] for hit in answer['candidates']] == docids[::-1]
    assert again['candidates'] == answer['candidates']
    step = answer['steps'][-1]
    assert (step['step'], step['inferences'], step['tokens']) == ('llm@3', 1, 12)


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('llm', 'http://127.0.0.1:9/v1'),
        ('llm_model', 'other'),
        ('llm_answers', 'a.sqlite'),
        ('rewrite', 'hyde'),
        ('rerank', 'llm@3:prompt=/etc/passwd'),
        ('rerank', 'llm@3:window=2'),
        ('rerank', 'llm@3:pointwise'),
    ],
)
def test_a_request_names_no_address_and_no_file(served, name, value):
    with chat_server(by_last_number) as server:
        answer = served(server).get(SEARCH, params=QUESTION | {name: value})
        assert server.bodies == []
    assert answer.status_code == 400


def test_without_the_setting_there_is_none(client, tmp_path):
    answer = client.get(SEARCH, params=QUESTION)
    assert answer.status_code == 404 and "no reranker 'llm'" in answer.json()['error']
    with pytest.raises(InputError, match="'llm' is a language model, and none was named"):
        Rerankers(ServeSettings(rerankers=['llm']), {})


def test_a_model_that_fails_is_not_shown_to_clients(served, caplog):
    caplog.set_level(logging.ERROR)
    with chat_server(lambda prompt: status(500, 'no memory')) as server:
        client = served(server)
        answer = client.get(SEARCH, params=QUESTION)
        assert client.get(SEARCH, params=QUESTION | {'rerank': 'monobert@3'}).status_code == 200
    assert answer.status_code == 503
    assert 'the language model gave no answer' in answer.json()['error']
    assert '127.0.0.1' not in answer.text and 'no memory' not in answer.text
    assert server.address in caplog.text


def test_flags_and_files_name_a_model(tmp_path):
    (tmp_path / 'serve.yaml').write_text(
        'indexes: {tiny: {name: demo}}\n'
        'llm: {model: m, address: "http://a/v1", answers: a.sqlite}\n',
        encoding='utf-8',
    )
    expected = ModelSettings(model='m', address='http://a/v1', answers=str(tmp_path / 'a.sqlite'))
    path = str(tmp_path / 'serve.yaml')
    assert read_settings(path).llm == expected

    def settings(*words):
        options = command.make_parser().parse_args(words)
        command._check_flags(options)
        return command._settings(options).llm

    assert settings('--config', path) == expected
    named = settings('--config', path, '--llm-model', 'n', '--llm', 'http://b/v1')
    assert named == ModelSettings(model='n', address='http://b/v1')
    with pytest.raises(InputError, match='go with --llm-model'):
        settings('--index', 'demo', '--llm', 'http://b/v1')
    with pytest.raises(InputError, match='no path, which is often /v1'):
        settings('--index', 'demo', '--llm-model', 'm', '--llm', 'http://b')
    with pytest.raises(InputError, match='neither an address'):
        settings('--index', 'demo', '--llm-model', 'm')
