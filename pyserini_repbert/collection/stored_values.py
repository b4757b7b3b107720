"""What a collection stores of a document: its digests, and its fields as filters compare them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyserini_repbert.data.documents import Document
from pyserini_repbert.data.origins import Origin
from pyserini_repbert.data.values import decimal
from pyserini_repbert.data.word_forms import unite, unite_value

_DIGEST_BYTES = 16
_DATE = re.compile(
    r'\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2}))?)?'
)
# With which dates begin.
_YEAR_MONTH_OR_DAY = re.compile(r'\d{4}(?:-\d{2}(?:-\d{2})?)?')
# A value of the field `date` may be a year or a month. Elsewhere, such a text may be any number.
_YEAR_OR_MONTH = re.compile(r'(?:19|20)\d{2}(?:-(?:0[1-9]|1[0-2]))?')
_DATE_FIELD = 'date'
_DAY_AND_SPACE = re.compile(r'\A(\d{4}-\d{2}-\d{2}) ')
_WHOLE_NUMBER = re.compile(r'[+-]?[0-9]{1,20}')
# The greatest character. Values with a prefix are between the prefix and the prefix followed by
# this character.
LAST_SIGN = '\U0010ffff'
# What a value of a field can be.
VALUE_TYPES = ('text', 'date', 'number')
# A part of a person's name or address. Filters find it, but it is not a separate value.
WORD = 'word'
# Fields of mail whose values are people even without an address.
_PEOPLE = ('from', 'to', 'cc')
_LONGEST_NAME = 100  # characters
_AROUND_WORDS = '.,;:"\'()[]'
# The field of a document's language, a code such as 'de'. It is guessed from so many characters.
LANGUAGE = 'language'
_CHARACTERS = 2000
_GREATEST = 2**63 - 1  # of SQLite's whole numbers
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)
_Typed = tuple[str, str, str | float]  # field, type, value


def text_digest(document: Document) -> bytes:
    """A digest of title and text."""
    return _digest(_titled(document.title, document.text))


def text_fits(title: object, text: object, digest: object) -> bool:
    """Whether a stored title and text have a stored digest."""
    if not (isinstance(title, str) and isinstance(text, str)):
        return False
    return _digest(_titled(title, text)) == digest


def _titled(title: str, text: str) -> str:
    # the title's length tells where it ends
    return f'{len(title)} {title}{text}'


def fields_digest(document: Document) -> bytes:
    """A digest of the fields, whatever their order."""
    return _digest(rendered_fields(document.fields)) if document.fields else _NO_FIELDS


def fields_fit(fields: object, digest: object) -> bool:
    """Whether stored fields, as JSON, have a stored digest."""
    return isinstance(fields, str) and _digest(fields) == digest


def origin_digest(origin: Origin | None) -> bytes | None:
    """A digest of a document's location in its source; None if that is not known."""
    return None if origin is None else _digest(f'{origin.file}\0{origin.rendered()}')


def origin_fits(file: object, outline: object, digest: object) -> bool:
    """Whether a stored origin has a stored digest."""
    if not (isinstance(file, str) and isinstance(outline, str)):
        return False
    return _digest(f'{file}\0{outline}') == digest


def input_digest(text: str, key: bytes) -> bytes:
    """A digest of what an encoder reads of a passage; `key` identifies the model."""
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES, key=key).digest()


def rendered_fields(fields: Mapping[str, Any]) -> str:
    """Fields as JSON, in the order of their names."""
    return _ENCODER.encode(fields) if fields else '{}'


def typed_values(fields: Mapping[str, Any]) -> list[_Typed]:
    """Each value of each field with its type: 'text' (casefolded), 'number' or 'date' (ISO).

    A value of a mapping belongs to the field `outer.inner`; a list has several values. Names and
    values are in one form. Of 'Klaus Brandt <kb@example.org>', the name, its
    words, the address and its domain are of type 'word'.
    """
    return sorted(set(_values_of('', _united(fields))), key=repr)


def filter_values(document: Document) -> list[_Typed]:
    """The values by which filters find a document: of its fields, and its language.

    The language is guessed, unless a field of the document has this name.
    """
    fields = document.fields
    if LANGUAGE not in fields:
        # A question reads values, and guesses no document's language.
        from pyserini_repbert.lucene.guessing import guess_language

        language = guess_language([f'{document.title} {document.text[:_CHARACTERS]}'])
        if language is not None:
            fields = {**fields, LANGUAGE: language}
    return typed_values(fields)


def _united(value: Any) -> Any:
    """A value with its texts in one form.

    If two names become equal, the values of both are kept.
    """
    if isinstance(value, str):
        return unite(value)
    if isinstance(value, list):
        return [_united(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    united: dict[str, Any] = {}
    for name, item in value.items():
        form = unite(str(name))
        if form in united:
            united[form] = [united[form], _united(item)]
        else:
            united[form] = _united(item)
    return united


def _values_of(name: str, value: Any) -> Iterator[_Typed]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _values_of(f'{name}.{key}' if name else str(key), item)
    elif isinstance(value, list):
        for item in value:
            yield from _values_of(name, item)
    elif isinstance(value, bool):
        yield name, 'text', str(value).casefold()
    elif isinstance(value, (int, float)):
        yield name, 'number', stored_number(value)
    elif isinstance(value, str) and _is_date(name, value):
        yield name, 'date', stored_date(value)
    elif isinstance(value, str):
        yield name, 'text', unite_value(value)
        for word in _words_of_person(name, value):
            yield name, WORD, unite_value(word)


def _is_date(field: str, text: str) -> bool:
    """Whether a text is an ISO date; in the field `date`, it may be a year or a month."""
    if field == _DATE_FIELD and _YEAR_OR_MONTH.fullmatch(text):
        return True
    return _DATE.fullmatch(text) is not None


def _words_of_person(field: str, text: str) -> list[str]:
    """The parts of a person's name and address by which a filter finds them.

    Empty for text that does not name a person: it has no address, and its field is not a mail
    field.
    """
    name, _, address = text.removesuffix('>').rpartition('<')
    if not text.endswith('>'):
        is_address = '@' in text
        name = '' if is_address else text
        address = text if is_address else ''
    name = name.strip()
    has_address = '@' in address and not any(map(str.isspace, address))
    if len(name) > _LONGEST_NAME or not (has_address or (field in _PEOPLE and not address)):
        return []
    words = [word.strip(_AROUND_WORDS) for word in name.split()]
    last, _, first = name.partition(', ')
    parts = [name, *words, f'{first} {last}' if first else '']
    if has_address:
        parts += [address, address.rpartition('@')[2]]
    return [part for part in parts if part and part != text]


def stored_number(value: float) -> float:
    """A number as filters compare it: a float, or an integer that no float equals.

    SQLite compares the two exactly. Of integers of more than 64 bits, the nearest float is
    compared.
    """
    number = float(value)
    if number != value and abs(value) <= _GREATEST:
        return value
    return number


def number_of(text: str) -> float | None:
    """The number that a text is, as filters compare it; None for another text."""
    if _WHOLE_NUMBER.fullmatch(text):
        return stored_number(int(text))
    try:
        return decimal(text)
    except ValueError:
        return None


def stored_date(text: str) -> str:
    """A date, or its beginning, as filters compare it: casefolded, with T before the time."""
    return _DAY_AND_SPACE.sub(r'\1t', text.casefold())


def begins_date(text: str) -> bool:
    """Whether a text is a year, a month or a day, with which dates begin."""
    return _YEAR_MONTH_OR_DAY.fullmatch(text) is not None


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()


_NO_FIELDS = _digest(rendered_fields({}))
