"""Which column of a table is the title of its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# Columns that are called so come first, in this order.
_NAMING = ('name', 'label', 'subject')
_LONGEST = 80  # characters of a title
# A word with a small letter, or in a script without them: codes such as 'LI' are no names.
_WORD = re.compile(r'[^\W\d_]{2}')


def title_column(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The name of the column that is the title of rows; '' for none.

    That is a column called 'name', 'label' or 'subject', or the first column of short texts: most
    of its values have a word, and most differ.

    Parameters
    ----------
    names : of the columns
    rows : the first rows of the table
    """
    named = [name.lower() for name in names]
    for wanted in _NAMING:
        if wanted in named:
            return names[named.index(wanted)]
    for number, name in enumerate(names):
        values = [
            row[number] for row in rows if number < len(row) and row[number] not in (None, '')
        ]
        if name and _are_titles(values):
            return name
    return ''


def _are_titles(values: Sequence[Any]) -> bool:
    """Whether the values of a column name its rows."""
    texts = [value.strip() for value in values if isinstance(value, str) and _is_name(value)]
    return 2 * len(texts) > len(values) and 2 * len(set(texts)) > len(texts)


def _is_name(text: str) -> bool:
    is_short = len(text) <= _LONGEST and '\n' not in text
    has_word = text.upper() != text or not text.isascii()
    is_address = '://' in text or '@' in text
    return is_short and has_word and not is_address and bool(_WORD.search(text))
