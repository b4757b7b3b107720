"""Vectors, and what further models make, by the digest of the model's input: from shards that have
them, otherwise from the encoder.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.collection.encoding import PassageEncoder
from pyserini_repbert.collection.shards import SHARDS, PassageShard, list_shards, open_shard
from pyserini_repbert.collection.spare_shards import Encoded, SpareShards
from pyserini_repbert.errors import DamagedFileError
from pyserini_repbert.extension import Representation

_AT_ONCE = 500  # digests in a query


class VectorSource:
    """Gives vectors of inputs, and what further models make of them, and encodes only what no shard
    has.

    The values in shards that an interrupted command left behind are used, too, and not encoded
    again.

    Parameters
    ----------
    folder : the collection's
    connection : of its writer
    encoder : makes what no shard has
    dimension : of the vectors
    spare : keeps encoded values
    others : further folders of shards, in which vectors may be
    """

    def __init__(
        self,
        folder: Path,
        connection: sqlite3.Connection,
        encoder: PassageEncoder,
        dimension: int,
        spare: SpareShards,
        others: Sequence[Path] = (),
    ) -> None:
        self._parents = (folder / SHARDS, *others)
        self._parent_of: dict[str, Path] = {}
        self._connection = connection
        self._encoder = encoder
        self._dimension = dimension
        self._spare = spare
        self._models = encoder.further_models
        self._shards: dict[str, PassageShard] = {}
        self._list_spare_vectors()

    def vectors_of(self, inputs: Mapping[bytes, str]) -> dict[bytes, NDArray[np.float32]]:
        """The vector of each input, by its digest."""
        vectors: dict[bytes, NDArray[np.float32]] = {}
        digests = list(inputs)
        for digest, name, row in self._stored(digests):
            vectors[digest] = self.shard(name).vectors[row]
        missing = [digest for digest in digests if digest not in vectors]
        for part in self._parts(missing, inputs):
            encoded = self._encoder.encode([inputs[digest] for digest in part])
            for digest, vector in zip(part, encoded, strict=True):
                vectors[digest] = vector
                self._spare.add(digest, Encoded(vector))
            self._spare.keep()
        return vectors

    def values_of(
        self,
        kind: Representation,
        inputs: Mapping[bytes, str],
        encoded: Mapping[bytes, Encoded],
    ) -> dict[bytes, Encoded]:
        """The encoded values of inputs, with the values of a further model, by the inputs' digests.

        `encoded` has the known values.
        """
        completed: dict[bytes, Encoded] = {}
        digests = list(inputs)
        for digest, name, row in self._stored(digests):
            if digest not in completed and self._has(name, kind):
                value = self.shard(name).rows_of(kind).value(row)
                completed[digest] = encoded[digest].with_value(kind, value)
        missing = [digest for digest in digests if digest not in completed]
        for part in self._parts(missing, inputs):
            values = self._encoder.encode_further(kind, [inputs[digest] for digest in part])
            for digest, value in zip(part, values, strict=True):
                completed[digest] = encoded[digest].with_value(kind, value)
                self._spare.add(digest, completed[digest])
            self._spare.keep()
        return completed

    def _parts(
        self, digests: Sequence[bytes], inputs: Mapping[bytes, str]
    ) -> Iterator[Sequence[bytes]]:
        """Inputs of similar length, so many as take a slow encoder a few seconds."""
        if not digests:
            return
        self._spare.begin()
        by_length = sorted(digests, key=lambda digest: len(inputs[digest]))
        size = self._encoder.inputs_at_once
        for first in range(0, len(by_length), size):
            yield by_length[first : first + size]

    def is_complete(self, name: str) -> bool:
        """Whether a shard has all that the next generation needs of its rows beside vectors."""
        return all(self._has(name, kind) for kind in self._models)

    def _has(self, name: str, kind: Representation) -> bool:
        """Whether a shard has what the collection's further model of a kind makes."""
        return self.shard(name).key_of(kind) == self._models[kind].key()

    def shard(self, name: str) -> PassageShard:
        """A shard of the collection, opened once."""
        if name not in self._shards:
            parent = self._parent_of.get(name, self._parents[0])
            self._shards[name] = open_shard(parent, name)
        return self._shards[name]

    def _stored(self, digests: Sequence[bytes]) -> Iterator[tuple[bytes, str, int]]:
        """(digest, shard, row) of each input that a shard has, maybe several times."""
        numbers = iter(digests)
        while part := list(islice(numbers, _AT_ONCE)):
            marks = ','.join('?' * len(part))
            yield from self._connection.execute(
                'SELECT input, name, row FROM passages JOIN shards USING (shard) '
                f'WHERE input IN ({marks})',
                part,
            )
            yield from self._connection.execute(
                f'SELECT input, name, row FROM spare_vectors WHERE input IN ({marks})', part
            )

    def _list_spare_vectors(self) -> None:
        """List the vectors of shards that no row of the collection names."""
        execute = self._connection.execute
        execute('DROP TABLE IF EXISTS temp.spare_vectors')
        execute(
            'CREATE TEMP TABLE spare_vectors (input BLOB, name TEXT, row INTEGER, '
            'PRIMARY KEY (input, name)) WITHOUT ROWID'
        )
        known = {name for (name,) in execute('SELECT name FROM shards')}
        for parent in self._parents:
            for name in list_shards(parent):
                if name in known:
                    continue
                known.add(name)
                self._parent_of[name] = parent
                self._add_spare_vectors(name)

    def _add_spare_vectors(self, name: str) -> None:
        """List the vectors of a shard. Incomplete ones are encoded again."""
        try:
            shard = self.shard(name)
            shard.verify()
        except DamagedFileError:
            return
        if shard.record.dimension == self._dimension:
            rows = ((digest.tobytes(), name, row) for row, digest in enumerate(shard.inputs))
            self._connection.executemany(
                'INSERT OR IGNORE INTO temp.spare_vectors VALUES (?, ?, ?)', rows
            )
