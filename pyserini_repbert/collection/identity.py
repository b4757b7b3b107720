"""Which collection a folder holds: a random identity, and how far it has come.

A program that has opened a collection keeps to it. It does not switch to another collection that
has since replaced it in its folder, nor to an earlier state.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
from dataclasses import dataclass

from pyserini_repbert.errors import LostCollectionError
from pyserini_repbert.sqlite_files import transaction

_BYTES = 16
_IDENTITY = re.compile('[0-9a-f]{32}')
_AGAIN = 'put it back, or open the folder again (start a service again)'


@dataclass(frozen=True)
class KnownCollection:
    """A collection as a program has seen it.

    Attributes
    ----------
    identity : in hexadecimal; None if its row is missing
    number : of its generation
    sha256 : the generation's digest
    """

    identity: str | None
    number: int
    sha256: str

    def check(self, now: KnownCollection) -> None:
        """Raises LostCollectionError if the folder no longer holds this collection.

        `now` is what it holds.
        """
        if self.identity != now.identity:
            raise LostCollectionError(
                f'its folder no longer holds the collection that was opened: {_AGAIN}'
            )
        if now.number < self.number:
            raise LostCollectionError(
                f'its folder holds generation {now.number}, and generation {self.number} was '
                f'there: {_AGAIN}'
            )
        if now.number == self.number and now.sha256 != self.sha256:
            raise LostCollectionError(f'its folder holds another generation {now.number}: {_AGAIN}')


def no_collection() -> LostCollectionError:
    """The error where the folder of a collection that was opened holds none."""
    return LostCollectionError(f'its folder no longer holds a collection: {_AGAIN}')


def read_identity(connection: sqlite3.Connection) -> str | None:
    """The identity of a collection; None before the collection is first written.

    Raises sqlite3.DataError for one that no release wrote.
    """
    row = connection.execute('SELECT id FROM identity').fetchone()
    if row is None:
        return None
    identity = str(row[0])
    if not _IDENTITY.fullmatch(identity):
        raise sqlite3.DataError(f'the identity is {identity!r:.40}')
    return identity


def ensure_identity(connection: sqlite3.Connection) -> str:
    """The identity of a collection that is about to be written, which has one from now on."""
    identity = read_identity(connection)
    if identity is None:
        identity = secrets.token_hex(_BYTES)
        with transaction(connection):
            connection.execute('INSERT INTO identity VALUES (?)', [identity])
    return identity
