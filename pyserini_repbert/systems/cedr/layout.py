"""How a query and a document become BERT's input, and where their tokens are found in its output.

A sequence is `[CLS] query [SEP] document [SEP]`, segment 0 up to the first [SEP], 1 from there. The
released code pads queries to 20 tokens in the middle of the sequence and masks the padding. Masked
tokens change nothing but the positions of the tokens behind them, so they are left out here and
position ids are given instead: the same result, less work. (PACRR and DRMM score a query's empty
positions, too. These all score alike; the two models add them afterwards.)

A document too long for the positions left is split into parts as even as possible (CEDR section
3.1), each behind the whole query. The last part may be shorter than the others; its [SEP] has the
same position as theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.tokenizer import WordPieceTokenizer
from pyserini_repbert.systems.cedr.settings import CedrSettings

_SPECIAL_TOKENS = 3  # [CLS] and two [SEP]


class Pair(NamedTuple):
    """The wordpiece ids of a query and a document, cut to the lengths that a model takes."""

    query: list[int]
    document: list[int]


@dataclass(frozen=True)
class PairBatch:
    """n pairs as tensors, with a row for each part of a pair's document."""

    # bool (rows, length), in the host's memory; None where no row is padded
    attention_mask: Tensor | None
    input_ids: Tensor  # int64 (rows, length)
    token_type_ids: Tensor  # int64 (rows, length)
    position_ids: Tensor  # int64 (rows, length)
    part_weights: Tensor  # float32 (n, rows), 1 / number of parts for the rows of a pair, else 0
    # int64 (n, q), positions of query tokens in the flattened output, in the row of the first part
    query_index: Tensor
    document_index: Tensor  # int64 (n, d), likewise of document tokens, each in the row of its part
    # bool (n, q), True where there is a token; q is the length of the longest query
    query_mask: Tensor
    document_mask: Tensor  # bool (n, d), likewise


@dataclass(frozen=True)
class _Row:
    """A part of a pair, as BERT reads it.

    Attributes
    ----------
    ids, positions : of its tokens
    document_start : where segment 1 begins
    """

    ids: list[int]
    positions: list[int]
    document_start: int


class CedrLayout:
    """Lays out pairs for a BERT. Raises InputError where the longest query leaves no position
    for a document.
    """

    def __init__(
        self, config: BertConfig, settings: CedrSettings, tokenizer: WordPieceTokenizer
    ) -> None:
        self.settings = settings
        self.positions = config.max_position_embeddings
        self.tokenizer = tokenizer
        if self._room(settings.max_query_length) < 1:
            raise InputError(
                f'a query of {settings.max_query_length} tokens leaves no room for a document in '
                f'the '
                f'{self.positions} positions of this BERT: lower max_query_length'
            )

    def cut(self, query: Sequence[int], document: Sequence[int]) -> Pair:
        """The first wordpieces of both, as many as the model takes."""
        return Pair(
            list(query[: self.settings.max_query_length]),
            list(document[: self.settings.max_doc_length]),
        )

    def _slots(self, pair: Pair) -> int:
        return self.settings.max_query_length if self.settings.pad_query else len(pair.query)

    def _room(self, slots: int) -> int:
        return self.positions - slots - _SPECIAL_TOKENS

    def n_parts(self, pair: Pair) -> int:
        """How many parts the document is split into; an empty document is one part."""
        return max(1, math.ceil(len(pair.document) / self._room(self._slots(pair))))

    def cost(self, pair: Pair) -> int:
        """Roughly how many tokens BERT reads for a pair: every part is counted as long as the
        longest.
        """
        return self.n_parts(pair) * (len(pair.query) + _SPECIAL_TOKENS + self._part_length(pair))

    def _part_length(self, pair: Pair) -> int:
        return math.ceil(len(pair.document) / self.n_parts(pair))

    def collate(self, pairs: Sequence[Pair], device: torch.device | str = 'cpu') -> PairBatch:
        """One or more pairs as a batch on `device`."""
        rows: list[_Row] = []
        for pair in pairs:
            rows += self._rows(pair)
        part_counts = [self.n_parts(pair) for pair in pairs]
        first_rows = (np.cumsum(part_counts) - part_counts).tolist()
        lengths = np.asarray([len(row.ids) for row in rows])
        longest = int(lengths.max())
        columns = np.arange(longest)
        ids = np.full((len(rows), longest), self.tokenizer.pad, dtype=np.int64)
        positions = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row.ids)] = row.ids
            positions[number, : len(row.ids)] = row.positions
        starts = np.asarray([row.document_start for row in rows])
        is_token = columns < lengths[:, None]
        types = ((columns >= starts[:, None]) & is_token).astype(np.int64)
        weights = np.zeros((len(pairs), len(rows)), dtype=np.float32)
        for number, (first, count) in enumerate(zip(first_rows, part_counts, strict=True)):
            weights[number, first : first + count] = 1 / count
        arrays = (ids, types, positions, weights, *self._indexes(pairs, first_rows, longest))
        tensors = (torch.from_numpy(array).to(device) for array in arrays)
        mask = None
        if not is_token.all():
            mask = torch.from_numpy(is_token)
        return PairBatch(mask, *tensors)

    def _rows(self, pair: Pair) -> Iterator[_Row]:
        """The row of each part."""
        query, document = pair
        begin = self._slots(pair) + 2
        size = self._part_length(pair)
        for part in range(self.n_parts(pair)):
            chunk = document[part * size : (part + 1) * size]
            ids = [self.tokenizer.cls, *query, self.tokenizer.sep, *chunk, self.tokenizer.sep]
            positions = [
                *range(len(query) + 1),
                begin - 1,
                *range(begin, begin + len(chunk)),
                begin + size,
            ]
            yield _Row(ids, positions, document_start=len(query) + 2)

    def _indexes(
        self, pairs: Sequence[Pair], first_rows: Sequence[int], row_length: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """query_index, document_index, query_mask and document_mask of a `PairBatch`."""
        query_index, document_index = (
            np.zeros((len(pairs), max(1, *map(len, texts))), dtype=np.int64)
            for texts in zip(*pairs, strict=True)
        )
        query_mask = query_index.astype(bool)
        document_mask = document_index.astype(bool)
        for number, (pair, first) in enumerate(zip(pairs, first_rows, strict=True)):
            n_query = len(pair.query)
            n_document = len(pair.document)
            query_index[number, :n_query] = first * row_length + 1 + np.arange(n_query)
            query_mask[number, :n_query] = True
            part, offset = np.divmod(np.arange(n_document), max(1, self._part_length(pair)))
            document_index[number, :n_document] = (first + part) * row_length + n_query + 2 + offset
            document_mask[number, :n_document] = True
        return query_index, document_index, query_mask, document_mask
