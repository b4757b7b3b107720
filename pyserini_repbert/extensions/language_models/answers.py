"""The answers of language models in one SQLite file, so that a run is repeated without the model.

An answer is found by a digest of all that decided it: the model's name, the settings and the
prompt. The first stored answer is kept, no matter which process stores it.
"""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pyserini_repbert.data.values import parse_json
from pyserini_repbert.errors import DamagedFileError, InputError
from pyserini_repbert.extensions.language_models.client import ModelAnswer
from pyserini_repbert.sqlite_files import (
    SqliteForm,
    file_address,
    format_version,
    sqlite_errors,
    transaction,
)

_ADVICE = 'restore it from a copy, or begin another file of answers'
_WAIT = 60  # seconds for another connection's lock
_SCHEMA = """
CREATE TABLE answers (
    digest TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    answer TEXT NOT NULL
);
"""
_FORM = SqliteForm(
    application=0x70726C6D,
    version=1,
    schema=_SCHEMA,
    refusal='does not hold answers of a language model',
    advice=_ADVICE,
)


@dataclass
class AnswerTotals:
    """What answers took together.

    Attributes
    ----------
    answers : how many
    prompt_tokens, answer_tokens : as the server counts them
    """

    answers: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0

    def add(self, answer: ModelAnswer) -> None:
        """Count an answer."""
        self.answers += 1
        self.prompt_tokens += answer.prompt_tokens
        self.answer_tokens += answer.answer_tokens


class AnswerFile:
    """The file of answers, which is made when the first is stored.

    Every call opens the file and closes it, so that threads and programs share it.

    Parameters
    ----------
    path : of the file

    Raises InputError for a folder, or a file in a folder that does not exist.
    """

    def __init__(self, path: Path) -> None:
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(
                f'file of answers {path}: a file in an existing folder was expected',
                parameters=('llm_answers',),
            )
        self.path = path

    def find(self, digest: str) -> ModelAnswer | None:
        """The stored answer; None if there is none."""
        if not self.path.is_file():
            return None
        with self._connected() as connection:
            return self._select(connection, digest)

    def store(self, digest: str, model: str, answer: ModelAnswer) -> ModelAnswer:
        """Store an answer, unless the digest already has one; returns the stored answer.

        Parameters
        ----------
        digest : of model, settings and prompt
        model : its name
        answer : of the model
        """
        values = json.dumps(asdict(answer))
        with self._connected() as connection, transaction(connection):
            connection.execute(
                'INSERT OR IGNORE INTO answers VALUES (?, ?, ?)', [digest, model, values]
            )
            stored = self._select(connection, digest)
        assert stored is not None
        return stored

    def totals(self) -> dict[str, AnswerTotals]:
        """The stored answers of each model, by its name; nothing without the file."""
        if not self.path.is_file():
            return {}
        totals: dict[str, AnswerTotals] = {}
        with self._connected(is_read_only=True) as connection:
            for model, text in connection.execute(
                'SELECT model, answer FROM answers ORDER BY model'
            ):
                totals.setdefault(str(model), AnswerTotals()).add(self._parsed(text))
        return totals

    def _select(self, connection: sqlite3.Connection, digest: str) -> ModelAnswer | None:
        row = connection.execute('SELECT answer FROM answers WHERE digest = ?', [digest]).fetchone()
        return None if row is None else self._parsed(row[0])

    def _parsed(self, text: object) -> ModelAnswer:
        """The answer of a row. Raises DamagedFileError for a row of another form."""
        try:
            values = parse_json(str(text))
            top_tokens = [(str(token), float(logprob)) for token, logprob in values['top_tokens']]
            answer = ModelAnswer(
                text=str(values['text']),
                prompt_tokens=int(values['prompt_tokens']),
                answer_tokens=int(values['answer_tokens']),
                top_tokens=tuple(top_tokens),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedFileError(
                f'{self.path} is damaged, an answer in it has another form: {_ADVICE}'
            ) from error
        if not all(math.isfinite(logprob) for _, logprob in answer.top_tokens):
            raise DamagedFileError(
                f'{self.path} is damaged, a probability in it is not a number: {_ADVICE}'
            )
        return answer

    @contextmanager
    def _connected(self, is_read_only: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection to a file of this form.

        Creates its table if there is none, unless the file is only read.
        """
        mode = 'ro' if is_read_only else 'rwc'
        address = file_address(self.path, f'mode={mode}')
        with sqlite_errors(self.path, _ADVICE):
            connection = sqlite3.connect(address, uri=True, timeout=_WAIT, isolation_level=None)
            with contextlib.closing(connection):
                if not is_read_only and format_version(connection) == 0:
                    with transaction(connection):
                        # Unless another process has made it meanwhile.
                        if format_version(connection) == 0:
                            _FORM.make_in(connection, self.path)
                _FORM.check(connection, self.path)
                yield connection
