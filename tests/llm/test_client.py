"""The client of an OpenAI-style server: what it sends, what it tries again, what it refuses."""

import json
import time

import pytest
from chat_server import chat_server, reply, send, status

from pyserini_repbert.errors import InputError, LanguageModelError
from pyserini_repbert.systems.llm.client import ChatClient, ModelAnswer
from pyserini_repbert.systems.llm.settings import LanguageModelSettings

BODY = {'model': 'm', 'messages': [{'role': 'user', 'content': 'hello'}]}


def answer_of(rule, waits=None):
    """What the client makes of a server's answers; `waits` gets what it would wait."""
    with chat_server(rule) as server:
        wait = time.sleep if waits is None else waits.append
        return ChatClient(server.address, wait).complete(BODY), server


def test_an_answer_has_text_tokens_and_likely_tokens(monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_LLM_KEY', 'secret')
    answer, server = answer_of(lambda prompt: reply('hi', {'hi': -0.5}, 7, 1))
    assert answer == ModelAnswer('hi', 7, 1, (('hi', -0.5),))
    assert server.bodies == [BODY] and server.keys == ['Bearer secret']


def test_without_a_key_none_is_sent_and_others_are_not_read(monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', 'of-another')
    _, server = answer_of(lambda prompt: 'hi')
    assert server.keys == [None]


@pytest.mark.parametrize('code', [429, 500, 503])
def test_what_may_pass_is_tried_again(code):
    answers = [status(code), status(code, headers=[('Retry-After', '3')]), 'at last']
    waits = []
    answer, server = answer_of(lambda prompt: answers[len(waits)], waits)
    assert answer.text == 'at last' and len(server.bodies) == 3 and waits == [0.0, 3.0]


def test_tries_have_an_end():
    waits = []
    with pytest.raises(LanguageModelError, match=r'failed 4 times \(HTTP 500: no memory\)'):
        answer_of(lambda prompt: status(500, 'no memory'), waits)
    assert len(waits) == 3


def test_a_long_wait_that_a_server_asks_for_is_not_kept():
    answers = [status(429, headers=[('Retry-After', '86400')]), 'soon']
    waits = []
    answer_of(lambda prompt: answers[len(waits)], waits)
    assert waits == [0.0]


def test_an_answer_that_is_cut_off_is_asked_for_again():
    def cut(handler):
        send(handler, 200, reply('whole')[:20], length=500)

    answers = [cut, 'whole']
    waits = []
    answer, _ = answer_of(lambda prompt: answers[len(waits)], waits)
    assert answer.text == 'whole' and len(waits) == 1


def test_a_slow_server_is_given_up(monkeypatch):
    monkeypatch.setattr('pyserini_repbert.systems.llm.client._SILENT_SECONDS', 0.02)

    def slow(handler):
        time.sleep(0.06)

    with pytest.raises(LanguageModelError, match='no answer in time'):
        answer_of(lambda prompt: slow)


def test_a_server_that_drips_is_given_up(monkeypatch):
    monkeypatch.setattr('pyserini_repbert.systems.llm.client._ANSWER_SECONDS', -1)
    with pytest.raises(LanguageModelError, match='no whole answer in time'):
        answer_of(lambda prompt: 'hi')


def test_a_body_without_end_is_refused():
    def endless(handler):
        send(handler, 200, b' ' * (10 << 20))

    with pytest.raises(LanguageModelError, match='more than 4,194,304 bytes'):
        answer_of(lambda prompt: endless)


@pytest.mark.parametrize(
    'body', [b'', b'<html>', b'[]', b'{}', b'{"choices": []}', b'{"choices": [7]}', b'[' * 100_000]
)
def test_what_is_not_of_the_form_is_refused(body):
    with pytest.raises(LanguageModelError, match='does not answer as an OpenAI-style server'):
        answer_of(lambda prompt: body)


def test_strange_values_within_an_answer_are_left_out():
    choice = {
        'message': {'content': None},
        'logprobs': {'content': [{'top_logprobs': [{'token': 7, 'logprob': -1}]}]},
    }
    body = json.dumps({'choices': [choice], 'usage': {'prompt_tokens': -5}}).encode()
    answer, _ = answer_of(lambda prompt: body)
    assert answer == ModelAnswer('')
    answer, _ = answer_of(lambda prompt: reply('half \ud800', {'x': float('nan')}))
    assert answer.text == 'half ?' and answer.top_tokens == ()


def test_a_redirect_is_not_followed(monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_LLM_KEY', 'secret')
    with chat_server(lambda prompt: 'stolen') as other:
        headers = [('Location', f'{other.address}/chat/completions')]
        with pytest.raises(LanguageModelError, match='HTTP 307'):
            answer_of(lambda prompt: status(307, headers=headers))
        assert other.bodies == []


@pytest.mark.parametrize(
    ('code', 'key', 'message'),
    [
        (401, '', r'wants a key, which is read from \$PYSERINI_REPBERT_LLM_KEY \(HTTP 401'),
        (401, 'old', r'refuses the key in \$PYSERINI_REPBERT_LLM_KEY'),
        (404, '', 'which often ends in /v1'),
        (400, '', r'refuses the request \(HTTP 400: \\x1b\[31mred'),
    ],
)
def test_a_refusal_is_one_line(code, key, message, monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_LLM_KEY', key)
    with pytest.raises(LanguageModelError, match=message) as refused:
        answer_of(lambda prompt: status(code, '\x1b[31mred\n' + 'x' * 5000))
    assert '\n' not in str(refused.value) and len(str(refused.value)) < 500


def test_a_key_with_a_line_end_is_not_sent(monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_LLM_KEY', 'se\ncret')
    with pytest.raises(LanguageModelError, match='special characters') as refused:
        answer_of(lambda prompt: 'hi')
    assert 'cret' not in str(refused.value)


def test_nothing_listens():
    with chat_server(lambda prompt: '') as server:
        address = server.address
    with pytest.raises(LanguageModelError, match='cannot be reached'):
        ChatClient(address).complete(BODY)


@pytest.mark.parametrize(
    ('address', 'problem'),
    [
        ('http://me:pass@host/v1', 'a user name or a password'),
        ('file:///etc/passwd', 'no http://'),
        ('127.0.0.1:8000/v1', 'no http://'),
        ('http://127.0.0.1:8000', 'no path, which is often /v1'),
        ('http://127.0.0.1:8000/', 'no path, which is often /v1'),
        ('http://host/v1?key=x', r'a \? or a #'),
        ('http://host:99999/v1', 'no host'),
        ('http://ho st/v1', 'white space'),
    ],
)
def test_a_wrong_address_is_refused(address, problem):
    with pytest.raises(InputError, match=problem) as refused:
        LanguageModelSettings('m', address)
    assert 'pass@' not in str(refused.value)


@pytest.mark.parametrize('model', ['', 'a b', 'x' * 201, 'a\x1b[0m'])
def test_a_wrong_name_is_refused(model):
    with pytest.raises(InputError, match='the name that its server knows'):
        LanguageModelSettings(model, 'http://host/v1')
