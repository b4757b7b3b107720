"""The client of an OpenAI-style server: what it sends, what it tries again, what it refuses."""

import asyncio
import contextlib
import gzip
import json
import socket
import sys
import threading
import time
from contextlib import contextmanager
from email.utils import formatdate

import pytest
from chat_server import chat_server, reply, send, status
from folders import HANGS

from pyserini_repbert.errors import InputError, MissingDependencyError
from pyserini_repbert.extensions.language_models.client import ChatClient, ModelAnswer
from pyserini_repbert.extensions.language_models.errors import LanguageModelError
from pyserini_repbert.extensions.language_models.exchange import proxy_of
from pyserini_repbert.extensions.language_models.settings import LanguageModelSettings

BODY = {'model': 'm', 'messages': [{'role': 'user', 'content': 'hello'}]}


def answer_of(rule):
    """What the client makes of a server's answers."""
    with chat_server(rule) as server:
        return ChatClient(server.address).complete(BODY), server


def in_turn(*answers):
    """A rule that gives one answer after the other."""
    left = iter(answers)
    return lambda prompt: next(left)


def test_an_answer_has_text_tokens_and_likely_tokens(monkeypatch):
    monkeypatch.setenv('PYSERINI_REPBERT_LLM_KEY', 'secret')
    answer, server = answer_of(lambda prompt: reply('hi', {'hi': -0.5}, 7, 1))
    assert answer == ModelAnswer('hi', 7, 1, (('hi', -0.5),))
    assert server.bodies == [BODY] and server.keys == ['Bearer secret']


def test_without_a_key_none_is_sent_and_others_are_not_read(monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', 'of-another')
    _, server = answer_of(lambda prompt: 'hi')
    assert server.keys == [None]


@pytest.mark.parametrize('code', [408, 429, 500, 503, 524])
def test_what_may_pass_is_tried_again(code, waits):
    again = status(code, headers=[('Retry-After', '3')])
    answer, server = answer_of(in_turn(status(code), again, 'at last'))
    assert answer.text == 'at last' and len(server.bodies) == 3
    assert 0 < waits[0] <= 0.5 and waits[1] == 3.0


@pytest.mark.parametrize(
    ('headers', 'seconds'),
    [
        ([('Retry-After', '90')], 90),
        ([('retry-after-ms', '6000')], 6),
        ([('Retry-After', 'in 8 s')], 8),
        ([('Retry-After', 'nan')], 0.5),
    ],
)
def test_it_waits_as_the_server_asks(headers, seconds, waits):
    if headers[0][1] == 'in 8 s':
        headers = [('Retry-After', formatdate(time.time() + 8, usegmt=True))]
    answer, _ = answer_of(in_turn(status(429, 'slow down', headers), 'soon'))
    assert answer.text == 'soon'
    assert waits == [pytest.approx(seconds, abs=1.2)]


def test_a_longer_wait_is_said(waits):
    with pytest.raises(LanguageModelError, match='slow down; it asks to wait 86400 s'):
        answer_of(in_turn(status(429, 'slow down', [('Retry-After', '86400')])))
    assert waits == []


def test_tries_have_an_end(waits):
    with pytest.raises(LanguageModelError, match=r'failed several times \(HTTP 500: no memory\)'):
        answer_of(lambda prompt: status(500, 'no memory'))
    assert len(waits) == 3


def body_of(value):
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    'failure',
    [
        {'error': {'message': 'Provider returned error', 'code': 502}, 'user_id': 'u'},
        {'choices': [], 'error': {'message': 'overloaded', 'code': 429}},
        {'error': 'overloaded'},
    ],
)
def test_an_error_with_status_200_is_tried_again_and_its_reason_is_shown(failure):
    answer, _ = answer_of(in_turn(body_of(failure), 'at last'))
    assert answer.text == 'at last'
    with pytest.raises(LanguageModelError, match='Provider returned error|overloaded'):
        answer_of(lambda prompt: body_of(failure))


@pytest.mark.parametrize(
    ('code', 'body', 'reason'),
    [
        (400, {'error': 'model "x" not found, try pulling it first'}, 'try pulling it first'),
        (400, {'message': 'no such model'}, 'no such model'),
        (422, {'detail': [{'loc': ['body', 'n'], 'msg': 'too great'}]}, 'too great'),
        (422, {'detail': 'too great'}, 'too great'),
    ],
)
def test_the_reason_is_shown_in_each_form(code, body, reason):
    with pytest.raises(LanguageModelError, match=reason):
        answer_of(lambda prompt: lambda handler: send(handler, code, body_of(body)))


def test_an_answer_that_is_cut_off_is_asked_for_again():
    def cut(handler):
        send(handler, 200, reply('whole')[:20], length=500)
        handler.close_connection = True

    answer, _ = answer_of(in_turn(cut, 'whole'))
    assert answer.text == 'whole'


def test_a_slow_server_is_given_up(monkeypatch):
    monkeypatch.setattr('pyserini_repbert.extensions.language_models.exchange._SILENT_SECONDS', 0.2)

    def slow(handler):
        time.sleep(0.6)

    with pytest.raises(LanguageModelError, match='no answer in time'):
        answer_of(lambda prompt: slow)


@contextmanager
def dripping(begin, drop):
    """The address of a server that says `begin`, and then `drop` without an end."""
    listener = socket.create_server(('127.0.0.1', 0))

    def answer():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(begin)
                    while True:
                        connection.sendall(drop)
                        time.sleep(0.01)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield f'http://127.0.0.1:{listener.getsockname()[1]}/v1'
    finally:
        listener.close()


@pytest.mark.parametrize(
    ('begin', 'drop'),
    [
        (b'', b'H'),
        (b'HTTP/1.1 200 OK\r\nX: ', b'a'),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n', b' '),
        (b'HTTP/1.1 400 no\r\nContent-Length: 60000\r\n\r\n', b' '),
        (b'', b'HTTP/1.1 100 Continue\r\n\r\n'),
    ],
)
def test_the_whole_exchange_has_one_deadline(begin, drop, monkeypatch):
    monkeypatch.setattr('pyserini_repbert.extensions.language_models.exchange._SECONDS', 0.5)
    with dripping(begin, drop) as address:
        start = time.monotonic()
        with pytest.raises(LanguageModelError, match='no answer in time|connection broke'):
            ChatClient(address).complete(BODY)
        assert time.monotonic() - start < HANGS / 10


def test_within_a_running_loop_as_in_a_notebook():
    async def ask():
        return answer_of(lambda prompt: 'hi')[0]

    assert asyncio.run(ask()).text == 'hi'


def refusing(*names, most=None):
    """A rule of a server that refuses values of a request, and top_logprobs above `most`."""

    def answer(handler_body):
        for name in names:
            if name in handler_body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                return status(400, message)
        if most is not None and handler_body.get('top_logprobs', 0) > most:
            return status(400, f'top_logprobs: must be at most {most}')
        return 'hi'

    return answer


@pytest.mark.parametrize(
    ('names', 'most', 'sent'),
    [
        (['max_tokens'], None, {'max_completion_tokens': 7, 'temperature': 0, 'top_logprobs': 20}),
        (['temperature', 'max_tokens'], None, {'max_completion_tokens': 7, 'top_logprobs': 20}),
        ([], 5, {'max_tokens': 7, 'temperature': 0, 'top_logprobs': 5}),
        (['logprobs'], None, {'max_tokens': 7, 'temperature': 0}),
    ],
)
def test_what_a_model_refuses_is_renamed_or_left_out(names, most, sent):
    asked = {**BODY, 'max_tokens': 7, 'temperature': 0, 'top_logprobs': 20}
    if 'logprobs' in names:
        asked['logprobs'] = True
    answer = refusing(*names, most=most)
    with chat_server(lambda prompt: answer(server.bodies[-1])) as server:
        client = ChatClient(server.address)
        assert client.complete(asked).text == 'hi'
        assert server.bodies[-1] == {**BODY, **sent}
        n_requests = len(server.bodies)
        client.complete(asked)
        assert len(server.bodies) == n_requests + 1


@pytest.mark.parametrize(
    ('address', 'proxy'),
    [
        ('http://127.0.0.1:8000/v1', None),
        ('http://127.1.2.3/v1', None),
        ('http://[::1]:8000/v1', None),
        ('http://localhost:8000/v1', None),
        ('http://inside.example/v1', None),
        ('http://other.example/v1', 'http://proxy:3128'),
        ('https://other.example/v1', None),
    ],
)
def test_an_address_of_this_machine_is_asked_without_a_proxy(address, proxy, monkeypatch):
    monkeypatch.setenv('HTTP_PROXY', 'http://proxy:3128')
    monkeypatch.setenv('http_proxy', 'http://proxy:3128')
    monkeypatch.setenv('no_proxy', 'inside.example')
    for name in ('https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'):
        monkeypatch.delenv(name, raising=False)
    assert proxy_of(address) == proxy


def test_the_server_learns_nothing_of_this_machine(monkeypatch):
    monkeypatch.setenv('OPENAI_ORG_ID', 'mine')
    monkeypatch.setenv('OPENAI_API_KEY', 'of-another')
    seen = []

    def record(handler):
        seen.append({name.lower() for name in handler.headers})
        send(handler, 200, reply('hi'))

    answer_of(lambda prompt: record)
    assert seen[0] <= {
        *('host', 'accept', 'accept-encoding', 'connection', 'user-agent'),
        *('content-type', 'content-length'),
    }


def test_a_compressed_answer_is_refused():
    content = gzip.compress(reply('hi'))

    def compressed(handler):
        send(handler, 200, content, [('Content-Encoding', 'gzip')])

    with pytest.raises(LanguageModelError, match='or compressed'):
        answer_of(lambda prompt: compressed)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'openai', None)
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[llm\]'"):
        ChatClient('http://127.0.0.1:1/v1').complete(BODY)


def test_a_body_without_end_is_refused():
    def endless(handler):
        send(handler, 200, b' ' * (10 << 20))

    with pytest.raises(LanguageModelError, match='more than 4,194,304 bytes'):
        answer_of(lambda prompt: endless)


@pytest.mark.parametrize(
    'body',
    [
        b'',
        b'<html>',
        b'[]',
        b'[1]',
        b'{}',
        b'{"choices": []}',
        b'{"choices": [7]}',
        b'{"choices": {"0": 1}}',
        b'[' * 100_000,
        # A stream, another encoding, a number without an end.
        b'data: {"choices": [{"delta": {"content": "[2] > [1]"}}]}\n\ndata: [DONE]\n\n',
        b'{"choices": [{"message": {"content": "\xe9"}}]}',
        b'{"choices": [{"message": {"content": "a"}}], "n": ' + b'9' * 100_000 + b'}',
    ],
)
def test_what_is_not_of_the_form_is_refused(body):
    with pytest.raises(LanguageModelError, match='OpenAI-style server'):
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
    answer, _ = answer_of(lambda prompt: reply('yes', {'yes': True, 'no': -2}))
    assert answer.top_tokens == (('no', -2.0),)


@pytest.mark.parametrize('before', [b'\xef\xbb\xbf', b'\n\n\n'])
def test_signs_before_an_answer_are_no_part_of_it(before):
    answer, _ = answer_of(lambda prompt: before + reply('hi'))
    assert answer.text == 'hi'


@pytest.mark.parametrize(
    'more', [{'refusal': 'I cannot.'}, {'tool_calls': [{'function': {'name': 'rank'}}]}]
)
def test_a_refusal_of_the_model_is_an_empty_answer(more):
    message = {'role': 'assistant', 'content': None, **more}
    answer, _ = answer_of(lambda prompt: body_of({'choices': [{'message': message}]}))
    assert answer == ModelAnswer('')


@pytest.mark.parametrize(
    'raw',
    [
        b'',
        b'no status line',
        b'HTTP/1.1 204 none\r\n\r\n',
        b'HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n',
        b'HTTP/1.1 200 OK\r\nX: ' + b'a' * 200_000 + b'\r\n\r\n',
    ],
)
def test_what_is_no_response_is_one_line(raw):
    def speak(handler):
        handler.wfile.write(raw)
        handler.close_connection = True

    with pytest.raises(LanguageModelError) as refused:
        answer_of(lambda prompt: speak)
    assert '\n' not in str(refused.value) and len(str(refused.value)) < 500


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
    with pytest.raises(InputError, match='its server knows'):
        LanguageModelSettings(model, 'http://host/v1')
