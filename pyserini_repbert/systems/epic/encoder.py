"""EPIC's encoder: queries and passages to vectors over the vocabulary (EPIC section 3).

A query's vector has only the query's terms. A passage's vector has all terms of the vocabulary, and
is pruned to the largest weights for an index. https://arxiv.org/abs/2004.14245
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.encode.term_weights import PassageTokens, QueryTokens, TermWeightsEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.batching import collate_chunks, in_batches, length_batches
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.term_vectors import (
    NO_TERMS,
    TermVector,
    TermVectors,
    complete,
    largest,
)
from pyserini_repbert.models.token_ids import Progress, TokenIds
from pyserini_repbert.models.tokenizer import TokenChunk
from pyserini_repbert.systems.epic import network as epic


@dataclass(frozen=True, eq=False, slots=True)
class TokenWeights:
    """EPIC's values for each wordpiece of a text.

    Attributes
    ----------
    ids : of its wordpieces, in order
    weights : the importance of each, float32 (n,) (EPIC eq. 1 or 2)
    quality : of a passage, 0 to 1 (EPIC eq. 3); 0 for a query, and for a text without wordpieces
    """

    ids: list[int]
    weights: NDArray[np.float32]
    quality: float = 0.0


class Contextual(NamedTuple):
    """BERT's output for n texts.

    `tokens` are the vectors of all wordpieces, (total, h), text after text; `lengths` says how many
    each text has; `cls_vectors` are the texts' [CLS] vectors, (n, h), means over their chunks.
    """

    tokens: Tensor
    lengths: list[int]
    cls_vectors: Tensor


class EpicEncoder(TermWeightsEncoder):
    """An EPIC checkpoint that encodes queries and passages.

    Inputs are `[CLS] text [SEP]`, token type 0 for queries and 1 for passages; a passage too long
    for BERT's positions is cut into equal chunks, whose [CLS] vectors are averaged. A text without
    wordpieces has the zero vector. A vector depends on its batch by rounding only.

    Parameters
    ----------
    checkpoint : catalog name ('epic') or checkpoint folder; its `ranking` object names the variant
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : of BERT and the projection: vectors are always float32
    max_length : wordpieces kept of a passage; default: the checkpoint's limit, otherwise 2000
    """

    expands_queries = False
    stores_all_terms = True
    # EPIC section 3: "virtually no difference" in effectiveness.
    usual_prune = 1000
    storage_types = ('float16', 'uint8')

    def __init__(
        self,
        checkpoint: Checkpoint | str | Path,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
    ) -> None:
        chosen = Precision(precision)
        opened = open_checkpoint(checkpoint, 'rerankers')
        ranking = opened.system(epic.NAME)
        config = BertConfig.from_dict(opened.config)
        self.name = opened.name
        self.variant = epic.Variant(ranking.get('variant', epic.Variant.OFFICIAL))
        self.device = usable_device(device)
        self.precision = chosen.on(self.device)
        self.chunk_size = config.max_position_embeddings - 2
        if max_length is None:
            max_length = int(ranking.get('max_doc_length', epic.MAX_PASSAGE_TOKENS))
        self.limit = max_length
        query_limit = int(ranking.get('max_query_length', epic.MAX_QUERY_TOKENS))
        self.query_limit = min(query_limit, self.chunk_size)
        shortest = min(self.limit, self.query_limit)
        if shortest < 1:
            raise InputError(f'maximum length {shortest} was given, expected 1 or more')
        self.tokenizer = opened.tokenizer()
        # The number of terms |V|.
        self.vocabulary = config.vocab_size
        model = load_model(lambda: epic.Epic(config, self.variant), opened, epic.TIED)
        self.model = model.to(self.device, self.precision.dtype(self.device))
        self.checkpoint = opened

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self.checkpoint.weights_sha256

    @property
    def config_sha256(self) -> str:
        """Checksum of the checkpoint's configuration."""
        return self.checkpoint.config_sha256

    @property
    def tokenizer_sha256(self) -> str:
        """Checksum of the tokenizer's files."""
        return self.checkpoint.tokenizer_sha256

    def term_names(self, terms: Sequence[int]) -> list[str]:
        """The wordpieces of terms, by their ids."""
        return self.tokenizer.tokens(terms)

    def encode_queries(
        self, queries: Sequence[str], token_budget: int | None = None
    ) -> list[TermVector]:
        """The vectors of queries: the importances of their terms (EPIC eq. 1).

        The importances of a repeated term are summed (section 2).
        """
        weighted = self.query_weights(queries, token_budget)
        return [TermVector.summed(query.ids, query.weights) for query in weighted]

    def query_weights(
        self, queries: Sequence[str], token_budget: int | None = None
    ) -> list[TokenWeights]:
        """The importance of each wordpiece of each query (EPIC eq. 1, Figure 3)."""
        return self._token_weights(queries, epic.QUERY_TYPE, token_budget)

    def passage_weights(self, passages: Sequence[str]) -> list[TokenWeights]:
        """The importance of each wordpiece of each passage (EPIC eq. 2); its quality (eq. 3)."""
        return self._token_weights(passages, epic.PASSAGE_TYPE)

    def query_tokens(self, query: str) -> QueryTokens:
        (weighted,) = self.query_weights([query])
        vector = TermVector.summed(weighted.ids, weighted.weights)
        return QueryTokens(weighted.ids, weighted.weights, vector)

    def passage_tokens(self, passage: str) -> PassageTokens:
        (weighted,) = self.passage_weights([passage])
        return PassageTokens(weighted.ids, weighted.quality)

    def _token_weights(
        self, texts: Sequence[str], kind: int, token_budget: int | None = None
    ) -> list[TokenWeights]:
        """The weights of queries or passages, by their token type."""
        of_query = kind == epic.QUERY_TYPE
        limit = self.query_limit if of_query else self.limit
        ids = self.tokenizer.ids(texts, limit + 1)
        weighted = [TokenWeights([], np.empty(0, np.float32))] * len(texts)

        def keep_weights(batch: list[int], output: Contextual) -> None:
            if of_query:
                importances = self.model.query_importances(output.tokens)
                qualities = [0.0] * len(batch)
            else:
                importances = self.model.document_importances(output.tokens)
                qualities = self.model.quality(output.cls_vectors).tolist()
            by_text = torch.split(importances.cpu(), output.lengths)
            for number, weights, quality in zip(batch, by_text, qualities, strict=True):
                weighted[number] = TokenWeights(ids[number][:limit], weights.numpy(), quality)

        self._in_batches(self._chunks(ids, limit, kind), keep_weights, token_budget)
        return weighted

    def encode_dense(
        self,
        passages: Sequence[str] | TokenIds,
        terms: Sequence[int] | NDArray[np.int64] | None = None,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> NDArray[np.float32]:
        """Passage vectors that are not pruned (EPIC eq. 4): float32 (n, m), m being |V| by default.

        Parameters
        ----------
        passages : texts, or their token ids
        terms : the ids of m terms; only their weights are computed, which costs less
        token_budget : padded tokens in a batch; default: by device
        on_progress : called with the number of passages done since the last call
        """
        width = self.vocabulary if terms is None else len(terms)
        dense = np.zeros((len(passages), width), dtype=np.float32)
        self._encode(passages, dense.__setitem__, terms, token_budget, on_progress)
        return dense

    def encode_pruned(
        self,
        passages: Sequence[str] | TokenIds,
        r: int = 0,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> TermVectors:
        pruned = [NO_TERMS] * len(passages)

        def keep(positions: list[int], vectors: NDArray[np.float32]) -> None:
            for position, vector in zip(positions, vectors, strict=True):
                pruned[position] = largest(vector, r)

        self._encode(passages, keep, None, token_budget, on_progress)
        return TermVectors.of(pruned)

    def encode_unpruned(
        self,
        passages: Sequence[str] | TokenIds,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> TermVectors:
        """Passage vectors with all |V| terms, zeros included."""
        return complete(self.encode_dense(passages, None, token_budget, on_progress))

    def input_tokens(self, length: int) -> int:
        """How many tokens BERT reads for a passage of `length` wordpieces.

        [CLS] and [SEP] of each chunk count, padding does not.
        """
        kept = min(length, self.limit)
        n_chunks = -(-kept // self.chunk_size)
        return kept + 2 * n_chunks

    def _encode(
        self,
        passages: Sequence[str] | TokenIds,
        keep: Callable[[list[int], NDArray[np.float32]], None],
        terms: Sequence[int] | NDArray[np.int64] | None,
        token_budget: int | None,
        on_progress: Progress,
    ) -> None:
        """Call `keep` for batches of passages with their numbers and vectors, float32 (n, m)."""
        ids = self.tokenizer.ids(passages, self.limit + 1)
        texts = self._chunks(ids, self.limit, epic.PASSAGE_TYPE)
        wanted: Tensor | None = None
        if terms is not None:
            wanted = torch.as_tensor(np.asarray(terms, dtype=np.int64), device=self.device)

        def keep_vectors(batch: list[int], output: Contextual) -> None:
            vectors = self.model.document_vectors(
                output.tokens, output.lengths, output.cls_vectors, wanted
            )
            keep(batch, vectors.cpu().numpy())

        self._in_batches(texts, keep_vectors, token_budget, on_progress)

    def _chunks(
        self, ids: Sequence[list[int]], limit: int, token_type: int
    ) -> list[list[TokenChunk]]:
        """The chunks of each text, from its wordpiece ids; none for a text without wordpieces."""
        texts = []
        for ids_of_text in ids:
            self.tokenizer.n_cut += len(ids_of_text) > limit
            chunks = self.tokenizer.chunks(ids_of_text[:limit], self.chunk_size, token_type)
            texts.append(chunks)
        return texts

    def _in_batches(
        self,
        texts: list[list[TokenChunk]],
        work: Callable[[list[int], Contextual], None],
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> None:
        """Call `work` for batches of texts that have wordpieces, with their numbers and output."""
        numbers = []
        lengths = []
        for number, chunks in enumerate(texts):
            if chunks:
                numbers.append(number)
                lengths.append(len(chunks) * len(chunks[0].sequence.input_ids))
        batches = length_batches(lengths, token_budget, self.device)

        def work_on(batch: list[int]) -> None:
            chosen = [numbers[i] for i in batch]
            work(chosen, self._contextual([texts[number] for number in chosen]))

        in_batches(work_on, batches, on_progress)
        on_progress(len(texts) - len(numbers))

    def _contextual(self, texts: list[list[TokenChunk]]) -> Contextual:
        """BERT's output for the chunks of texts."""
        chunks = list(itertools.chain.from_iterable(texts))
        ids, types, mask, positions = collate_chunks(chunks, self.tokenizer.pad, self.device)
        hidden = self.model(ids, types, mask)
        tokens = hidden.reshape(-1, hidden.shape[-1])[positions]
        chunk_counts = [len(chunks_of_text) for chunks_of_text in texts]
        of_texts = torch.split(hidden[:, 0], chunk_counts)
        cls_vectors = torch.stack([part.mean(dim=0) for part in of_texts])
        lengths = []
        for chunks_of_text in texts:
            lengths.append(sum(chunk.n_pieces for chunk in chunks_of_text))
        return Contextual(tokens, lengths, cls_vectors)
