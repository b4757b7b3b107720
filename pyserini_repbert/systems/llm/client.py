"""The client of an OpenAI-style server: one request, `POST ADDRESS/chat/completions`.

Python's own HTTP client does it. The package `openai` waits between retries on its own, reads
answers of any length, follows redirects with the key, and tells the server about this machine.
"""

from __future__ import annotations

import email.message
import http.client
import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import LanguageModelError

KEY_VARIABLE = 'PYSERINI_REPBERT_LLM_KEY'
# Seconds before each further try of a request that failed.
WAITS = (1.0, 4.0, 15.0)
_LONGEST_WAIT = 60.0  # that a server may ask for
_SILENT_SECONDS = 120  # without a byte
_ANSWER_SECONDS = 600  # for a whole answer
_MOST_BYTES = 4 << 20  # of an answer
_BLOCK = 1 << 16
_SHOWN = 200  # characters of a server's message
_MOST_TOP_TOKENS = 100
# What may be otherwise a moment later: timeouts, too many requests, a server that starts.
_PASSING = (408, 409, 425, 429, 500, 502, 503, 504, 529)


@dataclass(frozen=True)
class ModelAnswer:
    """What a language model answered.

    Attributes
    ----------
    text : without lone surrogates
    prompt_tokens, answer_tokens : as the server counts them; 0 where it does not
    top_tokens : the likeliest first tokens of the answer with the natural logarithm of their
        probabilities; empty where they were not asked for, or the server has none
    """

    text: str
    prompt_tokens: int = 0
    answer_tokens: int = 0
    top_tokens: tuple[tuple[str, float], ...] = ()


class _PassingError(Exception):
    """A request failed in a way that may pass; `wait` is how long the server asks to wait."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: passages and key go to the address that was given, and to no other."""

    def redirect_request(self, *request: Any, **others: Any) -> None:
        return None


class ChatClient:
    """Sends requests to one address.

    Parameters
    ----------
    address : checked by `LanguageModelSettings`
    wait : waits for so many seconds before another try
    """

    def __init__(self, address: str, wait: Callable[[float], object] = time.sleep) -> None:
        self.address = address
        self._url = f'{address.rstrip("/")}/chat/completions'
        self._wait = wait
        self._opener = urllib.request.build_opener(_NoRedirect)

    def complete(self, body: Mapping[str, Any]) -> ModelAnswer:
        """The answer to the body of a request. What may pass is tried again, as `WAITS` says.

        Raises LanguageModelError for a server that cannot be reached, fails or refuses, for an
        answer that is not of the OpenAI form, and for a wrong key.
        """
        request = self._request(body)
        for wait in (*WAITS, None):
            try:
                return _parse(self._post(request), self.address)
            except _PassingError as error:
                if wait is None:
                    raise LanguageModelError(
                        f'the language model at {self.address} failed {len(WAITS) + 1} times '
                        f'({error}): try again later; what it answered is kept in the file of '
                        'answers, if there is one',
                        parameters=('llm_answers',),
                    ) from error
                self._wait(wait if error.wait is None else error.wait)
        raise AssertionError('the last try returns or raises')

    def _request(self, body: Mapping[str, Any]) -> urllib.request.Request:
        headers = {'Content-Type': 'application/json', 'Accept': 'application/json'}
        key = os.environ.get(KEY_VARIABLE, '')
        if key:
            if not (key.isascii() and key.isprintable()) or ' ' in key:
                raise LanguageModelError(
                    f'the key in ${KEY_VARIABLE} has blanks or special characters'
                )
            headers['Authorization'] = f'Bearer {key}'
        data = json.dumps(body).encode()
        return urllib.request.Request(self._url, data, headers, method='POST')

    def _post(self, request: urllib.request.Request) -> bytes:
        """The body of the response."""
        try:
            with self._opener.open(request, timeout=_SILENT_SECONDS) as response:
                return self._read(response)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise _PassingError('no answer in time') from error
            raise LanguageModelError(
                f'the language model at {self.address} cannot be reached ({_shown(error.reason)}): '
                'start its server, or check the address',
                parameters=('llm',),
            ) from error
        except TimeoutError as error:
            raise _PassingError('no answer in time') from error
        except (http.client.HTTPException, ConnectionError) as error:
            raise _PassingError(f'the connection broke: {type(error).__name__}') from error

    def _read(self, response: Any) -> bytes:
        """The body, at most `_MOST_BYTES`, within `_ANSWER_SECONDS`."""
        ends = time.monotonic() + _ANSWER_SECONDS
        expected = response.length
        blocks: list[bytes] = []
        n_bytes = 0
        while n_bytes != expected:
            block = response.read1(_BLOCK)
            if not block:
                break
            blocks.append(block)
            n_bytes += len(block)
            if n_bytes > _MOST_BYTES:
                raise LanguageModelError(
                    f'the language model at {self.address} answers with more than '
                    f'{_MOST_BYTES:,} bytes: check that it is one',
                    parameters=('llm',),
                )
            if time.monotonic() > ends:
                raise _PassingError('no whole answer in time')
        if expected is not None and n_bytes < expected:
            raise _PassingError('the answer was cut off')
        return b''.join(blocks)

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        """What an HTTP status other than 200 means."""
        message = _message_of(error)
        if error.code in _PASSING:
            return _PassingError(f'HTTP {error.code}{message}', _asked_wait(error.headers))
        if error.code in (401, 403):
            has_key = bool(os.environ.get(KEY_VARIABLE))
            problem = 'refuses the key in' if has_key else 'wants a key, which is read from'
            return LanguageModelError(
                f'the language model at {self.address} {problem} ${KEY_VARIABLE} '
                f'(HTTP {error.code}{message})'
            )
        advice = 'check the address and the name of the model'
        if error.code == 404:
            advice = 'check the name of the model, and the address, which often ends in /v1'
        return LanguageModelError(
            f'the language model at {self.address} refuses the request (HTTP '
            f'{error.code}{message}): {advice}',
            parameters=('llm', 'llm_model'),
        )


def _message_of(error: urllib.error.HTTPError) -> str:
    """': MESSAGE' of an error's body; '' where it has none."""
    try:
        body = error.read(_BLOCK)
        message = parse_json(body)['error']['message']
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return ''
    return f': {_shown(message)}'


def _asked_wait(headers: email.message.Message) -> float | None:
    """The seconds of Retry-After; None where it has none, or a date."""
    try:
        seconds = float(headers.get('Retry-After', ''))
    except ValueError:
        return None
    if not 0 <= seconds <= _LONGEST_WAIT:
        return None
    return seconds


def _shown(value: object) -> str:
    """A value of the server's in one short line."""
    return ascii(' '.join(str(value).split())[:_SHOWN])[1:-1]


def _parse(body: bytes, address: str) -> ModelAnswer:
    """The answer in a response of the OpenAI form."""
    try:
        response = parse_json(body)
        choice = response['choices'][0]
        content = choice['message']['content']
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise LanguageModelError(
            f'the language model at {address} does not answer as an OpenAI-style server '
            f"({type(error).__name__}), whose 'choices' have a 'message': check the address",
            parameters=('llm',),
        ) from error
    text = content if isinstance(content, str) else ''
    usage = response.get('usage')
    return ModelAnswer(
        text.encode('utf-8', 'replace').decode('utf-8'),
        _count(usage, 'prompt_tokens'),
        _count(usage, 'completion_tokens'),
        _top_tokens(choice),
    )


def _count(usage: Any, name: str) -> int:
    """A number of tokens; 0 for anything else."""
    number = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 40:
        return number
    return 0


def _top_tokens(choice: Any) -> tuple[tuple[str, float], ...]:
    """The likeliest first tokens and their log-probabilities; what has another form is left out."""
    try:
        listed = choice['logprobs']['content'][0]['top_logprobs']
        pairs = [(entry['token'], entry['logprob']) for entry in listed[:_MOST_TOP_TOKENS]]
    except (KeyError, IndexError, TypeError):
        return ()
    top = []
    for token, logprob in pairs:
        is_number = isinstance(logprob, int | float) and math.isfinite(logprob)
        if isinstance(token, str) and is_number:
            top.append((token.encode('utf-8', 'replace').decode('utf-8'), float(logprob)))
    return tuple(top)
