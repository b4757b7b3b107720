"""Token vectors as a representation of a collection's passages: late interaction, stored.

The files of a shard:

- `token_offsets.npy`: int64 (n + 1,), where each row begins, and where the last one ends
- `token_vectors.npy`: float16 or int8 (total, d), the vectors of the tokens that are scored
- `token_scales.npy`: float32 (total,), of vectors in int8 (`index.quantized`)
- `token_ids.npy`: int32 (total,), these tokens; -1 where vectors of several tokens were joined
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from pyserini_repbert.encode.representations import (
    RepresentationModel,
    RepresentationWork,
    ShardFiles,
    VectorRows,
    copied_offsets,
    copied_rows,
)
from pyserini_repbert.errors import DamagedFileError, UnknownNameError
from pyserini_repbert.index.arrays import check_finite, check_offsets, impossible
from pyserini_repbert.index.quantized import Int8Vectors, StoredVectors, quantize
from pyserini_repbert.index.records import Count, FloatType, Length, Name
from pyserini_repbert.ranking import WordWeight
from pyserini_repbert.record import Sha256

if TYPE_CHECKING:
    from pyserini_repbert.extensions.token_vectors.encoder import (
        MultiVectorTextEncoder,
        TokenVectors,
    )

# Of a document as a query, so many token vectors at most, evenly spaced.
_QUERY_TOKENS = 256
# Of a query to measure a scan with: tokens of a passage that follow each other, and
# their noise, in standard deviations of the passage's values.
_SAMPLE_TOKENS = 16
_SAMPLE_NOISE = 0.5
# Matches that a reason names.
_REASON_MATCHES = 6
_JOINED = -1
_INT8 = 'int8'
_SCALES = 'token_scales'
_TokenDtype = Annotated[str, Field(pattern='^(float16|int8)$')]


@checked_dataclass(frozen=True, config=ConfigDict(extra='forbid', defer_build=True))
class TokenModel(RepresentationModel):
    """All that decides a collection's token vectors, except for the text."""

    deciding: ClassVar[tuple[str, ...]] = (
        'weights_sha256',
        'dimension',
        'max_length',
        'is_mean',
        'precision',
    )
    storing: ClassVar[tuple[str, ...]] = ('dtype',)

    encoder: Name  # folder
    weights_sha256: Sha256  # over all files of the folder
    dimension: Length
    max_length: Length  # tokens kept of a passage
    is_mean: bool  # whether a score is a mean over the query's tokens, rather than a sum
    precision: FloatType  # that the model runs in
    dtype: _TokenDtype = 'float16'  # of the stored vectors

    def stored_as(self, dtype: str) -> Self:
        """As in `RepresentationModel`: in int8 with dense vectors in int8, otherwise in float16."""
        return replace(self, dtype=_INT8 if dtype == _INT8 else 'float16')


@checked_dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid', defer_build=True))
class TokensRecord:
    """What `shard.json` says of the token vectors."""

    model: Sha256  # the `TokenModel.key`
    dimension: Count
    total: Annotated[int, Field(ge=0)]  # how many token vectors there are
    dtype: _TokenDtype = 'float16'  # left out where it is float16


@dataclass(frozen=True, eq=False)
class PassageTokenVectors:
    """The token vectors of a passage, float16 or int8 (t, d), and its tokens, int32 (t,)."""

    vectors: StoredVectors
    ids: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class QueryTokenVectors:
    """A query.

    Attributes
    ----------
    vectors : of its tokens, float32 (q, d)
    ids : of its tokens, int32 (q,)
    divisor : of the sum over its tokens: their number for a mean, or 1
    """

    vectors: NDArray[np.float32]
    ids: NDArray[np.int32]
    divisor: int


@dataclass(frozen=True, eq=False)
class TokenRows(VectorRows):
    """The token vectors of many passages, one passage after the other.

    Attributes
    ----------
    model : the `TokenModel.key` of the model that made them
    offsets, vectors, ids : as the module describes
    """

    model: str
    offsets: NDArray[np.int64]
    vectors: StoredVectors
    ids: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def value(self, row: int) -> PassageTokenVectors:
        inside = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return PassageTokenVectors(self.vectors[inside], self.ids[inside])

    def select(self, others: Sequence[Self], rows: NDArray[np.int64]) -> Self:
        parts = [self, *others]
        begins = [part.offsets for part in parts]
        offsets = copied_offsets(begins, rows)
        copies = {
            name: np.empty((offsets[-1], *array.shape[1:]), array.dtype)
            for name, array in self._values().items()
        }
        for copied in copied_rows(begins, rows, offsets):
            for name, array in parts[copied.part]._values().items():
                copies[name][copied.targets] = array[copied.sources]
        vectors: StoredVectors = copies['token_vectors']
        if _SCALES in copies:
            vectors = Int8Vectors(copies['token_vectors'], copies[_SCALES])
        return replace(self, offsets=offsets, vectors=vectors, ids=copies['token_ids'])

    def _values(self) -> dict[str, NDArray[Any]]:
        """What the files hold of each token."""
        if isinstance(self.vectors, Int8Vectors):
            numbers: NDArray[Any] = self.vectors.numbers
            return {'token_vectors': numbers, _SCALES: self.vectors.scales, 'token_ids': self.ids}
        return {'token_vectors': self.vectors, 'token_ids': self.ids}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {'token_offsets': self.offsets, **self._values()}

    def record(self) -> dict[str, Any]:
        total, dimension = self.vectors.shape
        record = {'model': self.model, 'dimension': dimension, 'total': total}
        if isinstance(self.vectors, Int8Vectors):
            return {**record, 'dtype': _INT8}
        return record

    def is_of(self, model: RepresentationModel) -> bool:
        assert isinstance(model, TokenModel)
        return super().is_of(model) and self.vectors.shape[1] == model.dimension

    def check(self, folder: Path) -> None:
        check_finite(self.vectors, folder / 'token_vectors.npy')
        if len(self.ids) and int(self.ids.min()) < _JOINED:
            raise impossible(folder / 'token_ids.npy', f'it has token {int(self.ids.min())}')

    def prepare(self, folder: Path) -> None:
        """Nothing, because vectors are read in place."""

    @property
    def can_match(self) -> NDArray[np.bool_]:
        """The rows with tokens that are scored."""
        return np.diff(self.offsets) > 0

    def scores(self, query: QueryTokenVectors) -> NDArray[np.float32]:
        return self.scores_of(query, np.arange(len(self)))

    def scores_of(self, query: QueryTokenVectors, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        from pyserini_repbert.extensions.token_vectors.maxsim import maxsim_scores

        begins = self.offsets[rows]
        lengths = self.offsets[rows + 1] - begins
        # In the order of the file, which is read once.
        order = np.argsort(begins, kind='stable')
        scores = np.empty(len(rows), np.float32)
        scores[order] = maxsim_scores(query.vectors, self.vectors, begins[order], lengths[order])
        return scores / np.float32(query.divisor)


class _Tokens(RepresentationWork):
    """Token vectors."""

    recorded_as = 'TokenSearcher'
    model_type = TokenModel
    record_type = TokensRecord
    # A row takes some 100 times as much as a dense vector.
    shard_rows = 8192
    scores_all = True

    def open(self, name: str, device: str, precision: str) -> MultiVectorTextEncoder:
        from pyserini_repbert.extensions.token_vectors.encoder import MultiVectorTextEncoder
        from pyserini_repbert.extensions.token_vectors.folder import (
            is_multi_vector_folder,
            is_trained,
        )

        if not is_multi_vector_folder(name) and not is_trained(name):
            raise UnknownNameError(
                f"multi-vector model '{name}' is unknown: expected none, the folder of a "
                'MultiVectorEncoder of sentence-transformers, or a checkpoint that `train` made '
                'for multi-vector'
            )
        return MultiVectorTextEncoder(name, device, precision)

    def model_of(self, encoder: MultiVectorTextEncoder) -> TokenModel:
        return TokenModel(
            encoder=encoder.name,
            weights_sha256=encoder.weights_sha256,
            dimension=encoder.dimension,
            max_length=encoder.limit,
            is_mean=encoder.is_mean,
            precision=str(encoder.precision),
        )

    def encode(
        self, encoder: MultiVectorTextEncoder, texts: Sequence[str]
    ) -> list[PassageTokenVectors]:
        encoded: dict[int, PassageTokenVectors] = {}

        def keep(positions: Sequence[int], batch: TokenVectors) -> None:
            vectors = batch.vectors.cpu().numpy().astype(np.float16)
            ids = _ids_of(batch)
            end = 0
            for position, length in zip(positions, batch.lengths.tolist(), strict=True):
                inside = slice(end, end + length)
                # Copies: only the passage's values stay in memory.
                encoded[position] = PassageTokenVectors(vectors[inside].copy(), ids[inside].copy())
                end += length

        encoder.encode_passages(texts, keep)
        return [encoded[position] for position in range(len(texts))]

    def rows(self, values: Sequence[PassageTokenVectors], model: RepresentationModel) -> TokenRows:
        assert isinstance(model, TokenModel)
        parts = [np.empty((0, model.dimension), np.float16)]
        parts += [np.asarray(value.vectors) for value in values]
        exact = np.concatenate(parts)
        if not np.isfinite(exact).all():
            raise DamagedFileError(
                f"the multi-vector model '{model.encoder}' gives a value that is not finite in "
                'float16: check its files, or compute in float32'
            )
        vectors: StoredVectors = quantize(exact) if model.dtype == _INT8 else exact
        ids = np.concatenate([np.empty(0, np.int32), *(value.ids for value in values)])
        lengths = [len(value.ids) for value in values]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return TokenRows(model.key(), offsets, vectors, ids)

    def files_of(self, record: TokensRecord) -> tuple[str, ...]:
        files = ('token_offsets', 'token_vectors', 'token_ids')
        return (*files, _SCALES) if record.dtype == _INT8 else files

    def read(self, shard: ShardFiles, record: TokensRecord) -> TokenRows:
        offsets = shard.array('token_offsets', np.int64, (len(shard) + 1,), is_compared=True)
        check_offsets(offsets, record.total, shard.folder / 'token_offsets.npy')
        shape = (record.total, record.dimension)
        values = shard.array('token_vectors', record.dtype, shape)
        vectors: StoredVectors = values
        if record.dtype == _INT8:
            scales = shard.array(_SCALES, np.float32, (record.total,))
            vectors = Int8Vectors(values, scales)
        return TokenRows(
            model=record.model,
            offsets=offsets,
            vectors=vectors,
            ids=shard.array('token_ids', np.int32, (record.total,)),
        )

    def encode_queries(
        self, encoder: MultiVectorTextEncoder, queries: Sequence[str]
    ) -> list[QueryTokenVectors | None]:
        asked: list[QueryTokenVectors | None] = []
        for query in encoder.encode_queries(queries):
            vectors = query.vectors.cpu().numpy()
            divisor = len(vectors) if encoder.is_mean else 1
            asked.append(
                QueryTokenVectors(vectors, _ids_of(query), divisor) if len(vectors) else None
            )
        return asked

    def document_query(self, passages: Sequence[PassageTokenVectors]) -> QueryTokenVectors | None:
        """The tokens of a document's passages, or `_QUERY_TOKENS` of them."""
        vectors = np.concatenate([np.asarray(passage.vectors) for passage in passages])
        ids = np.concatenate([passage.ids for passage in passages])
        if not len(ids):
            return None
        count = min(len(ids), _QUERY_TOKENS)
        chosen = np.linspace(0, len(ids) - 1, count).astype(np.int64)
        return QueryTokenVectors(vectors[chosen].astype(np.float32), ids[chosen], divisor=1)

    def query_vectors(self, query: QueryTokenVectors) -> NDArray[np.float32]:
        return query.vectors

    def sample_query(
        self, passage: PassageTokenVectors, random: np.random.Generator
    ) -> QueryTokenVectors:
        """Some tokens of a passage that follow each other, with Gaussian noise."""
        count = min(len(passage.ids), _SAMPLE_TOKENS)
        first = int(random.integers(len(passage.ids) - count + 1))
        vectors = np.asarray(passage.vectors[first : first + count], np.float32)
        noise = random.standard_normal(vectors.shape, dtype=np.float32)
        noisy = vectors + np.float32(_SAMPLE_NOISE * vectors.std()) * noise
        return QueryTokenVectors(noisy, passage.ids[first : first + count], divisor=1)

    def matches(
        self,
        encoder: MultiVectorTextEncoder,
        query: QueryTokenVectors,
        passage: PassageTokenVectors,
    ) -> tuple[WordWeight, ...]:
        """The tokens of the query that add most, each with the token that it found."""
        products = query.vectors @ np.asarray(passage.vectors, np.float32).T
        best = products.argmax(axis=1)
        added = products.max(axis=1) / query.divisor
        parts = []
        for row in np.argsort(-added, kind='stable')[:_REASON_MATCHES].tolist():
            token = _token_name(encoder, int(query.ids[row]), row)
            match = _token_name(encoder, int(passage.ids[best[row]]), int(best[row]))
            parts.append(WordWeight(f'{token}={match}', float(added[row])))
        return tuple(parts)


def _ids_of(vectors: TokenVectors) -> NDArray[np.int32]:
    """The ids of tokens, int32 (tokens,)."""
    if vectors.ids is None:
        return np.full(len(vectors.positions), _JOINED, np.int32)
    return vectors.ids.astype(np.int32)


def _token_name(encoder: MultiVectorTextEncoder, token: int, position: int) -> str:
    """The name of a token; '#3' for the fourth vector, where vectors were joined."""
    return f'#{position}' if token == _JOINED else encoder.token_names([token])[0]


TOKENS = _Tokens()
