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
from typing import Any, NamedTuple

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
    """n pairs as tensors, with a row for each part of a pair's document.

    q is the length of the longest query, d the length of the longest document.

    Attributes
    ----------
    attention_mask : bool (rows, length), in the host's memory; None if no row is padded
    input_ids, token_type_ids, position_ids : int64 (rows, length)
    part_weights : float32 (n, rows), 1 / number of parts for the rows of a pair, otherwise 0
    query_index : int64 (n, q), positions of query tokens in the flattened output, in the row of the
        first part
    document_index : int64 (n, d), the same of document tokens, each in the row of its part
    query_mask : bool (n, q), True if there is a token
    document_mask : bool (n, d), the same
    """

    attention_mask: Tensor | None
    input_ids: Tensor
    token_type_ids: Tensor
    position_ids: Tensor
    part_weights: Tensor
    query_index: Tensor
    document_index: Tensor
    query_mask: Tensor
    document_mask: Tensor


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


class _TokenIndex:
    """Where the tokens of texts are in the flattened output.

    Parameters
    ----------
    lengths : of the texts, in tokens

    Attributes
    ----------
    index : the positions, int64 (n, length of the longest); 0 where there is no token
    mask : whether there is one, bool (n, length of the longest)
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self.index = np.zeros((len(lengths), max(1, *lengths)), dtype=np.int64)
        self.mask = np.zeros(self.index.shape, dtype=bool)

    def set(self, number: int, positions: NDArray[np.int64]) -> None:
        """Take the positions of all tokens of a text, by its number."""
        self.index[number, : len(positions)] = positions
        self.mask[number, : len(positions)] = True


class CedrLayout:
    """Lays out pairs for a BERT. Raises InputError if the longest query leaves no position
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
        mask = None
        if not is_token.all():
            mask = torch.from_numpy(is_token)
        queries = self._query_index(pairs, first_rows, longest)
        documents = self._document_index(pairs, first_rows, longest)

        def tensor(array: NDArray[Any]) -> Tensor:
            return torch.from_numpy(array).to(device)

        return PairBatch(
            attention_mask=mask,
            input_ids=tensor(ids),
            token_type_ids=tensor(types),
            position_ids=tensor(positions),
            part_weights=tensor(weights),
            query_index=tensor(queries.index),
            document_index=tensor(documents.index),
            query_mask=tensor(queries.mask),
            document_mask=tensor(documents.mask),
        )

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

    def _query_index(
        self, pairs: Sequence[Pair], first_rows: Sequence[int], row_length: int
    ) -> _TokenIndex:
        """Where the tokens of queries are: in the row of the first part, behind [CLS].

        Parameters
        ----------
        pairs : in the order of the batch
        first_rows : the row of each pair's first part
        row_length : of all rows
        """
        tokens = _TokenIndex([len(pair.query) for pair in pairs])
        for number, (pair, first) in enumerate(zip(pairs, first_rows, strict=True)):
            tokens.set(number, first * row_length + 1 + np.arange(len(pair.query)))
        return tokens

    def _document_index(
        self, pairs: Sequence[Pair], first_rows: Sequence[int], row_length: int
    ) -> _TokenIndex:
        """Where the tokens of documents are: each in the row of its part, behind query and [SEP].

        Parameters are as in `_query_index`.
        """
        tokens = _TokenIndex([len(pair.document) for pair in pairs])
        for number, (pair, first) in enumerate(zip(pairs, first_rows, strict=True)):
            numbers = np.arange(len(pair.document))
            part, offset = np.divmod(numbers, max(1, self._part_length(pair)))
            begin = len(pair.query) + 2
            tokens.set(number, (first + part) * row_length + begin + offset)
        return tokens
