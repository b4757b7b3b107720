"""A server of the OpenAI form on this machine, which answers by a rule of the test."""

import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASSAGE = re.compile(r'^\[(\d+)\] .*?(\d+)$', re.MULTILINE)


@dataclass
class ChatServer:
    """What a test knows of the server.

    Attributes
    ----------
    address : ends in /v1
    bodies : of the requests, in their order
    keys : the Authorization header of each, None without
    """

    address: str
    bodies: list = field(default_factory=list)
    keys: list = field(default_factory=list)

    @property
    def prompts(self):
        return [body['messages'][0]['content'] for body in self.bodies]


def reply(text, top_tokens=None, prompt_tokens=10, answer_tokens=2):
    """A response of the OpenAI form."""
    choice = {'message': {'role': 'assistant', 'content': text}, 'finish_reason': 'stop'}
    if top_tokens is not None:
        listed = [{'token': token, 'logprob': value} for token, value in top_tokens.items()]
        choice['logprobs'] = {'content': [{'top_logprobs': listed}]}
    usage = {'prompt_tokens': prompt_tokens, 'completion_tokens': answer_tokens}
    return json.dumps({'choices': [choice], 'usage': usage}).encode()


def by_last_number(prompt):
    """The order of passages by the number at their end, the greatest first."""
    passages = [(int(value), int(number)) for number, value in PASSAGE.findall(prompt)]
    return ' > '.join(f'[{number}]' for _, number in sorted(passages, reverse=True))


@contextmanager
def chat_server(rule):
    """A running server.

    `rule` gets the prompt, and gives the text of the answer, the bytes of a response, or a
    function that gets the request's handler and answers itself.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers['Content-Length'])
            body = json.loads(self.rfile.read(length))
            server.bodies.append(body)
            server.keys.append(self.headers['Authorization'])
            answer = rule(body['messages'][0]['content'])
            if callable(answer):
                answer(self)
                return
            send(self, 200, answer if isinstance(answer, bytes) else reply(answer))

        def log_message(self, *values):
            pass

    listener = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    listener.daemon_threads = True
    server = ChatServer(f'http://127.0.0.1:{listener.server_port}/v1')
    thread = threading.Thread(target=listener.serve_forever, kwargs={'poll_interval': 0.01})
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(10)


def send(handler, status, content=b'', headers=(), length=None):
    """Send a response; with another `length` than it has, it is cut off."""
    handler.send_response(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.send_header('Content-Length', str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


def status(code, message='', headers=()):
    """A rule's answer with an HTTP status."""
    content = json.dumps({'error': {'message': message}}).encode() if message else b''
    return lambda handler: send(handler, code, content, headers)
