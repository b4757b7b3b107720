"""The client of an OpenAI-style server, and the server's answers, refusals, and unsupported
parameters.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import needs
from pyserini_repbert.extensions.language_models.errors import LanguageModelError

KEY_VARIABLE = 'PYSERINI_REPBERT_LLM_KEY'
_SHOWN = 200  # characters of a server's message
_MOST_TOP_TOKENS = 100
# What some models refuse; `_without_refused` says what becomes of it.
_REFUSABLE = ('max_tokens', 'temperature', 'top_logprobs', 'logprobs', 'seed')
# A number of likeliest tokens may be refused several times.
_MOST_CHANGES = 8


@dataclass(frozen=True)
class ModelAnswer:
    """What a language model answered.

    Attributes
    ----------
    text : without lone surrogates
    prompt_tokens, answer_tokens : as the server counts them; 0 if it does not
    top_tokens : the likeliest first tokens of the answer with the natural logarithm of their
        probabilities; empty if they were not asked for, or the server has none
    """

    text: str
    prompt_tokens: int = 0
    answer_tokens: int = 0
    top_tokens: tuple[tuple[str, float], ...] = ()


class ChatClient:
    """Sends requests to one address.

    What a server refused once is not sent to it again.

    Parameters
    ----------
    address : checked by `LanguageModelSettings`
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._refusals: list[_Refused] = []

    def complete(self, body: Mapping[str, Any]) -> ModelAnswer:
        """The answer to the body of a request; what may pass is tried again.

        Raises LanguageModelError for a server that cannot be reached, fails or refuses, for an
        answer that is not of the OpenAI form, and for a wrong key; MissingDependencyError without
        the package `openai`.
        """
        for _ in range(_MOST_CHANGES):
            asked = dict(body)
            for refused in self._refusals:
                asked = refused.changed(asked)
            response = self._post(asked)
            if isinstance(response, bytes):
                return _parse(response, self.address)
            self._refusals.append(response)
        raise LanguageModelError(
            f'the language model at {self.address} refuses each form of the request: check the '
            'name of the model',
            parameters=('llm_model',),
        )

    def _post(self, body: Mapping[str, Any]) -> bytes | _Refused:
        """The response, or what of the body is refused."""
        with needs('openai', 'a language model', 'llm'):
            import openai

            from pyserini_repbert.extensions.language_models import exchange
        try:
            return exchange.post(self.address, _read_key(), body)
        except (TimeoutError, openai.APITimeoutError) as error:
            raise self._failure('no answer in time') from error
        except exchange.TooLongError as error:
            raise LanguageModelError(
                f'the language model at {self.address} answers with more than '
                f'{exchange.MOST_BYTES:,} bytes, or compressed: check that it is one',
                parameters=('llm',),
            ) from error
        except openai.APIStatusError as error:
            return self._refusal(error, body)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            if type(cause).__name__ in ('ConnectError', 'ProxyError', 'UnsupportedProtocol'):
                raise LanguageModelError(
                    f'the language model at {self.address} cannot be reached ({_shown(cause)}): '
                    'start its server, or check the address',
                    parameters=('llm',),
                ) from error
            raise self._failure(f'the connection broke: {type(cause).__name__}') from error

    def _failure(self, reason: str) -> LanguageModelError:
        """The error about what may pass, and did not."""
        return LanguageModelError(
            f'the language model at {self.address} failed several times ({reason}): try again '
            'later; what it answered is kept in the file of answers, if there is one',
            parameters=('llm_answers',),
        )

    def _refusal(self, error: Any, body: Mapping[str, Any]) -> _Refused:
        """What of the body a status means to refuse.

        Raises LanguageModelError for all other errors.
        """
        code = error.status_code
        reason = _reason_of(error.response.content)
        if code in (400, 422):
            refused = _refused_part(body, reason)
            if refused is not None:
                return refused
        shown = f'HTTP {code}: {reason}' if reason else f'HTTP {code}'
        if code in (408, 409, 425, 429) or code >= 500:
            wait = error.response.headers.get('retry-after')
            asks = f'; it asks to wait {_shown(wait)} s' if code == 429 and wait else ''
            raise self._failure(f'{shown}{asks}') from error
        if code in (401, 403):
            has_key = bool(os.environ.get(KEY_VARIABLE))
            problem = 'refuses the key in' if has_key else 'wants a key, which is read from'
            raise LanguageModelError(
                f'the language model at {self.address} {problem} ${KEY_VARIABLE} ({shown})'
            ) from error
        advice = 'check the address and the name of the model'
        if code == 404:
            advice = 'check the name of the model, and the address, which often ends in /v1'
        raise LanguageModelError(
            f'the language model at {self.address} refuses the request ({shown}): {advice}',
            parameters=('llm', 'llm_model'),
        ) from error


@dataclass(frozen=True)
class _Refused:
    """What a server refuses of requests.

    Attributes
    ----------
    name : of the value in the body
    most : the greatest number that it takes; None: it takes none
    """

    name: str
    most: int | None = None

    def changed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A body without the refused parameters; newer models have another name for
        `max_tokens`.
        """
        values = dict(body)
        if self.name not in values:
            return values
        value = values.pop(self.name)
        if self.name == 'max_tokens':
            values['max_completion_tokens'] = value
        elif self.most is not None:
            values[self.name] = min(value, self.most)
        elif self.name == 'logprobs':
            values.pop('top_logprobs', None)
        return values


def _refused_part(body: Mapping[str, Any], reason: str) -> _Refused | None:
    """What of a body a server's message refuses; None if it names nothing that can change."""
    named = re.findall('[a-z_]+', reason)
    for name in _REFUSABLE:
        if name not in body or name not in named:
            continue
        if name != 'top_logprobs':
            return _Refused(name)
        numbers = [int(number) for number in re.findall(r'(?<!\d)\d{1,3}(?!\d)', reason)]
        smaller = [number for number in numbers if 1 <= number < body[name]]
        return _Refused(name, max(smaller, default=body[name] // 2) or 1)
    return None


def _read_key() -> str:
    """The key of the environment; '' without one. Raises LanguageModelError for one that cannot be
    sent.
    """
    key = os.environ.get(KEY_VARIABLE, '')
    if key and (not (key.isascii() and key.isprintable()) or ' ' in key):
        raise LanguageModelError(f'the key in ${KEY_VARIABLE} has blanks or special characters')
    return key


def _reason_of(body: bytes) -> str:
    """What an error's body says, in one short line; '' if it says nothing.

    The forms of OpenAI, of Ollama (a string), of FastAPI (`detail`), and a plain `message`.
    """
    try:
        response = parse_json(body)
    except ValueError:
        return ''
    if not isinstance(response, dict):
        return ''
    reason = response.get('error') or response.get('detail') or response.get('message')
    if isinstance(reason, dict):
        reason = reason.get('message')
    return _shown(reason) if reason else ''


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
    text = _text_of(content)
    usage = response.get('usage')
    return ModelAnswer(
        text.encode('utf-8', 'replace').decode('utf-8'),
        _count(usage, 'prompt_tokens'),
        _count(usage, 'completion_tokens'),
        _top_tokens(choice),
    )


def _text_of(content: Any) -> str:
    """The text of an answer: its parts of type text; '' for anything else."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else ():
        is_text = isinstance(part, dict) and part.get('type') == 'text'
        if is_text and isinstance(part.get('text'), str):
            texts.append(part['text'])
    return ''.join(texts)


def _count(usage: Any, name: str) -> int:
    """A number of tokens; 0 for anything else."""
    number = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 40:
        return number
    return 0


def _top_tokens(choice: Any) -> tuple[tuple[str, float], ...]:
    """The likeliest first tokens and their log-probabilities.

    Entries of another form are left out.
    """
    try:
        listed = choice['logprobs']['content'][0]['top_logprobs']
        pairs = [(entry['token'], entry['logprob']) for entry in listed[:_MOST_TOP_TOKENS]]
    except (KeyError, IndexError, TypeError):
        return ()
    top = []
    for token, logprob in pairs:
        is_number = isinstance(logprob, int | float) and not isinstance(logprob, bool)
        if isinstance(token, str) and is_number and math.isfinite(logprob):
            top.append((token.encode('utf-8', 'replace').decode('utf-8'), float(logprob)))
    return tuple(top)
