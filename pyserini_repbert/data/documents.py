"""Documents as users have them: text with a title and fields.

A passage of `Corpus` has its title in its text. A document keeps them apart: a title goes in front
of each passage that the text is cut into, and fields are what filters ask for.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from pyserini_repbert.data.origins import Origin
from pyserini_repbert.data.values import HALF_PAIR, has_surrogates
from pyserini_repbert.files import StrPath, numbered_lines

# Of several, the first is the docid, and the others are fields.
DOCID_KEYS = ('id', '_id', 'docid', 'docno')
TEXT_KEYS = ('text', 'contents')
TITLE_KEY = 'title'
# Of a document. They come with every hit: what a title or a field holds beyond is text.
MAX_TITLE_CHARACTERS = 10_000
MAX_FIELDS = 1_000  # names, those within mappings included
MAX_FIELD_BYTES = 1_000_000  # of all fields, as JSON
_MOST_NESTED = 50  # lists and mappings in one another, within a field
# Dates are stored, and compared, with years of four digits.
_YEAR_OF_DATE = re.compile(r'(?!0000)[0-9]{4}(?![0-9])')


@dataclass(frozen=True)
class Document:
    """A document: its identifier, its text, its title, and its fields.

    Attributes
    ----------
    docid : one that run files can hold
    text : '' for a document that only its fields find
    title : '' if it has none
    fields : values by name, as JSON has them: texts, numbers, truth values, None, lists, mappings
    origin : its location in its source; None if that is not known
    """

    docid: str
    text: str
    title: str = ''
    fields: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def without_lines(self) -> Document:
        """The document of a format that has no lines which a person could look up."""
        origin = self.origin or Origin()
        return replace(self, origin=replace(origin, lines=(), record=0, row=0))

    def at_line(self, line: int) -> Document:
        """The document of a record that begins at a line of a file, from 1."""
        return replace(self, origin=Origin(record=line))

    def at_row(self, row: int) -> Document:
        """The document of a record by its number, from 1, in a file that has no lines."""
        return replace(self, origin=Origin(row=row))

    def in_file(self, file: str) -> Document:
        """The document with the path of its file in the corpus."""
        origin = self.origin or Origin()
        return replace(self, origin=replace(origin, file=file))


def size_problem(document: Document) -> str | None:
    """Which limit a document's title or fields exceed, and what is given; None if none."""
    if len(document.title) > MAX_TITLE_CHARACTERS:
        return (
            f'has a title of {len(document.title):,} characters, at most '
            f'{MAX_TITLE_CHARACTERS:,} are allowed'
        )
    if not document.fields:
        return None
    n_fields = _count_names(document.fields)
    if n_fields > MAX_FIELDS:
        return f'has {n_fields:,} fields, at most {MAX_FIELDS:,} are allowed'
    n_bytes = len(json.dumps(document.fields, ensure_ascii=False).encode('utf-8', 'replace'))
    if n_bytes > MAX_FIELD_BYTES:
        return f'has {n_bytes:,} bytes of fields, at most {MAX_FIELD_BYTES:,} are allowed'
    return None


def _count_names(value: Any) -> int:
    """How many names a value's mappings have together, however deep."""
    if isinstance(value, Mapping):
        return len(value) + sum(_count_names(item) for item in value.values())
    if isinstance(value, list):
        return sum(_count_names(item) for item in value if isinstance(item, (Mapping, list)))
    return 0


def read_docids(path: StrPath) -> list[str]:
    """The docids of a file, one a line; blank lines are passed over.

    Raises InputError for a file that is missing or is not UTF-8.
    """
    docids = [line.strip() for _, line in numbered_lines(path, 'file of docids')]
    return [docid for docid in docids if docid]


def plain_fields(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Fields as JSON has them; a value that is missing (NaN in a DataFrame) is left out.

    So is a missing one of a list, an array or a mapping. None is a value of JSON, and stays.

    Raises ValueError for a name or a value that cannot be stored.
    """
    return {
        _checked_text(str(name), 'field'): _plain_value(str(name), value)
        for name, value in values.items()
        if not _is_missing(value)
    }


def _is_missing(value: Any) -> bool:
    # NaN, and NaT of pandas, are the values that do not equal themselves; NA of pandas equals
    # nothing, and its type is the only way to know it without importing pandas; so is that of what
    # a mask of NumPy hides
    if type(value).__name__ in ('NAType', 'MaskedConstant'):
        return True
    if getattr(value, 'ndim', None) == 0:
        return bool(getattr(value, 'mask', False)) or bool(value != value)
    return isinstance(value, (float, datetime, Decimal)) and value != value


def _plain_value(name: str, value: Any, depth: int = 0) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _checked_text(value, f"field '{name}': the text")
    if isinstance(value, (int, float)):
        return _plain_number(name, value)
    if isinstance(value, Decimal):
        is_whole = value == value.to_integral_value()
        return _plain_number(name, int(value) if is_whole else float(value))
    if isinstance(value, bytes):
        # No text, no number: a picture, say.
        return None
    if isinstance(value, (date, datetime)):
        return _checked_date(name, value.isoformat())
    # A time of day, as TOML has them, is text.
    if isinstance(value, time):
        return value.isoformat()
    return _plain_container(name, value, depth)


def _plain_container(name: str, value: Any, depth: int) -> Any:
    """A mapping, a list or an array as JSON has it, `depth` levels down in a field."""
    if depth == _MOST_NESTED:
        raise ValueError(f"field '{name}' is nested more than {_MOST_NESTED} times")
    if isinstance(value, Mapping):
        return {
            _checked_text(str(key), 'field'): _plain_value(name, item, depth + 1)
            for key, item in value.items()
            if not _is_missing(item)
        }
    if isinstance(value, (list, tuple)):
        return _plain_list(name, value, depth)
    if getattr(value, 'ndim', None) == 0:
        return _plain_value(name, _python_scalar(name, value), depth + 1)
    # An array or a Series.
    if hasattr(value, 'dtype'):
        return _plain_list(name, value, depth)
    raise _unexpected(name, value)


def _plain_list(name: str, values: Iterable[Any], depth: int) -> list[Any]:
    """The values of a list, without missing ones."""
    return [_plain_value(name, item, depth + 1) for item in values if not _is_missing(item)]


def _python_scalar(name: str, value: Any) -> Any:
    """A scalar of NumPy as Python's. Raises ValueError for one of another kind."""
    kind = getattr(value.dtype, 'kind', '')
    if kind == 'f':
        # `item` of a longdouble is a longdouble again.
        return float(value)
    if kind == 'M':
        _checked_date(name, str(value))
    python = value.item()
    if kind == 'M' and isinstance(python, int):
        # Python has no nanoseconds.
        python = value.astype('datetime64[us]').item()
    # A duration in nanoseconds is an int.
    if kind == 'm' or not isinstance(python, (int, float, str, date)):
        raise _unexpected(name, value)
    return python


def _unexpected(name: str, value: Any) -> ValueError:
    return ValueError(
        f"field '{name}' is a {type(value).__name__}: a text, a number, a date, a truth value or a "
        'list of them was expected'
    )


def _checked_text(text: str, what: str) -> str:
    """The text itself. Raises ValueError for one that no file can hold."""
    if has_surrogates(text):
        raise ValueError(f'{what} {ascii(text)[:60]} has {HALF_PAIR}')
    return text


def _checked_date(name: str, text: str) -> str:
    """A date in ISO form itself. Raises ValueError for a year that does not have four digits."""
    if not _YEAR_OF_DATE.match(text):
        raise ValueError(
            f"field '{name}' is the date {text[:40]}: a year from 1 to 9999 was expected"
        )
    return text


def _plain_number(name: str, value: float) -> float:
    try:
        is_finite = math.isfinite(value)
    except OverflowError as error:
        raise ValueError(f"field '{name}' is a number of more than 308 digits") from error
    if not is_finite:
        raise ValueError(f"field '{name}' is {value}: a finite number was expected")
    return value


def document_of_record(
    docid: str, record: Mapping[str, Any], text_keys: Sequence[str], docid_key: str
) -> Document:
    """The document of a JSON object.

    Parameters
    ----------
    docid : its identifier
    record : the object
    text_keys : the keys whose texts, joined by a space, are the document's text
    docid_key : the key that has the identifier, and does not become a field

    Raises ValueError for a value that JSON cannot hold, and for a title that is not text.
    """
    text = _joined_texts(record, text_keys)
    title = ''
    if TITLE_KEY in record and TITLE_KEY not in text_keys:
        title = _title_beside(text, record[TITLE_KEY], docid=docid, text_keys=text_keys)
    fields = {}
    for name, value in record.items():
        if name != docid_key and name != TITLE_KEY and name not in text_keys:
            fields[name] = value
    return Document(docid, text, title, plain_fields(fields) if fields else fields)


def _joined_texts(record: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The texts under these keys, joined by a space; values that are not text are left out."""
    texts = []
    for key in keys:
        part = record.get(key)
        if isinstance(part, str) and part:
            texts.append(part)
    return ' '.join(texts)


def _title_beside(text: str, title: Any, docid: str, text_keys: Sequence[str]) -> str:
    """A title that is not in the text already; '' for one that is, or is missing.

    Raises ValueError for a value that is not text.
    """
    if title is None or _is_missing(title):
        return ''
    if not isinstance(title, str):
        raise ValueError(f"the title of document '{docid[:60]}' is not text: put it in quotes")
    # Pyserini's `contents` may begin with the title.
    if 'contents' in text_keys and text.startswith(title):
        return ''
    return ' '.join(title.split())
