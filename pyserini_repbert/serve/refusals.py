"""Why a request is not answered: the errors that only a service raises, and their messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyserini_repbert.errors import InputError, PyseriniRepbertError
from pyserini_repbert.extension_words import missing_extension

_VALUE_CHARACTERS = 300  # of a refused value that its error repeats


class OverloadedError(PyseriniRepbertError):
    """Too many jobs wait already."""


class NotAllowedError(PyseriniRepbertError):
    """The client, or anybody, may not write here."""


class NotReadyError(PyseriniRepbertError):
    """The indexes are not open yet."""


class TooLateError(PyseriniRepbertError):
    """The answer took longer than the service allows."""


class UnderWayError(PyseriniRepbertError):
    """The requested work is already in progress."""


def too_long_answer(most_bytes: int, less: str) -> InputError:
    """The error of an answer that would be too long; `less` says how to ask for a shorter one."""
    return InputError(f'the answer would have more than {most_bytes:,} bytes: {less}')


def describe_problem(name: str, problem: Mapping[str, Any]) -> str:
    """One line about a problem that pydantic found with the parameter that is called so."""
    given = 'nothing'
    if problem['type'] not in ('missing', 'missing_argument'):
        given = json.dumps(problem.get('input'), default=str)[:_VALUE_CHARACTERS]
    advice = ''
    if problem['type'] == 'extra_forbidden':
        advice = missing_extension(str(problem['loc'][-1]))
    return f'{name}: {problem["msg"]} ({given} was given){advice}'
