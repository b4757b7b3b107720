"""What a model makes of each passage beside its dense vector, and how a collection stores it.

A learned sparse model gives term weights, late interaction a vector for each token. An
extension adds a `Representation`: its names, and the `RepresentationWork` that encodes,
stores and scores. A collection asks `extension.representations` for
them, and names none.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pyserini_repbert.errors import MismatchError
from pyserini_repbert.extension import Representation
from pyserini_repbert.index.quantized import StoredVectors
from pyserini_repbert.models.checkpoints.checkpoint import used_models
from pyserini_repbert.ranking import WordWeight
from pyserini_repbert.record import Model

# The most rows of a shard, unless a representation says less.
SHARD_ROWS = 65_536
# Rows that are copied at a time.
_COPIED_ROWS = 512


class RepresentationModel:
    """All that decides what a model makes of a passage, except for the text.

    A subclass is a dataclass, which the settings of a collection store.

    Attributes
    ----------
    deciding : the names of the attributes that decide
    storing : the names of those that say how it is stored
    encoder : a catalog name or folder
    """

    deciding: ClassVar[tuple[str, ...]]
    storing: ClassVar[tuple[str, ...]] = ()
    encoder: str

    def key(self) -> str:
        """A digest of all but the encoder's name, in hexadecimal."""
        parts = [getattr(self, name) for name in (*self.deciding, *self.storing)]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def stored_as(self, dtype: str) -> Self:
        """The same model for a collection whose dense vectors are stored in a type.

        `dtype` is 'float32', 'float16' or 'int8'.
        """
        return self

    def difference(self, other: RepresentationModel) -> str | None:
        """The first setting that differs, in words; None for models that encode alike."""
        for name in self.deciding:
            expected = getattr(self, name)
            given = getattr(other, name)
            if given != expected:
                return f"{name} ('{given}', expected '{expected}')"
        return None


class ShardFiles(Protocol):
    """The files of a shard, as a representation reads them."""

    folder: Path

    def __len__(self) -> int:
        """How many rows the shard has."""

    def array(
        self, name: str, dtype: DTypeLike, shape: tuple[int, ...], is_compared: bool = False
    ) -> NDArray[Any]:
        """The array of a file, mapped.

        Parameters
        ----------
        name : of the file
        dtype, shape : of the array
        is_compared : compare the file with its checksum first
        """


class Rows(ABC):
    """A model's values of many passages, one row after the other.

    Attributes
    ----------
    model : the `RepresentationModel.key` of the model
    """

    model: str

    @abstractmethod
    def __len__(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def value(self, row: int) -> Any:
        """The model's values of a passage."""

    @abstractmethod
    def select(self, others: Sequence[Self], rows: NDArray[np.int64]) -> Self:
        """A copy of rows of these and of others of the same model, in an order.

        Parameters
        ----------
        others : whose rows are counted after these
        rows : int64 (m,)
        """

    @abstractmethod
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """What the files hold, by `Representation.files`."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """What the record of a shard says of them."""

    def is_of(self, model: RepresentationModel) -> bool:
        """Whether a model made them."""
        return self.model == model.key()

    @abstractmethod
    def check(self, folder: Path) -> None:
        """Raises DamagedFileError for values that no model gives; `folder` is the shard's."""

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """Do now what the first search would wait for; raises the errors of `check`."""

    @property
    def can_match(self) -> NDArray[np.bool_]:
        """The rows that a query may find, bool (n,)."""
        return np.ones(len(self), np.bool_)

    @abstractmethod
    def scores(self, query: Any) -> NDArray[np.float32]:
        """The score of each row for a query as `encode_queries` gives it, float32 (n,)."""

    @abstractmethod
    def scores_of(self, query: Any, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of some rows, int64 (m,): float32 (m,)."""


class VectorRows(Rows):
    """Rows that have several vectors each, by which a scan finds them.

    Attributes
    ----------
    offsets : where the vectors of each row begin, and where the last row's end, int64
        (n + 1,)
    vectors : float16 or int8 (total, d)
    """

    offsets: NDArray[np.int64]
    vectors: StoredVectors


@dataclass(frozen=True, eq=False)
class CopiedRows:
    """Rows of one of several `Rows` that are copied together, with the positions of their values.

    Attributes
    ----------
    part : the number of the `Rows`
    sources : where the values are there, int64 (values,)
    targets : their new positions, int64 (values,)
    """

    part: int
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]


def copied_rows(
    parts: Sequence[NDArray[np.int64]], rows: NDArray[np.int64], offsets: NDArray[np.int64]
) -> Iterator[CopiedRows]:
    """Rows of several `Rows`, some at a time.

    Parameters
    ----------
    parts : the offsets of each, int64 (n + 1,)
    rows : to be copied, counted through all of them, int64 (m,)
    offsets : of the copy, int64 (m + 1,)
    """
    first = 0
    for number, begins in enumerate(parts):
        after = first + len(begins) - 1
        places = np.flatnonzero((rows >= first) & (rows < after))
        for start in range(0, len(places), _COPIED_ROWS):
            some = places[start : start + _COPIED_ROWS]
            own = rows[some] - first
            lengths = begins[own + 1] - begins[own]
            within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            yield CopiedRows(
                part=number,
                sources=np.repeat(begins[own], lengths) + within,
                targets=np.repeat(offsets[some], lengths) + within,
            )
        first = after


def copied_offsets(
    parts: Sequence[NDArray[np.int64]], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The offsets of a copy, int64 (m + 1,); takes the parameters of `copied_rows`."""
    lengths = np.concatenate([np.diff(begins) for begins in parts])
    return np.concatenate([[0], np.cumsum(lengths[rows])])


class RepresentationWork(ABC):
    """What encodes, stores and scores a `Representation`, for a family of models.

    Attributes
    ----------
    recorded_as : what records call the searcher of the ranking
    model_type : the `RepresentationModel` that the settings of a collection store
    record_type : the pydantic dataclass of what the record of a shard says of its rows, with
        `model`, the `RepresentationModel.key`
    shard_rows : the most rows of a shard
    scores_all : whether each passage that it can match is a hit, whatever its score; otherwise a
        score of 0 is none
    """

    recorded_as: str
    model_type: type[RepresentationModel]
    record_type: type
    shard_rows: int = SHARD_ROWS
    scores_all: bool = False

    @abstractmethod
    def open(self, name: str, device: str, precision: str) -> Any:
        """The encoder of a name. Raises UnknownNameError for one that means none."""

    @abstractmethod
    def model_of(self, encoder: Any) -> RepresentationModel:
        """What the settings of a collection say of an encoder."""

    def reranker_settings(self, model: Any) -> dict[str, Any]:
        """The settings of a reranker that explains the scores of a collection's model."""
        return {}

    @abstractmethod
    def encode(self, encoder: Any, texts: Sequence[str]) -> Sequence[Any]:
        """What the encoder makes of passages, in their order."""

    @abstractmethod
    def rows(self, values: Sequence[Any], model: RepresentationModel) -> Rows:
        """Values of `encode` as rows. Raises DamagedFileError for one that is not finite."""

    @abstractmethod
    def files_of(self, record: Any) -> tuple[str, ...]:
        """The names of the arrays that a shard has; `record` is a `record_type`."""

    @abstractmethod
    def read(self, shard: ShardFiles, record: Any) -> Rows:
        """The rows of a shard, mapped; `record` is a `record_type`."""

    @abstractmethod
    def encode_queries(self, encoder: Any, queries: Sequence[str]) -> list[Any]:
        """The queries as `Rows.scores` takes them."""

    @abstractmethod
    def document_query(self, passages: Sequence[Any]) -> Any:
        """A document as a query, from the values of its passages; None: it finds nothing."""

    @abstractmethod
    def matches(self, encoder: Any, query: Any, passage: Any) -> tuple[WordWeight, ...]:
        """What of a passage made its score, the greatest share first; none if nothing did."""

    def query_vectors(self, query: Any) -> NDArray[np.float32]:
        """The vectors of a query, float32 (q, d); each finds vectors of passages."""
        raise NotImplementedError(f'{self.recorded_as} has no vectors of queries')

    def sample_query(self, passage: Any, random: np.random.Generator) -> Any:
        """A query that a passage answers, to measure a scan with."""
        raise NotImplementedError(f'{self.recorded_as} has no vectors of queries')


class ModelSource:
    """Opens the model of a representation, once, when it is needed.

    Parameters
    ----------
    kind : the representation
    encoder : a name, or an opened encoder; None: the collection's
    device : where the model runs
    """

    def __init__(self, kind: Representation, encoder: Any = None, device: str = 'cpu') -> None:
        self.kind = kind
        self._encoder = encoder
        self._device = device
        self._precision = 'float32'

    @property
    def name(self) -> str | None:
        """What the encoder is called; None: the collection's encoder."""
        if self._encoder is None or isinstance(self._encoder, str):
            return self._encoder
        name: str = self._encoder.name
        return name

    @property
    def models(self) -> tuple[Model, ...]:
        """The model that was opened, if one was."""
        return used_models(self.opened) if self.is_opened else ()

    @property
    def is_opened(self) -> bool:
        """Whether the model was opened."""
        return 'opened' in vars(self)

    def complete(self, stored: RepresentationModel | None, precision: str) -> None:
        """Take what the user did not name from the collection.

        Parameters
        ----------
        stored : the model of the collection; None without one
        precision : that the collection's models run in
        """
        if self._encoder is None and stored is not None:
            self._encoder = stored.encoder
        self._precision = precision

    @cached_property
    def opened(self) -> Any:
        """The encoder, after `complete`. Raises the errors of `RepresentationWork.open`."""
        if isinstance(self._encoder, str):
            return self.kind.work.open(self._encoder, self._device, self._precision)
        if self._encoder is None:
            raise ValueError('complete() comes first')
        return self._encoder

    @cached_property
    def model(self) -> RepresentationModel:
        """What the settings of a collection say of this model."""
        model: RepresentationModel = self.kind.work.model_of(self.opened)
        return model

    def encode(self, texts: Sequence[str]) -> Sequence[Any]:
        """What the model makes of passages, in their order."""
        values: Sequence[Any] = self.kind.work.encode(self.opened, texts)
        return values

    def check(self, stored: RepresentationModel) -> None:
        """Raises MismatchError for a model that did not make what the collection has.

        How it is stored is the collection's to say.
        """
        difference = stored.difference(self.model)
        if difference is not None:
            what = self.kind.what
            part = difference.removesuffix('_sha256')
            raise MismatchError(
                f"the collection was built with the {what} '{stored.encoder}', and "
                f"'{self.model.encoder}' differs in {part}: give that model, or rebuild the "
                'collection with this one',
                parameters=(self.kind.option, 'rebuild'),
            )
