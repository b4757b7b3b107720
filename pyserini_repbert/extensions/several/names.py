"""How several collections are named, and their hits.

A location names all of them, as a PATH does: 'notes:mail'. A hit is NAME/DOCID, by the name of its
collection's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyserini_repbert.data.origins import docid_of_path
from pyserini_repbert.errors import InputError
from pyserini_repbert.indexes.kind import kind_of
from pyserini_repbert.ranking import Ranking, distinct_names

# A folder's name has none.
_SIGN = '/'


@dataclass(frozen=True)
class DocidsOfIndex:
    """Some docids that are of one index.

    Attributes
    ----------
    rows : their positions among all requested documents
    docids : as the index itself has them
    """

    rows: Sequence[int]
    docids: Sequence[str]


def split_location(location: str) -> list[str]:
    """The locations of the collections that one location names.

    Raises InputError for fewer than two, for one that is named twice, and for an index that is not
    a collection.
    """
    locations = [part for part in location.split(os.pathsep) if part]
    if len(locations) < 2:
        raise InputError(
            f"'{location}' names {len(locations)} index, several were expected: name each",
            parameters=('index',),
        )
    folders = []
    for part in locations:
        kind = kind_of(part)
        if not kind.is_writable:
            raise InputError(
                f"'{part}' is not a collection, and only collections are searched together: make "
                'one of its documents with `index sync`, or search it alone',
                parameters=('index',),
            )
        folders.append(Path(part).resolve())
    if len(set(folders)) < len(folders):
        raise InputError(f"'{location}' names a collection twice", parameters=('index',))
    return locations


def index_names(locations: Sequence[str]) -> list[str]:
    """The names of indexes: of their folders. A name that is taken gets a number, 'notes#2'."""
    names = [docid_of_path(Path(location).resolve().name) for location in locations]
    return distinct_names(names)


def prefix_of(name: str) -> str:
    """The prefix of the docids of an index."""
    return f'{name}{_SIGN}'


def split_docids(docids: Sequence[str], names: Sequence[str]) -> Mapping[str, DocidsOfIndex]:
    """The docids of each index by its name; docids of other indexes are left out."""
    rows_of: dict[str, list[int]] = {name: [] for name in names}
    docids_of: dict[str, list[str]] = {name: [] for name in names}
    for row, docid in enumerate(docids):
        name, _, own_docid = docid.partition(_SIGN)
        if name in rows_of:
            rows_of[name].append(row)
            docids_of[name].append(own_docid)
    return {name: DocidsOfIndex(rows_of[name], docids_of[name]) for name in names}


def hits_of_index(ranking: Ranking, name: str) -> Ranking:
    """The hits of one index in a ranking of several, as the index itself names them."""
    prefix = prefix_of(name)
    rows = [row for row, docid in enumerate(ranking.docids) if docid.startswith(prefix)]
    scores = [ranking.scores[row] for row in rows]
    docids = [ranking.docids[row].removeprefix(prefix) for row in rows]
    return Ranking(docids, scores, background=ranking.background)
