"""A filter's text: it is read with luqum, and evaluated on a generation.

A separate module, because it imports luqum: a search without a filter does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from luqum import tree
from luqum.exceptions import ParseError
from luqum.thread import parse
from numpy.typing import NDArray

from pyserini_repbert.catalog import did_you_mean
from pyserini_repbert.collection.file_values import FILE_FIELDS, SOURCE
from pyserini_repbert.collection.generation import Generation
from pyserini_repbert.collection.stored_values import (
    LAST_SIGN,
    WORD,
    number_of,
    stored_date,
)
from pyserini_repbert.data.origins import docid_of_path, possible_docids
from pyserini_repbert.data.word_forms import unite, unite_value
from pyserini_repbert.errors import InputError

Mask = NDArray[np.bool_]

DOCID = 'docid'
# A field of this name, in addition to docids: a backslash makes a word an ordinary one.
_FIELD_DOCID = '\\docid'
_MOST_CHARACTERS = 10_000
_DEEPEST = 50
_MOST_FIELDS_SHOWN = 30
_ISO_DATE = re.compile(r'\d{4}(-\d{2}(-\d{2}([T ][\d:.]*( ?(Z|[+-]\d{2}:?\d{2}))?)?)?)?')
_QUOTED_OR_ESCAPED = r'"(?:\\.|[^"\\])*"|\\.'
_COLON_OR_COMPARISON = r':|(?<![^\s:(])[<>]=?\s*'
_UNSIGNED_NUMBER = r'(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?'
# A field's name in quotes, other text in quotes, or a value between single quotes.
_QUOTED = re.compile(
    r'(?P<name>"(?:\\.|[^"\\])*"):|(?P<other>"(?:\\.|[^"\\])*"|\\.)'
    r"|(?<=:)'(?P<value>[^'\"\\]*)'(?=[\s)]|$)"
)
_NO_WORD = re.compile(r'(\W)')
# Quoted or escaped text does not change, nor does a minus before a value that is a number.
_NEGATIVE = re.compile(
    rf'(?P<other>{_QUOTED_OR_ESCAPED})'
    rf'|(?P<before>{_COLON_OR_COMPARISON})-(?={_UNSIGNED_NUMBER}(?:[\s)]|$))'
)


@dataclass(frozen=True)
class SearchedBeside:
    """What a filter of several collections knows beyond each of them.

    Attributes
    ----------
    prefix : with which the docids of this collection begin where all are searched
    types : names and types of the fields of all: (field, type)
    """

    prefix: str
    types: frozenset[tuple[str, str]]

    def own_docid(self, docid: str) -> str | None:
        """A docid as the collection has it; None for one of another collection."""
        return docid.removeprefix(self.prefix) if docid.startswith(self.prefix) else None

    def own_prefix(self, start: str) -> str | None:
        """How all docids of the collection begin; None for docids of other collections."""
        if self.prefix.startswith(start):
            return ''
        return self.own_docid(start)


def matching_documents(generation: Generation, text: str, beside: SearchedBeside | None) -> Mask:
    """The documents that match a filter."""
    parsed = parse_filter(text)
    try:
        return _Evaluation(generation, beside).mask(parsed)
    except RecursionError as error:
        raise InputError(
            f"filter '{text[:80]}' has too many signs before one value: write one"
        ) from error


def named_fields(text: str) -> set[str]:
    """The fields that a filter names. Raises InputError for one that cannot be read."""
    names = set()
    waiting = [parse_filter(text)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, tree.SearchField) and item.name != DOCID:
            names.add(_unescaped(item.name))
        waiting += item.children
    return names


def parse_filter(text: str) -> Any:
    """The tree of a filter. Raises InputError for a text that is not in Lucene's syntax."""
    if not text.strip():
        raise InputError("the filter is empty: give one such as 'year:[2020 TO *]'")
    if len(text) > _MOST_CHARACTERS:
        raise InputError(
            f'the filter has {len(text)} characters, at most {_MOST_CHARACTERS} are '
            'read: list the docids instead'
        )
    if '\0' in text:
        raise InputError('the filter has the character U+0000, which cannot be compared: remove it')
    depth = 0
    for character in text:
        depth += (character == '(') - (character == ')')
        if depth > _DEEPEST:
            raise InputError(f'the filter has more than {_DEEPEST} nested parentheses')
    try:
        return parse(_NEGATIVE.sub(_escape_minus, _QUOTED.sub(_as_lucene, text)))
    except (ParseError, RecursionError) as error:
        reason = ' '.join(str(error).split())
        raise InputError(
            f"filter '{text[:80]}' cannot be read ({reason}): expected FIELD:VALUE, FIELD:\"A "
            'PHRASE", FIELD:[LOW TO HIGH], with AND, OR, NOT and parentheses'
        ) from error


def _as_lucene(match: re.Match[str]) -> str:
    """Quotes in Lucene's syntax: a field's name is escaped, a value is put in double quotes."""
    if match['name'] is not None:
        return _NO_WORD.sub(r'\\\1', _unescaped(match['name'][1:-1])) + ':'
    if match['value'] is not None:
        return f'"{match["value"]}"'
    return match['other']


def _escape_minus(match: re.Match[str]) -> str:
    """A negative number as one value: else its minus is Lucene's sign for NOT."""
    return match['other'] or f'{match["before"]}\\-'


@dataclass(frozen=True)
class _Bounds:
    """A range of values; None is an open end."""

    low: str | None
    high: str | None
    has_low: bool = True
    has_high: bool = True

    def __str__(self) -> str:
        begin = '[' if self.has_low else '{'
        end = ']' if self.has_high else '}'
        return f'{begin}{self.low or "*"} TO {self.high or "*"}{end}'


@dataclass(frozen=True)
class _Field:
    """What a part of a filter asks for.

    Attributes
    ----------
    name : of the field, as stored
    is_docid : whether the docids are meant, instead of a field's values
    """

    name: str
    is_docid: bool = False

    def __str__(self) -> str:
        is_field = self.name == DOCID and not self.is_docid
        return _FIELD_DOCID if is_field else self.name


class _Evaluation:
    """Evaluates the tree of a filter for a generation.

    A field that only other collections have is one that no document here has.
    """

    def __init__(self, generation: Generation, beside: SearchedBeside | None) -> None:
        self._generation = generation
        self._beside = beside
        self._types = dict(generation.field_types)
        if beside is not None:
            for name, kind in beside.types:
                self._types[name] = self._types.get(name, set()) | {kind}

    def mask(self, item: Any, field: _Field | None = None) -> Mask:
        """The documents that match a part of the tree; `field` is the field around it."""
        if isinstance(item, tree.SearchField):
            if field is not None:
                raise InputError(f"'{item}' is inside field '{field}': name one field")
            name = unite(_unescaped(item.name))
            named = _Field(name, is_docid=item.name == DOCID)
            self._check_field(named)
            _check_sign_of_value(item)
            return self.mask(item.expr, named)
        if isinstance(item, tree.BaseGroup):
            return self.mask(item.expr, field)
        if isinstance(item, tree.BaseOperation):
            return self._operation(item, field)
        if isinstance(item, tree.Prohibit) and field is not None:
            _check_sign_in_parentheses(item, field)
        if isinstance(item, (tree.Not, tree.Prohibit)):
            return self._generation.live_documents & ~self.mask(item.a, field)
        if isinstance(item, tree.Plus):
            return self.mask(item.a, field)
        return self._leaf(item, field)

    def _operation(self, item: Any, field: _Field | None) -> Mask:
        is_signed = all(isinstance(part, tree.Unary) for part in item.operands)
        if isinstance(item, tree.UnknownOperation) and not is_signed:
            raise InputError(
                f"filter '{str(item)[:80]}': write AND or OR between its parts, and a value of "
                'several words in quotes'
            )
        mask_of = self._signed if isinstance(item, tree.UnknownOperation) else self.mask
        masks = [mask_of(part, field) for part in item.operands]
        # After the parts, because an error in a negative number is reported first.
        if isinstance(item, tree.OrOperation):
            _check_signs_beside_or(item)
        combined = masks[0]
        for mask in masks[1:]:
            combined = combined | mask if isinstance(item, tree.OrOperation) else combined & mask
        return combined

    def _signed(self, item: Any, field: _Field | None) -> Mask:
        """The documents of a part of `+A -B`, which has a sign, or NOT, before it."""
        mask = self.mask(item.a, field)
        if isinstance(item, tree.Plus):
            return mask
        return self._generation.live_documents & ~mask

    def _leaf(self, item: Any, field: _Field | None) -> Mask:
        if field is None:
            raise InputError(f"'{str(item)[:80]}' names no field: {self._known_fields()}")
        if isinstance(item, tree.Range):
            low = _bound(item.low)
            high = _bound(item.high)
            return self._range(field, _Bounds(low, high, item.include_low, item.include_high))
        if isinstance(item, tree.From):
            return self._range(field, _Bounds(_bound(item.a), None, has_low=item.include))
        if isinstance(item, tree.To):
            return self._range(field, _Bounds(None, _bound(item.a), has_high=item.include))
        if isinstance(item, tree.Phrase):
            return self._phrase(field, _unescaped(item.value[1:-1]))
        if isinstance(item, tree.Word):
            return self._word(field, item)
        raise InputError(
            f"filter '{field}:{str(item)[:80]}': expected a value, a phrase, a prefix "
            'or a range; regular expressions, fuzzy words and weights are not '
            'supported'
        )

    def _phrase(self, field: _Field, text: str) -> Mask:
        """The documents with a value in quotes; of docids, a star at its end is any rest."""
        mask = self._value(field, text, is_phrase=True)
        if field.is_docid and text.endswith('*'):
            return mask | self._docids(text[:-1])
        return mask

    def _word(self, field: _Field, word: Any) -> Mask:
        if word.is_wildcard():
            return self._all_of(field)
        text = word.value
        wildcards = [position for position, _ in word.iter_wildcards()]
        if not wildcards:
            return self._value(field, word.unescaped_value)
        if text.endswith('*') and len(wildcards) == 1:
            return self._prefix(field, _unescaped(text[:-1]))
        raise InputError(
            f"filter '{field}:{text[:80]}': a * can only end a value: give a prefix, "
            'or write a backslash before the *'
        )

    def _all_of(self, field: _Field) -> Mask:
        if field.is_docid:
            return self._generation.live_documents
        return self._select(field)

    def _value(self, field: _Field, text: str, is_phrase: bool = False) -> Mask:
        if field.is_docid:
            return self._docid(text)
        docnos = self._generation.docnos_of_value(field.name, text, is_phrase=is_phrase)
        return self._generation.mask_of(docnos)

    def _docid(self, docid: str) -> Mask:
        own = docid if self._beside is None else self._beside.own_docid(docid)
        docids = [] if own is None else sorted(possible_docids(own))
        mask = self._generation.mask_of(self._generation.docnos(docids))
        if own is None:
            return mask
        return mask | self._live_of(self._generation.docnos_of_docid(own))

    def _live_of(self, docnos: Iterable[int]) -> Mask:
        """Those of these documents that exist."""
        return self._generation.mask_of(docnos) & self._generation.live_documents

    def _docids(self, start: str) -> Mask:
        own = start if self._beside is None else self._beside.own_prefix(start)
        if own is None:
            return self._generation.mask_of([])
        mask = self._select_docids(own)
        mask |= self._live_of(self._generation.docnos_of_docid(own, is_prefix=True))
        path = docid_of_path(own)
        return mask if path == own else mask | self._select_docids(path)

    def _prefix(self, field: _Field, text: str) -> Mask:
        if field.is_docid:
            return self._docids(text)
        types = self._types_of(field)
        if not types & {'text', 'date'}:
            raise InputError(
                f"filter '{field}:{text}*': field '{field}' has values of type "
                f'{", ".join(sorted(types))}; a prefix needs texts or dates, so give a range such '
                f'as {field}:[2019 TO 2023]'
            )
        form = unite_value(text)
        begins = self._begins(field, 'text', form) | self._begins(field, WORD, form)
        return begins | self._begins(field, 'date', stored_date(unite(text)))

    def _begins(self, field: _Field, kind: str, low: str) -> Mask:
        """The documents with a value of a type that begins with a text."""
        return self._select(
            field,
            "type = json_extract(:rows, '$[1]') AND value >= json_extract(:rows, '$[2]') "
            "AND value < json_extract(:rows, '$[3]')",
            [kind, low, low + LAST_SIGN],
        )

    def _range(self, field: _Field, bounds: _Bounds) -> Mask:
        """The documents with a number or a date between two bounds.

        2020 is a number, and a year: each type of a field's values is searched by its own reading.
        """
        given = [bound for bound in (bounds.low, bounds.high) if bound is not None]
        if not given:
            return self._all_of(field)
        types = self._types_of(field)
        masks = []
        if 'number' in types and all(number_of(bound) is not None for bound in given):
            masks.append(self._between_numbers(field, bounds))
        if 'date' in types and all(_ISO_DATE.fullmatch(bound) for bound in given):
            for bound in given:
                if not _is_in_calendar(bound):
                    raise InputError(
                        f"filter '{field}:{bounds}': the calendar has no date '{bound}': give one "
                        'such as 2020-05-31'
                    )
            masks.append(self._between_dates(field, bounds))
        if not masks:
            kinds = ', '.join(sorted(types)) or 'text'
            raise InputError(
                f"filter '{field}:{bounds}': field '{field}' has values of type {kinds}; a "
                'range needs numbers, or ISO dates such as 2020-05-31'
            )
        found: Mask = np.logical_or.reduce(masks)
        return found

    def _between_numbers(self, field: _Field, bounds: _Bounds) -> Mask:
        low = None if bounds.low is None else number_of(bounds.low)
        high = None if bounds.high is None else number_of(bounds.high)
        return self._between(field, 'number', low, high, bounds)

    def _between_dates(self, field: _Field, bounds: _Bounds) -> Mask:
        """A date means all that begin with it: 2020 is the whole year."""
        low = bounds.low
        high = bounds.high
        if low is not None:
            low = stored_date(low) if bounds.has_low else stored_date(low) + LAST_SIGN
        if high is not None:
            high = stored_date(high) + LAST_SIGN if bounds.has_high else stored_date(high)
        return self._between(field, 'date', low, high, bounds)

    def _between(
        self,
        field: _Field,
        kind: str,
        low: str | float | None,
        high: str | float | None,
        bounds: _Bounds,
    ) -> Mask:
        """The documents with a value between two, None for an open end.

        Parameters
        ----------
        field, kind : the field, and the type of its values
        low, high : the ends
        bounds : say whether the ends belong to it
        """
        conditions = ["type = json_extract(:rows, '$[1]')"]
        if low is not None:
            sign = '>=' if bounds.has_low else '>'
            conditions.append(f"value {sign} json_extract(:rows, '$[2]')")
        if high is not None:
            sign = '<=' if bounds.has_high else '<'
            conditions.append(f"value {sign} json_extract(:rows, '$[3]')")
        return self._select(field, ' AND '.join(conditions), [kind, low, high])

    def _select(self, field: _Field, condition: str = '', values: Sequence[Any] = ()) -> Mask:
        """As in `Generation.docnos_where`."""
        return self._generation.mask_of(
            self._generation.docnos_where(field.name, condition, values)
        )

    def _select_docids(self, prefix: str) -> Mask:
        rows = self._generation.select(
            "SELECT docno FROM documents WHERE docid >= json_extract(:rows, '$[0]') "
            "AND docid < json_extract(:rows, '$[1]') AND docno < json_extract(:rows, '$[2]')",
            # Later generations may have others.
            [prefix, prefix + LAST_SIGN, self._generation.n_numbers],
        )
        mask = self._generation.mask_of(docno for (docno,) in rows)
        return mask & self._generation.live_documents

    def _types_of(self, field: _Field) -> set[str]:
        """The types of a field's values; docids have none."""
        return set() if field.is_docid else self._types.get(field.name, set())

    def _check_field(self, field: _Field) -> None:
        if not field.is_docid and field.name not in self._types:
            advice = ''
            if field.name in FILE_FIELDS:
                advice = '; files have type, folder and modified after their next `index sync`'
            if field.name == SOURCE:
                advice = '; documents have a source where the collection has several'
            shown = str(field)[:60]
            meant = '' if advice else did_you_mean(shown, sorted(self._types))
            raise InputError(f"there is no field '{shown}'{meant}: {self._known_fields()}{advice}")

    def _known_fields(self) -> str:
        names = [_FIELD_DOCID if name == DOCID else name for name in sorted(self._types)]
        shown = ', '.join([DOCID, *names[:_MOST_FIELDS_SHOWN]])
        more = len(names) - _MOST_FIELDS_SHOWN
        return f'the fields are {shown}' + (f' and {more} more' if more > 0 else '')


def _bound(item: Any) -> str | None:
    """The text of a range's end; None for *."""
    if isinstance(item, tree.Phrase):
        return _unescaped(item.value[1:-1])
    text = str(item).strip()
    return None if text == '*' else _unescaped(text)


def _unescaped(text: str) -> str:
    return re.sub(r'\\(.)', r'\1', text)


def _check_sign_of_value(item: tree.SearchField) -> None:
    """Raises InputError for `FIELD:-VALUE` and `FIELD:+VALUE`, which may mean two things."""
    if isinstance(item.expr, (tree.Prohibit, tree.Plus)):
        sign = '-' if isinstance(item.expr, tree.Prohibit) else '+'
        value = str(item.expr.a)[:80]
        raise InputError(
            f"filter '{str(item)[:80]}': write {sign}{item.name}:{value}, or "
            f'{item.name}:\\{sign}{value} for a value that begins with {sign}'
        )


def _check_sign_in_parentheses(item: Any, field: _Field) -> None:
    """Raises InputError for a sign in parentheses that may also belong to a negative number."""
    value = str(item.a)
    if isinstance(item.a, tree.Word) and number_of(value) is not None:
        raise InputError(
            f"filter '{field}:(…-{value}…)': write \\-{value} for the number, or NOT {value}"
        )


def _check_signs_beside_or(item: tree.OrOperation) -> None:
    """Raises InputError for + or -: for Lucene, they are stronger than OR."""
    if any(isinstance(part, (tree.Plus, tree.Prohibit)) for part in item.operands):
        raise InputError(
            f"filter '{str(item)[:80]}': beside OR, write NOT instead of -, and leave + out"
        )


def _is_in_calendar(text: str) -> bool:
    """Whether a text in the form of an ISO date, or of its beginning, is of the calendar."""
    month = text[5:7]
    day = text[8:10] or 1
    hour = text[11:13] or 0
    minute = text[14:16] or 0
    if not month:
        return True
    try:
        datetime(int(text[:4]), int(month), int(day), int(hour), int(minute))
    except ValueError:
        return False
    return True
