"""Which column of a table is the title of its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# Columns that are called so come first, in this order, unless they name few kinds: a 'label' is
# often one of two classes.
_NAMING = ('name', 'label', 'subject')
_LONGEST = 80  # characters of a title
# The first column with so many different titles per row names the rows: a state such as
# 'shrinking', which several rows have, says less than a name further right.
_DISTINCT_SHARE = 0.8
# A word with a small letter, or in a script without them: codes such as 'LI' are no names.
_WORD = re.compile(r'[^\W\d_]{2}')


def title_column(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The name of the column that is the title of rows; '' for none.

    This is a column called 'name', 'label' or 'subject', or the first column of short texts that
    differs in nearly all rows; without one, the column of short texts that has most values. Most
    values of the column differ, and most texts contain a word.

    Parameters
    ----------
    names : of the columns
    rows : the first rows of the table
    """
    named = [name.lower() for name in names]
    for wanted in _NAMING:
        if wanted in named and _most_differ(_values_of(rows, named.index(wanted))):
            return names[named.index(wanted)]
    best = ''
    most = 0
    for number, name in enumerate(names):
        n_titles = _count_titles(_values_of(rows, number)) if name else 0
        if n_titles > most:
            best = name
            most = n_titles
        if most >= _DISTINCT_SHARE * len(rows):
            break
    return best


def _values_of(rows: Sequence[Sequence[Any]], number: int) -> list[Any]:
    """The non-empty values of a column, by its number."""
    return [row[number] for row in rows if number < len(row) and row[number] not in (None, '')]


def _count_titles(values: Sequence[Any]) -> int:
    """How many different titles a column gives its rows; 0 if its values do not name them."""
    texts = [value for value in values if isinstance(value, str) and _is_name(value)]
    are_titles = 2 * len(texts) > len(values) and _most_differ(texts)
    return _count_distinct(texts) if are_titles else 0


def _most_differ(values: Sequence[Any]) -> bool:
    return 2 * _count_distinct(values) > len(values)


def _count_distinct(values: Sequence[Any]) -> int:
    return len({str(value).strip() for value in values})


def _is_name(text: str) -> bool:
    is_short = len(text) <= _LONGEST and '\n' not in text
    has_word = text.upper() != text or not text.isascii()
    is_address = '://' in text or '@' in text
    return is_short and has_word and not is_address and bool(_WORD.search(text))
