"""Names in braces in the texts of regression files: `{data}`, `{topics}`, `{year.qrels}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pyserini_repbert.catalog import did_you_mean

# Names in braces that stand for folders.
FOLDERS = ('data', 'downloads', 'pyserini', 'here', 'out', 'shared')
_PLACEHOLDER = re.compile(r'\{([^{}]+)\}')


def braced_names(text: str) -> list[str]:
    """The names in braces in a text, in order, once each."""
    return list(dict.fromkeys(_PLACEHOLDER.findall(text)))


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with each `{name}` that has a value replaced by it."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def braced_name_problem(text: str, known: Iterable[str]) -> str:
    """What is wrong with the names in braces in a text; '' if all are known."""
    for name in braced_names(text):
        if name not in known:
            hint = did_you_mean(name, known)
            return f"'{{{name}}}' is neither a resource, a build nor an axis{hint}"
    return ''
