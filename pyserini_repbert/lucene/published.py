"""Pyserini's topics and judgments by name, at addresses that stay.

Pyserini 1.6 fetches them from a branch that no longer has them. This table instead names a commit
of castorini/eval, with checksums, for every version of Pyserini. Files that were removed before
this commit come from an older one. `tools/publish_names.py` writes the table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyserini_repbert.download import fetch
from pyserini_repbert.files import human_size
from pyserini_repbert.offline import downloads_folder

_SITE = 'https://raw.githubusercontent.com'
_READERS = 'io.anserini.search.topicreader.'


@dataclass(frozen=True)
class PublishedFile:
    """A file of topics or judgments.

    Attributes
    ----------
    kind : 'topics' or 'qrels'
    file : its name there
    address : of the file, at a commit
    md5 : None if it is not known
    size : in words
    reader : Anserini's class that reads topics; '' for judgments
    """

    kind: str
    file: str
    address: str
    md5: str | None
    size: str
    reader: str = ''

    def fetch(self, target: Path | None = None) -> Path:
        """The file, by default among the downloads, fetched if it is missing yet.

        Raises the errors of `download.fetch`.
        """
        path = target or downloads_folder() / self.kind / self.file
        return fetch(self.address, path, self.md5, self.size, self.file)


def table_path() -> Path:
    """The file of the table."""
    return Path(__file__).resolve().parents[1] / 'resources' / 'topics_and_qrels.json'


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(table_path().read_text(encoding='utf-8'))
    return table


def published_names(kind: str) -> list[str]:
    """The names of 'topics' or 'qrels'."""
    return list(_table()[kind])


def published_addresses() -> list[str]:
    """The addresses of all files."""
    return [_address(path) for path in _table()['files']]


def published_file(kind: str, name: str) -> PublishedFile | None:
    """The file of a name of 'topics' or 'qrels'; None for an unknown name."""
    entry = _table()[kind].get(name)
    if entry is None:
        return None
    reader = ''
    file = entry
    if kind == 'topics':
        file = entry['path']
        reader = _READERS + entry['reader_class'].removeprefix(_READERS)
    path = f'{kind}/{file}'
    details = _table()['files'][path]
    size = human_size(details['size']) if 'size' in details else 'size unknown'
    return PublishedFile(kind, file, _address(path), details.get('md5'), size, reader)


def _address(path: str) -> str:
    table = _table()
    at_commit = table['files'][path].get('former', f'{table["commit"]}/{path}')
    return f'{_SITE}/{table["repository"]}/{at_commit}'
