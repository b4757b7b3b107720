"""Which docids a corpus has had, in bounded memory."""

from __future__ import annotations

import sqlite3
import tempfile
from array import array
from pathlib import Path

# Slots of the largest table: 2 MB, for 174,763 docids.
LARGEST_TABLE = 1 << 18
_SMALLEST_TABLE = 4096


class SeenDocids:
    """The 64-bit hashes of docids: a table with open addressing, and for more docids a file.

    The file is a temporary database, which SQLite reads and writes through 2 MB of memory. It takes
    16 bytes a docid on the disk of `TMPDIR`. Nothing is left of it when the process ends.

    Parameters
    ----------
    largest_table : its slots, a power of two; a file takes over when two thirds are used
    """

    def __init__(self, largest_table: int = LARGEST_TABLE) -> None:
        self._largest_table = largest_table
        # 0 marks a free slot.
        self._slots = array('q', [0]) * min(_SMALLEST_TABLE, largest_table)
        self._used = 0
        self._file: sqlite3.Connection | None = None

    def add(self, docid: str) -> bool:
        """Add a docid; returns whether it may have been added before.

        The caller has to tell a collision of hashes (for a million docids, of probability
        3 x 10^-8) from a real duplicate. Raises ExhaustedError if the disk is full.
        """
        key = hash(docid) or 1
        if self._file is None and self._used * 3 > len(self._slots) * 2:
            self._make_room()
        if self._file is not None:
            return self._add_to_file(self._file, key)
        return self._add_to_table(key)

    def _make_room(self) -> None:
        if len(self._slots) >= self._largest_table:
            self._move_to_file()
            return
        before = self._slots
        self._slots = array('q', [0]) * (2 * len(before))
        self._used = 0
        for key in before:
            if key:
                self._add_to_table(key)

    def _add_to_table(self, key: int) -> bool:
        slots = self._slots
        mask = len(slots) - 1
        position = key & mask
        while slots[position]:
            if slots[position] == key:
                return True
            position = (position + 1) & mask
        slots[position] = key
        self._used += 1
        return False

    def _move_to_file(self) -> None:
        # Few corpora have so many docids.
        from pyserini_repbert.sqlite_files import sqlite_errors

        with sqlite_errors(Path(tempfile.gettempdir()), 'try again'):
            # A corpus may be read by several threads, one after the other.
            file = sqlite3.connect('', isolation_level=None, check_same_thread=False)
            file.execute('PRAGMA cache_size = -2000')
            # After an error, the file is of no use: it needs no journal.
            file.execute('PRAGMA journal_mode = OFF')
            file.execute('CREATE TABLE seen (hash INTEGER PRIMARY KEY)')
            file.execute('BEGIN')
            rows = ((key,) for key in self._slots if key)
            file.executemany('INSERT INTO seen VALUES (?)', rows)
        self._file = file
        self._slots = array('q')

    def _add_to_file(self, file: sqlite3.Connection, key: int) -> bool:
        try:
            inserted = file.execute('INSERT OR IGNORE INTO seen VALUES (?)', (key,))
        except sqlite3.Error:
            from pyserini_repbert.sqlite_files import sqlite_errors

            # Not around each insertion, because a context takes as long as an insertion.
            with sqlite_errors(Path(tempfile.gettempdir()), 'try again'):
                raise
        return inserted.rowcount == 0
