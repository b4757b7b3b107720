"""Names in braces in the texts of regression files: `{data}`, `{topics}`, `{year.qrels}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pyserini_repbert.catalog import did_you_mean

# Names in braces that are replaced by folders.
FOLDERS = ('data', 'downloads', 'pyserini', 'here', 'out', 'shared')
# The folders that commands may make files in, and those that downloads are looked for in.
BUILD_FOLDERS = ('out', 'shared')
DOWNLOAD_FOLDERS = ('data', 'downloads')
_PLACEHOLDER = re.compile(r'\{([^{}]+)\}')
_UNSHOWN = re.compile(r'[\x00-\x1f\x7f-\x9f]')


def braced_names(text: str) -> list[str]:
    """The names in braces in a text, in order, once each."""
    return list(dict.fromkeys(_PLACEHOLDER.findall(text)))


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with each `{name}` that has a value replaced by it."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def braced_name_problem(text: str, known: Iterable[str]) -> str:
    """The error in a text's names in braces; '' if all are known."""
    for name in braced_names(text):
        if name not in known:
            hint = did_you_mean(name, known)
            return f"'{{{name}}}' is neither a resource, a build nor an axis{hint}"
    return ''


def path_problem(path: str, folders: Sequence[str]) -> str:
    """The error in a path; '' if it is one below a folder: '{out}/runs/a.txt'.

    `folders` are the names of those that it may be below.
    """
    first, _, below = path.partition('/')
    parts = below.split('/')
    is_inside = not {'', '.', '..'}.intersection(parts)
    if first in [f'{{{name}}}' for name in folders] and is_inside and not _UNSHOWN.search(path):
        return ''
    starts = ' or '.join(f'{{{name}}}/' for name in folders)
    return f"'{path}' is not a path here: expected one below {starts}, without '..'"


def file_name_problem(name: str) -> str:
    """The error in a file's name, without folders; '' if it is valid."""
    if name in ('', '.', '..') or '/' in name or _UNSHOWN.search(name):
        return f"'{name}' is not a name of a file: expected one without folders"
    return ''
