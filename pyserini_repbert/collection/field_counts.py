"""How many documents of a generation have each field, and which values."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.store import ALIVE, STORE, open_for_reading, sqlite_errors

# Different values of a field that are counted one by one.
_MOST_VALUES = 20
# Characters of such a value.
_LONGEST_VALUE = 200


@dataclass(frozen=True)
class ValueCount:
    """A value of a field, as a filter names it, and how many documents have it."""

    value: str
    documents: int


@dataclass(frozen=True)
class FieldCount:
    """How many documents have a field, and its values.

    Attributes
    ----------
    documents : with any value of it
    values : the most frequent first; none where there are more than 20 different ones, or long
        ones
    """

    documents: int
    values: tuple[ValueCount, ...]


class FieldCounter:
    """Counts the fields of a generation when they are first asked for.

    All values are read, by a connection of its own: searches go on meanwhile. Threads may share it.

    Parameters
    ----------
    generation : open, until the counter is closed
    """

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._connection: sqlite3.Connection | None = None
        self._counting = threading.RLock()

    def prepare(self) -> None:
        """Open what `counts` reads: it can then be asked where the folder is moved away."""
        with self._counting:
            if self._connection is None:
                self._connection = open_for_reading(self._generation.folder)

    def counts(self) -> dict[str, FieldCount]:
        """How many documents have each field, and its values, by the field's name in order."""
        with self._counting:
            return self._counts

    @cached_property
    def _counts(self) -> dict[str, FieldCount]:
        values = self._value_counts()
        counts = {}
        rows = self._select(
            f'SELECT field, COUNT(DISTINCT docno) FROM field_values WHERE {ALIVE} '
            'GROUP BY field ORDER BY field'
        )
        for field, n_documents in rows:
            counts[field] = FieldCount(n_documents, tuple(values.get(field, ())))
        return counts

    def _value_counts(self) -> dict[str, list[ValueCount]]:
        """The values of each field of few, the most frequent first."""
        documents: dict[str, dict[str, int]] = {}
        types = self._generation.field_types
        rows = self._select(
            'SELECT field, value, n FROM (SELECT field, value, n, '
            'COUNT(*) OVER (PARTITION BY field) AS different, '
            'MAX(length(value)) OVER (PARTITION BY field) AS longest FROM (SELECT field, value, '
            f'COUNT(*) AS n FROM field_values WHERE {ALIVE} GROUP BY field, type, value)) '
            f'WHERE different <= {_MOST_VALUES} AND longest <= {_LONGEST_VALUE} '
            'ORDER BY field, value'
        )
        for field, value, n_documents in rows:
            of_field = documents.setdefault(field, {})
            text = _value_text(value)
            # Of a damaged row, no type is known.
            if len(types.get(field, ())) > 1:
                # A filter names the number 2020 and the text '2020' alike, and finds both.
                n_documents = len(set(self._generation.docnos_of_value(field, text)))
            of_field[text] = n_documents
        counts = {}
        for field, of_field in documents.items():
            by_frequency = sorted(of_field.items(), key=lambda pair: -pair[1])
            counts[field] = [ValueCount(text, n_documents) for text, n_documents in by_frequency]
        return counts

    def _select(self, statement: str) -> list[Any]:
        """The rows of a query that takes long: `Generation.select` does not wait for it."""
        self.prepare()
        assert self._connection is not None
        with sqlite_errors(self._generation.folder / STORE):
            rows = self._connection.execute(statement, {'generation': self._generation.number})
            return rows.fetchall()

    def close(self) -> None:
        """Release the connection."""
        with self._counting:
            if self._connection is not None:
                self._connection.close()


def _value_text(value: str | float) -> str:
    """A value as a filter names it: a whole number without its point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
