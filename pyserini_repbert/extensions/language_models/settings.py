"""Which language model is asked, at which address, and which file keeps its answers."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass
from typing import Any

from pyserini_repbert.addresses import address_problem
from pyserini_repbert.errors import InputError

NAME = 'llm'
_EXAMPLE = 'http://127.0.0.1:8000/v1'
_MOST_CHARACTERS = 200  # of a model's name
_NAME = re.compile(r'[\x21-\x7e]+')


def is_language_model(name: Any) -> bool:
    """Whether a reranker's name means a language model by address."""
    return isinstance(name, str) and name == NAME


@dataclass(frozen=True)
class LanguageModelSettings:
    """A language model as a user names it.

    Attributes
    ----------
    model : its name at the address
    address : of an OpenAI-style server, as http://127.0.0.1:8000/v1; None: no server is asked, and
        answers come only from the file
    answers : the SQLite file that keeps each answer; None: none are kept

    Raises InputError for a name or an address of another form.
    """

    model: str
    address: str | None = None
    answers: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.model) or len(self.model) > _MOST_CHARACTERS:
            raise InputError(
                f'language model {self.model[:80]!r}: expected the name that its server knows, '
                f'without white space, at most {_MOST_CHARACTERS} characters',
                parameters=('llm_model',),
            )
        if self.address is not None:
            _check_address(self.address)
        elif self.answers is None:
            raise InputError(
                f"language model '{self.model}' has neither an address nor a file of answers: "
                f'give its address, as {_EXAMPLE}',
                parameters=('llm', 'llm_answers'),
            )


def named_model(
    model: str | None, address: str | None, answers: str | None
) -> LanguageModelSettings | None:
    """The language model that a user names; None if none is named.

    Arguments are as in `LanguageModelSettings`. Raises InputError for an address or a file of
    answers without a model, too.
    """
    if model is not None:
        return LanguageModelSettings(model, address, answers)
    if address is not None or answers is not None:
        raise InputError(
            'a language model has an address or a file of answers, and no name: give the name that '
            'its server knows',
            parameters=('llm_model',),
        )
    return None


def _check_address(address: str) -> None:
    """Raises InputError for an address that no server of this kind has. It shows no password."""
    problem = ''
    if address_problem(address):
        problem = 'it has no http:// or https://, no host, or white space'
    else:
        parts = urllib.parse.urlsplit(address)
        if parts.username is not None or parts.password is not None:
            raise InputError(
                'the address of the language model has a user name or a password, which records '
                'would show: put the key into $PYSERINI_REPBERT_LLM_KEY',
                parameters=('llm',),
            )
        if parts.query or parts.fragment:
            problem = 'it has a ? or a #'
        elif not parts.path.strip('/'):
            problem = 'it has no path, which is often /v1'
    if problem:
        raise InputError(
            f'address of a language model {address[:80]!r}: {problem}: expected an address as '
            f'{_EXAMPLE}',
            parameters=('llm',),
        )
