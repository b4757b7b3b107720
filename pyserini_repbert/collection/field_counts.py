"""How many documents of a generation have each field, and which values."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyserini_repbert.collection.file_fields import COUNT_DOCUMENTS
from pyserini_repbert.collection.file_values import (
    SOURCE,
    FileOfSource,
    compared_fields,
    file_fields,
    shown_sources,
)
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.store import ALIVE, STORE, open_for_reading, sqlite_errors
from pyserini_repbert.collection.stored_values import WORD
from pyserini_repbert.data.word_forms import unite_value

# The most distinct values of a field that are counted one by one.
_MOST_VALUES = 20
# The most characters of such a value.
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
    values : the most frequent first; none if there are more than 20 different ones, or long
        ones
    """

    documents: int
    values: tuple[ValueCount, ...]


class FieldCounter:
    """Counts the fields of a generation when they are first asked for.

    All values are read by a separate connection, so that searches continue meanwhile. Threads may
    share it.

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
            counts[field] = FieldCount(n_documents, values.get(field, ()))
        for field in self._generation.file_fields.types:
            of_files = self._count_sources() if field == SOURCE else self._count_files(field)
            if of_files.documents:
                counts[field] = self._sum_of(field, counts.get(field), of_files)
        return dict(sorted(counts.items()))

    def _count_sources(self) -> FieldCount:
        """How many documents each source has, without those with an own field of that name."""
        shown = shown_sources(self._generation.file_fields.source_names)
        n_of_forms = _FormCounts()
        rows = self._select(
            f'SELECT source, COUNT(*) FROM fields WHERE {ALIVE} '
            f'{self._without_own(SOURCE, "fields")} GROUP BY source'
        )
        n_documents = 0
        for source, n_of_source in rows:
            n_documents += n_of_source
            n_of_forms.add(shown.get(source, ''), n_of_source)
        return _field_count(n_documents, n_of_forms.counts())

    def _without_own(self, field: str, table: str) -> str:
        """The condition that a document of a table does not have its own value of a field; '' if
        none has.
        """
        if field not in self._generation.own_field_types:
            return ''
        return (
            f'AND NOT EXISTS (SELECT 1 FROM field_values WHERE field_values.docno = {table}.docno '
            f"AND field = '{field}' AND {ALIVE})"
        )

    def _count_files(self, field: str) -> FieldCount:
        """How many documents have a field only through their file."""
        condition = self._without_own(field, 'origins')
        rows = self._select(COUNT_DOCUMENTS.format(condition=condition))
        times = self._generation.file_fields.times
        n_documents = 0
        n_of_forms = _FormCounts()
        for source, file, n_of_file in rows:
            fields = compared_fields(file_fields(file, times.get(FileOfSource(source, file))))
            if field not in fields:
                continue
            n_documents += n_of_file
            values = fields[field]
            for value in [values] if isinstance(values, str) else values:
                n_of_forms.add(value, n_of_file)
        return _field_count(n_documents, n_of_forms.counts())

    def _value_counts(self) -> dict[str, tuple[ValueCount, ...]]:
        """The values of each field of few, the most frequent first."""
        documents: dict[str, dict[str, int]] = {}
        rows = self._select(
            'SELECT field, value, n FROM (SELECT field, value, n, '
            'COUNT(*) OVER (PARTITION BY field) AS different, '
            'MAX(length(value)) OVER (PARTITION BY field) AS longest FROM (SELECT field, value, '
            f"COUNT(*) AS n FROM field_values WHERE {ALIVE} AND type <> '{WORD}' "
            'GROUP BY field, type, value)) '
            f'WHERE different <= {_MOST_VALUES} AND longest <= {_LONGEST_VALUE} '
            'ORDER BY field, value'
        )
        for field, value, n_documents in rows:
            of_field = documents.setdefault(field, {})
            text = _value_text(value)
            if self._has_types(field):
                # A filter names the number 2020 and the text '2020' alike, and finds both.
                n_documents = len(set(self._generation.docnos_of_value(field, text)))
            of_field[text] = n_documents
        return {field: _by_frequency(of_field) for field, of_field in documents.items()}

    def _has_types(self, field: str) -> bool:
        """Whether a field has values of several types; of a damaged row, no type is known."""
        return len(self._generation.field_types.get(field, ())) > 1

    def _sum_of(self, field: str, own: FieldCount | None, of_files: FieldCount) -> FieldCount:
        """The count of a field that some documents have themselves, and others through their
        files.
        """
        if own is None:
            return of_files
        n_documents = own.documents + of_files.documents
        if not (own.values and of_files.values):
            return FieldCount(n_documents, ())
        counts = _counter_of(own)
        if self._has_types(field):
            # What a filter finds was counted, whatever the values are of.
            counts |= _counter_of(of_files)
        else:
            counts += _counter_of(of_files)
        if len(counts) > _MOST_VALUES:
            return FieldCount(n_documents, ())
        return FieldCount(n_documents, _by_frequency(counts))

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


class _FormCounts:
    """Counts values that filters treat as equal as one value, in the spelling that most documents
    have.
    """

    def __init__(self) -> None:
        self._by_form: dict[str, Counter[str]] = {}

    def add(self, value: str, n_documents: int) -> None:
        """Count documents with a value."""
        form = unite_value(value)
        self._by_form.setdefault(form, Counter())[value] += n_documents

    def counts(self) -> dict[str, int]:
        """How many documents have each value."""
        counts = {}
        for written in self._by_form.values():
            ((most_frequent, _),) = written.most_common(1)
            counts[most_frequent] = written.total()
        return counts


def _field_count(n_documents: int, counts: Mapping[str, int]) -> FieldCount:
    """The count of a field; without its values if they are many or long."""
    if len(counts) > _MOST_VALUES or max(map(len, counts), default=0) > _LONGEST_VALUE:
        return FieldCount(n_documents, ())
    return FieldCount(n_documents, _by_frequency(counts))


def _value_text(value: str | float) -> str:
    """A value as a filter names it: an integer without its point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _by_frequency(counts: Mapping[str, int]) -> tuple[ValueCount, ...]:
    """Values with how many documents have each, the most frequent first."""
    pairs = sorted(counts.items(), key=lambda pair: -pair[1])
    return tuple(ValueCount(value, n_documents) for value, n_documents in pairs)


def _counter_of(count: FieldCount) -> Counter[str]:
    return Counter({value.value: value.documents for value in count.values})
