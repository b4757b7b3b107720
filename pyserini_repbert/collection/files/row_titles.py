"""Which column of a table is the title of its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# Columns that are called so come first, in this order, unless they name few kinds: a 'label' is
# often one of two classes.
_NAMING = ('name', 'label', 'subject')
_LONGEST = 80  # characters of a title
# A word with a small letter, or in a script without them: codes such as 'LI' are no names.
_WORD = re.compile(r'[^\W\d_]{2}')


def title_column(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The name of the column that is the title of rows; '' for none.

    This is a column called 'name', 'label' or 'subject', or the first column of short texts if most
    of them contain a word. Most values of the column differ.

    Parameters
    ----------
    names : of the columns
    rows : the first rows of the table
    """
    named = [name.lower() for name in names]
    for wanted in _NAMING:
        if wanted in named and _most_differ(_values_of(rows, named.index(wanted))):
            return names[named.index(wanted)]
    for number, name in enumerate(names):
        if name and _are_titles(_values_of(rows, number)):
            return name
    return ''


def _values_of(rows: Sequence[Sequence[Any]], number: int) -> list[Any]:
    """The non-empty values of a column, by its number."""
    return [row[number] for row in rows if number < len(row) and row[number] not in (None, '')]


def _are_titles(values: Sequence[Any]) -> bool:
    """Whether the values of a column name its rows."""
    texts = [value for value in values if isinstance(value, str) and _is_name(value)]
    return 2 * len(texts) > len(values) and _most_differ(texts)


def _most_differ(values: Sequence[Any]) -> bool:
    return 2 * len({str(value).strip() for value in values}) > len(values)


def _is_name(text: str) -> bool:
    is_short = len(text) <= _LONGEST and '\n' not in text
    has_word = text.upper() != text or not text.isascii()
    is_address = '://' in text or '@' in text
    return is_short and has_word and not is_address and bool(_WORD.search(text))
