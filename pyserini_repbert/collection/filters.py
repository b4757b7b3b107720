"""Filters: which documents of a collection count, in Lucene's query syntax.

`FIELD:VALUE`, phrases, prefixes (`path:guide*`), ranges of numbers and of ISO dates (`year:[2020 TO
*]`), `FIELD:*` for documents that have the field, AND, OR, NOT and parentheses. A filter matches
whole values, in upper or lower case. Numbers, dates and texts are never compared with each other: a
range such as `[2020 TO 2024]` finds the numbers between the two, and the dates in these years. A
list matches if one of its values does. A minus after `FIELD:` belongs to a number: `height:-3`.
`docid:` asks for docids, `\\docid:` for a field of this name.
"""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.generation import Generation

if TYPE_CHECKING:
    from pyserini_repbert.collection.filter_texts import SearchedBeside

# A filter of one value, as 'type:email'.
_ONE_VALUE = re.compile(r'(\w+):[^\s:()\[\]*]+')
# How many of a field's values a warning names: the most frequent, if there are few documents to
# count.
_SHOWN_VALUES = 8
_MOST_COUNTED = 20_000


@dataclass(frozen=True)
class DocumentFilter:
    """Which documents count.

    Attributes
    ----------
    text : in Lucene's syntax; None: all documents
    only_ids : docids; all other documents are left out; None: no document is
    not_ids : docids that are left out
    beside : the collections that are searched together with this one; None: it is searched alone
    """

    text: str | None = None
    only_ids: frozenset[str] | None = None
    not_ids: frozenset[str] = frozenset()
    beside: SearchedBeside | None = field(default=None, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether it lets every document through."""
        return self.text is None and self.only_ids is None and not self.not_ids

    def mask(self, generation: Generation) -> NDArray[np.bool_]:
        """Whether each document counts, bool (numbers,) by their numbers; do not change it.

        Raises InputError for a filter that cannot be read, an unknown field, and a range over a
        field that has no value of its kind.
        """
        return generation.kept_mask(self, lambda: self._evaluate(generation))

    def warnings(self, generation: Generation) -> list[str]:
        """That no document counts, if so."""
        if self.is_open or self.mask(generation).any():
            return []
        if self.text is None:
            return ['the lists of docids leave no document']
        has_lists = self.only_ids is not None or bool(self.not_ids)
        within = ' within the lists of docids' if has_lists else ''
        known = '' if has_lists else _values_of(self.text, generation)
        return [f"no document matches filter '{self.text[:80]}'{within}{known}"]

    def _evaluate(self, generation: Generation) -> NDArray[np.bool_]:
        mask = None
        if self.text is not None:
            from pyserini_repbert.collection.filter_texts import matching_documents

            mask = matching_documents(generation, self.text, self.beside)
        if self.only_ids is not None:
            only = generation.mask_of(generation.docnos(sorted(self.only_ids)))
            mask = only if mask is None else mask & only
        if mask is None:
            mask = generation.live_documents
        if self.not_ids:
            mask = mask & ~generation.mask_of(generation.docnos(sorted(self.not_ids)))
        return mask


def _values_of(text: str, generation: Generation) -> str:
    """Which values a field has, for a filter of one value; '' if there are too many to name or
    to count.
    """
    asked = _ONE_VALUE.fullmatch(text.strip())
    if asked is None or len(generation) > _MOST_COUNTED:
        return ''
    from pyserini_repbert.collection.field_counts import FieldCounter

    with closing(FieldCounter(generation)) as counter:
        count = counter.counts().get(asked[1])
    if count is None or not count.values:
        return ''
    named = [value.value for value in count.values[:_SHOWN_VALUES]]
    if len(count.values) > _SHOWN_VALUES:
        named.append('…')
    return f": '{asked[1]}' has the values {', '.join(named)}"
