"""Rewrite shards: merge small ones, and drop dead rows. Nothing is encoded."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.shards import (
    SHARDS,
    ShardRows,
    is_shard_name,
    open_shard,
    write_shard,
)
from pyserini_repbert.collection.staging import Staging
from pyserini_repbert.collection.store import FOREVER, damage
from pyserini_repbert.encode.representations import SHARD_ROWS, Rows
from pyserini_repbert.extension import Representation
from pyserini_repbert.sqlite_files import transaction

SMALL_ROWS = 16_384  # a shard with fewer live rows is small
MOST_SMALL = 8  # small shards in a generation
MOST_DEAD = 1 / 5  # of a shard's rows
_MOST_ROWS = 2**48
# Whether a row of `passages` is in the table of moved ones. SQLite reads each document once.
_IS_MOVED = (
    'docno IN (SELECT docno FROM moved) AND EXISTS (SELECT 1 FROM moved '
    'WHERE moved.docno = passages.docno AND moved.number = passages.number)'
)


@dataclass(frozen=True)
class ShardState:
    """A shard of the next generation: its number, its name, its rows, and those that are dead."""

    shard: int
    name: str
    rows: int
    dead: NDArray[np.int64]

    @property
    def n_live(self) -> int:
        """How many rows count."""
        return self.rows - len(self.dead)

    @property
    def live(self) -> NDArray[np.int64]:
        """The rows that count."""
        return np.setdiff1d(np.arange(self.rows), self.dead, assume_unique=True)


def shard_states(staging: Staging) -> list[ShardState]:
    """The shards of the next generation, in the order in which they were written."""
    execute = staging.connection.execute
    shards = execute(
        f'SELECT shard, name, rows FROM shards WHERE until = {FOREVER} ORDER BY shard'
    ).fetchall()
    states = []
    for shard, name, rows in shards:
        dead = execute('SELECT row FROM dead_rows WHERE shard = ? ORDER BY row', [shard])
        numbers = np.fromiter((row for (row,) in dead), np.int64)
        is_inside = len(numbers) == 0 or 0 <= numbers[0] <= numbers[-1] < rows
        if not (is_shard_name(name) and 0 <= rows <= _MOST_ROWS and is_inside):
            raise damage(staging.folder, f'shard {name!r:.40} has no {rows} rows')
        states.append(ShardState(shard, name, rows, numbers))
    return states


def rewrite_shards(staging: Staging, compact: bool = False) -> None:
    """Leave out shards without live rows, and rewrite those with many dead or few rows.

    With `compact`, all dead rows are dropped, and small shards are merged.
    """
    live = []
    for state in shard_states(staging):
        if state.n_live:
            live.append(state)
        else:
            _end_shard(staging, state)
    most_rows = _most_rows(staging)
    limits = _Limits(min(SMALL_ROWS, most_rows // 4), MOST_SMALL, MOST_DEAD)
    if compact:
        limits = replace(limits, most_small=1, most_dead=0.0)
    for group in _groups(_choose(live, limits), most_rows):
        _rewrite(staging, group)


def _most_rows(staging: Staging) -> int:
    """The most rows of a shard: one of great rows has fewer."""
    sizes: list[int] = [kind.work.shard_rows for kind in staging.encoder.further_models]
    return min([SHARD_ROWS, *sizes])


@dataclass(frozen=True)
class _Limits:
    """Which shards do not change.

    Attributes
    ----------
    small_rows : a shard with fewer live rows is small
    most_small : how many shards may be small
    most_dead : which share of a shard's rows may be dead
    """

    small_rows: int
    most_small: int
    most_dead: float


def _choose(states: Sequence[ShardState], limits: _Limits) -> list[ShardState]:
    """The shards to rewrite: small ones where there are too many, and those with many dead rows."""
    small = {state.shard for state in states if state.n_live < limits.small_rows}
    if len(small) <= limits.most_small:
        small = set()
    return [
        state
        for state in states
        if state.shard in small or len(state.dead) > limits.most_dead * state.rows
    ]


def _groups(states: Iterable[ShardState], most_rows: int) -> list[list[ShardState]]:
    """Shards whose live rows make up one shard each."""
    groups: list[list[ShardState]] = []
    n_rows = most_rows
    for state in states:
        if n_rows + state.n_live > most_rows:
            groups.append([])
            n_rows = 0
        groups[-1].append(state)
        n_rows += state.n_live
    return groups


def _rewrite(staging: Staging, states: Sequence[ShardState]) -> None:
    """Write the live rows of some shards as one shard, and let its passages point there.

    Raises DamagedFileError for a shard that is not intact: its copy would have another checksum.
    """
    for state in states:
        shard = open_shard(staging.folder / SHARDS, state.name)
        shard.verify()
        if len(shard) != state.rows:
            raise damage(staging.folder, f'shard {state.name} has {len(shard)} rows')
    rows = _live_rows(staging, states)
    written = write_shard(staging.folder / SHARDS, rows, staging.generation, staging.dtype)
    with transaction(staging.connection):
        number = staging.rows.write_shard(written)
        move_passages(staging.connection, rows, generation=staging.generation, shard=number)
        for state in states:
            _end_shard(staging, state)


def _live_rows(staging: Staging, states: Sequence[ShardState]) -> ShardRows:
    """The live rows of some shards, in the order of documents and passages."""
    folder = staging.folder / SHARDS
    documents = _live_values(folder, states, 'documents')
    numbers = _live_values(folder, states, 'numbers')
    order = np.lexsort((numbers, documents))
    further = {
        kind.name: _ordered_rows(folder, states, order, kind)
        for kind in staging.encoder.further_models
    }
    return ShardRows(
        vectors=_ordered_vectors(folder, states, order),
        documents=documents[order],
        numbers=numbers[order],
        inputs=_live_values(folder, states, 'inputs')[order],
        further=further,
    )


def _live_values(folder: Path, states: Sequence[ShardState], name: str) -> NDArray[Any]:
    """The live rows of one file of each shard, in the order of the shards."""
    return np.concatenate(
        [getattr(open_shard(folder, state.name), name)[state.live] for state in states]
    )


def _ordered_vectors(
    folder: Path, states: Sequence[ShardState], order: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The live vectors in an order of all live rows.

    There is one copy of them in memory. Shards are opened one after the other, because mapped parts
    of files also count as memory.
    """
    targets = np.empty_like(order)
    targets[order] = np.arange(len(order))
    first_shard = open_shard(folder, states[0].name)
    vectors = np.empty((len(order), first_shard.record.dimension), np.float32)
    first = 0
    for state in states:
        after = first + state.n_live
        vectors[targets[first:after]] = open_shard(folder, state.name).vectors[state.live]
        first = after
    return vectors


def _ordered_rows(
    folder: Path, states: Sequence[ShardState], order: NDArray[np.int64], kind: Representation
) -> Rows:
    """A further model's values of the live rows, in the order given for all live rows.

    It is copied once, from the mapped files.
    """
    shards = [open_shard(folder, state.name) for state in states]
    live = []
    n_before = 0
    for state, shard in zip(states, shards, strict=True):
        live.append(n_before + state.live)
        n_before += len(shard)
    first, *others = [shard.rows_of(kind) for shard in shards]
    return first.select(others, np.concatenate(live)[order])


def move_passages(
    connection: sqlite3.Connection, rows: ShardRows, generation: int, shard: int
) -> None:
    """Let the passages of these rows point to a shard, from a staged generation on."""
    connection.execute(
        'CREATE TEMP TABLE IF NOT EXISTS moved '
        '(docno INTEGER, number INTEGER, row INTEGER, PRIMARY KEY (docno, number)) WITHOUT ROWID'
    )
    connection.execute('DELETE FROM moved')
    numbered = zip(
        rows.documents.tolist(), rows.numbers.tolist(), range(len(rows.documents)), strict=True
    )
    connection.executemany('INSERT INTO moved VALUES (?, ?, ?)', numbered)
    connection.execute('INSERT OR IGNORE INTO staged SELECT DISTINCT docno, 0 FROM moved')
    # no reader sees the rows of the next generation, so they can be changed in place
    connection.execute(
        'UPDATE passages SET shard = ?, row = (SELECT row FROM moved '
        'WHERE moved.docno = passages.docno AND moved.number = passages.number) '
        f'WHERE since = ? AND {_IS_MOVED}',
        [shard, generation],
    )
    # all passages of a document are read once: a look-up of each would read them each time
    connection.execute(
        'INSERT INTO passages SELECT docno, number, ?, until, start, end, input, ?, moved.row '
        'FROM (SELECT DISTINCT docno FROM moved) CROSS JOIN passages USING (docno) '
        'CROSS JOIN moved USING (docno, number) '
        f'WHERE until = {FOREVER} AND since < ?',
        [generation, shard, generation],
    )
    connection.execute(
        f'UPDATE passages SET until = ? WHERE until = {FOREVER} AND since < ? AND {_IS_MOVED}',
        [generation, generation],
    )


def _end_shard(staging: Staging, state: ShardState) -> None:
    staging.connection.execute(
        'UPDATE shards SET until = ? WHERE shard = ?', [staging.generation, state.shard]
    )
