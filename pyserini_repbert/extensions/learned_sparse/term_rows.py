"""Term weights as a representation of a collection's passages: EPIC's, and a `SparseEncoder`'s.

The files of a shard:

- `offsets.npy`: int64 (n + 1,), where each row begins, and where the last one ends
- `terms.npy`: uint16 (total,), or uint32 for more than 65,536 terms; ascending within a row
- `weights.npy`: float32 (total,)

Only passages that share a term with a query are found. Postings are kept in memory: 6 bytes a
weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.representations import (
    RepresentationModel,
    RepresentationWork,
    Rows,
    ShardFiles,
    copied_offsets,
    copied_rows,
)
from pyserini_repbert.errors import DamagedFileError, UnknownNameError
from pyserini_repbert.extensions.learned_sparse.model import SparseModel
from pyserini_repbert.index.arrays import check_finite, check_offsets, check_terms
from pyserini_repbert.index.postings import PostingsBlock, rows_together
from pyserini_repbert.index.records import Count
from pyserini_repbert.models.term_vectors import TermVector, TermVectors
from pyserini_repbert.ranking import WordWeight
from pyserini_repbert.record import Sha256

if TYPE_CHECKING:
    from pyserini_repbert.encode.term_weights import TermWeightsEncoder


# What a weight that is looked up by its row takes, in weights of postings: measured.
_WEIGHT_COST = 4


@checked_dataclass(frozen=True, config=ConfigDict(strict=True, extra='forbid', defer_build=True))
class TermsRecord:
    """What `shard.json` says of the term weights."""

    model: Sha256  # the `SparseModel.key`
    vocabulary: Count
    total: Annotated[int, Field(ge=0)]  # how many weights there are


@dataclass(frozen=True, eq=False)
class TermRows(Rows):
    """The weights of many rows, one row after the other.

    Attributes
    ----------
    model : the `SparseModel.key` of the model that made them
    vocabulary : the number of terms |V|
    offsets, terms, weights : as the module describes
    """

    model: str
    vocabulary: int
    offsets: NDArray[np.int64]
    terms: NDArray[np.unsignedinteger]
    weights: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def value(self, row: int) -> TermVector:
        """The weights of a row."""
        return self.vectors(row, row + 1)[0]

    def vectors(self, first: int, end: int) -> TermVectors:
        """The weights of the rows from `first` to before `end`."""
        offsets = self.offsets[first : end + 1]
        inside = slice(int(offsets[0]), int(offsets[-1]))
        terms = self.terms[inside].astype(np.int64)
        return TermVectors(offsets - offsets[0], terms, self.weights[inside])

    def select(self, others: Sequence[Self], rows: NDArray[np.int64]) -> Self:
        parts = [self, *others]
        begins = [part.offsets for part in parts]
        offsets = copied_offsets(begins, rows)
        terms = np.empty(offsets[-1], self.terms.dtype)
        weights = np.empty(offsets[-1], np.float32)
        for copied in copied_rows(begins, rows, offsets):
            terms[copied.targets] = parts[copied.part].terms[copied.sources]
            weights[copied.targets] = parts[copied.part].weights[copied.sources]
        return replace(self, offsets=offsets, terms=terms, weights=weights)

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {'offsets': self.offsets, 'terms': self.terms, 'weights': self.weights}

    def record(self) -> dict[str, Any]:
        return {'model': self.model, 'vocabulary': self.vocabulary, 'total': len(self.terms)}

    def is_of(self, model: RepresentationModel) -> bool:
        assert isinstance(model, SparseModel)
        return super().is_of(model) and self.vocabulary == model.vocabulary

    def check(self, folder: Path) -> None:
        check_terms(self.terms, self.offsets, self.vocabulary, folder / 'terms.npy')
        check_finite(self.weights, folder / 'weights.npy')

    def prepare(self, folder: Path) -> None:
        if 'postings' not in vars(self):
            self.check(folder)
            _ = self.postings

    @cached_property
    def postings(self) -> tuple[PostingsBlock, ...]:
        """The postings of each term, made once; the rows are checked before."""
        size = rows_together(len(self), len(self.terms))
        blocks = []
        for first in range(0, len(self), size):
            vectors = self.vectors(first, min(first + size, len(self)))
            blocks.append(PostingsBlock.of(vectors, first, self.vocabulary))
        return tuple(blocks)

    def scores(self, query: TermVector) -> NDArray[np.float32]:
        scores = np.zeros(len(self), np.float32)
        for block in self.postings:
            first = block.first_row
            scores[first : first + block.n_rows] = block.score(query)
        return scores

    def scores_of(self, query: TermVector, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """As in `Rows`. If the rows are few, only their weights are read.

        Products are added in the order of terms, as in `scores`: the sums have the same bits.
        """
        n_weights = int((self.offsets[rows + 1] - self.offsets[rows]).sum())
        if _WEIGHT_COST * n_weights > self._n_postings(query):
            return self.scores(query)[rows]
        weight_of = np.zeros(self.vocabulary)
        weight_of[query.terms] = query.weights
        offsets = copied_offsets([self.offsets], rows)
        sums = np.zeros(len(rows))
        for copied in copied_rows([self.offsets], rows, offsets):
            owners = np.searchsorted(offsets, copied.targets, side='right') - 1
            products = self.weights[copied.sources] * weight_of[self.terms[copied.sources]]
            sums += np.bincount(owners, weights=products, minlength=len(rows))
        return sums.astype(np.float32)

    def _n_postings(self, query: TermVector) -> int:
        """How many weights the query's terms have in all rows."""
        counts = 0
        for block in self.postings:
            begins = block.starts[query.terms]
            counts += int((block.starts[query.terms + 1] - begins).sum())
        return counts


class _Terms(RepresentationWork):
    """Term weights."""

    recorded_as = 'TermSearcher'
    model_type = SparseModel
    record_type = TermsRecord

    def open(self, name: str, device: str, precision: str) -> TermWeightsEncoder:
        from pyserini_repbert.systems.encoders import term_weights_encoder

        try:
            return term_weights_encoder(name, device, precision=precision)
        except UnknownNameError as error:
            raise UnknownNameError(
                f"sparse ranking '{name}' is unknown: expected bm25, none, the folder of a "
                "SparseEncoder, or an EPIC checkpoint such as 'epic-demo'"
            ) from error

    def model_of(self, encoder: TermWeightsEncoder) -> SparseModel:
        return SparseModel.of(encoder.encoding().settings)

    def reranker_settings(self, model: SparseModel) -> dict[str, Any]:
        # As many weights as are stored make the score.
        return {'prune': model.prune}

    def encode(self, encoder: TermWeightsEncoder, texts: Sequence[str]) -> TermVectors:
        weights: TermVectors = encoder.encoding().encode([Passage('', text) for text in texts])
        return weights

    def rows(self, values: Sequence[TermVector], model: RepresentationModel) -> TermRows:
        assert isinstance(model, SparseModel)
        together = TermVectors.of(values)
        if not np.isfinite(together.weights).all():
            raise DamagedFileError(
                f"the sparse model '{model.encoder}' gives a weight that is not finite: check its "
                'files, or compute in float32'
            )
        terms = together.terms.astype(_term_dtype(model.vocabulary))
        return TermRows(model.key(), model.vocabulary, together.offsets, terms, together.weights)

    def files_of(self, record: TermsRecord) -> tuple[str, ...]:
        return ('offsets', 'terms', 'weights')

    def read(self, shard: ShardFiles, record: TermsRecord) -> TermRows:
        offsets = shard.array('offsets', np.int64, (len(shard) + 1,), is_compared=True)
        check_offsets(offsets, record.total, shard.folder / 'offsets.npy')
        total = (record.total,)
        return TermRows(
            model=record.model,
            vocabulary=record.vocabulary,
            offsets=offsets,
            terms=shard.array('terms', _term_dtype(record.vocabulary), total),
            weights=shard.array('weights', np.float32, total),
        )

    def encode_queries(
        self, encoder: TermWeightsEncoder, queries: Sequence[str]
    ) -> list[TermVector]:
        return encoder.encode_queries(queries)

    def document_query(self, passages: Sequence[TermVector]) -> TermVector | None:
        """The mean weights of a document's passages."""
        together = TermVectors.of(passages)
        if not len(together.terms):
            return None
        weights = together.weights / np.float32(max(len(passages), 1))
        return TermVector.summed(together.terms, weights)

    def matches(
        self, encoder: TermWeightsEncoder, query: TermVector, passage: TermVector
    ) -> tuple[WordWeight, ...]:
        """The terms that both have, with what each adds to the score."""
        from pyserini_repbert.rerank.term_explanations import contributions

        words = [
            WordWeight(share['term'], share['contribution'])
            for share in contributions(encoder, query, passage)
            if share['contribution'] > 0
        ]
        return tuple(words)


def _term_dtype(vocabulary: int) -> DTypeLike:
    """The type of `terms.npy`."""
    return np.uint16 if vocabulary <= 1 << 16 else np.uint32


TERMS = _Terms()
