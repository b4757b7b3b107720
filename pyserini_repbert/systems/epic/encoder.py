"""EPIC's encoder: queries to sparse vectors over their own terms, passages to vectors over the
whole vocabulary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.encode.sharding import Encoding
from pyserini_repbert.encode.text_encoder import check_model
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.index.records import EpicSettings
from pyserini_repbert.models.batching import (
    Progress,
    collate_chunks,
    in_batches,
    length_batches,
    usual_budget,
)
from pyserini_repbert.models.bert_config import BertConfig
from pyserini_repbert.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.term_vectors import NO_TERMS, TermVector, TermVectors, largest
from pyserini_repbert.models.token_ids import TokenIds
from pyserini_repbert.models.tokenizer import TokenChunk
from pyserini_repbert.systems.epic import network as epic
from pyserini_repbert.systems.epic.encoding import epic_encoding

QUERY_UNIT = 100  # query weights are sent in hundredths: Anserini takes whole numbers


class TokenWeights(NamedTuple):
    """A text's wordpiece ids, the importance of each, float32 (n,), and a passage's quality, 0
    to 1 (0 if empty).
    """

    ids: list[int]
    weights: NDArray[np.float32]
    quality: float = 0.0


class EpicEncoder:
    """An EPIC checkpoint that encodes queries and passages.

    Inputs are `[CLS] text [SEP]`, token type 0 for queries and 1 for passages; a passage too long
    for BERT's positions is cut into equal chunks, whose [CLS] vectors are averaged. A text without
    wordpieces has the zero vector. A vector depends on its batch by rounding only.

    Parameters
    ----------
    checkpoint : catalog name ('epic') or checkpoint folder; its `ranking` object names the variant
    precision : of BERT and the projection: vectors are always float32
    max_length : wordpieces kept of a passage; default: the checkpoint's limit, else 2000
    """

    def __init__(
        self,
        checkpoint: Checkpoint | str | Path,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
    ) -> None:
        opened = open_checkpoint(checkpoint, 'rerankers')
        ranking = opened.system(epic.NAME)
        config = BertConfig.from_dict(opened.config)
        self.name = opened.name
        self.variant = epic.Variant(ranking.get('variant', epic.Variant.OFFICIAL))
        self.device = usable_device(device)
        self.precision = Precision(precision).on(self.device)
        self.chunk_size = config.max_position_embeddings - 2
        self.limit = (
            int(ranking.get('max_doc_length', epic.MAX_PASSAGE_TOKENS))
            if max_length is None
            else max_length
        )
        self.query_limit = min(
            int(ranking.get('max_query_length', epic.MAX_QUERY_TOKENS)), self.chunk_size
        )
        if min(self.limit, self.query_limit) < 1:
            raise InputError(
                f'maximum length {min(self.limit, self.query_limit)} was given, expected 1 or more'
            )
        self.tokenizer = opened.tokenizer()
        self.vocabulary = config.vocab_size  # the number of terms |V|
        model = load_model(lambda: epic.Epic(config, self.variant), opened, epic.TIED)
        self.model = model.to(self.device, self.precision.dtype(self.device))
        self.checkpoint = opened

    @property
    def weights_sha256(self) -> str:
        """Checksum of the checkpoint's weights."""
        return self.checkpoint.weights_sha256

    @property
    def vocabulary_sha256(self) -> str:
        """Checksum of the wordpieces, in the order of their ids."""
        names = self.tokenizer.tokens(range(self.vocabulary))
        return hashlib.sha256('\n'.join(names).encode()).hexdigest()

    def encoding(self, **storage: Any) -> Encoding[EpicSettings]:
        """How it fills an EPIC bundle; `storage` as in `encoding.epic_encoding`."""
        return epic_encoding(self, **storage)

    def encode_query(self, query: str) -> TermVector:
        """One query's vector: the importances of its terms (EPIC eq. 1), summed for a repeated
        term (section 2).
        """
        return self.encode_queries([query])[0]

    def encode_queries(
        self, queries: Sequence[str], token_budget: int | None = None
    ) -> list[TermVector]:
        """The vectors of many queries, in their order."""
        return [
            TermVector.summed(query.ids, query.weights)
            for query in self.query_weights(queries, token_budget)
        ]

    def query_weights(
        self, queries: Sequence[str], token_budget: int | None = None
    ) -> list[TokenWeights]:
        """The importance of each wordpiece of each query (EPIC eq. 1, Figure 3)."""
        return self._token_weights(queries, epic.QUERY_TYPE, token_budget)

    def passage_weights(self, passages: Sequence[str]) -> list[TokenWeights]:
        """The importance of each wordpiece of each passage, and the passage's quality (EPIC eq.
        2-3).
        """
        return self._token_weights(passages, epic.PASSAGE_TYPE)

    def _token_weights(
        self, texts: Sequence[str], kind: int, token_budget: int | None = None
    ) -> list[TokenWeights]:
        model = self.model
        of_query = kind == epic.QUERY_TYPE
        limit = self.query_limit if of_query else self.limit
        ids = self.tokenizer.ids(texts, limit + 1)
        result = [TokenWeights([], np.empty(0, np.float32))] * len(texts)

        def work(batch: list[int], tokens: Tensor, lengths: list[int], cls_vectors: Tensor) -> None:
            importances = (model.query_importances if of_query else model.document_importances)(
                tokens
            )
            qualities = [0.0] * len(batch) if of_query else model.quality(cls_vectors).tolist()
            by_text = torch.split(importances.cpu(), lengths)
            for position, weights, quality in zip(batch, by_text, qualities, strict=True):
                result[position] = TokenWeights(ids[position][:limit], weights.numpy(), quality)

        self._in_batches(self._chunks(ids, limit, kind), work, token_budget)
        return result

    def encode_dense(
        self,
        passages: Sequence[str] | TokenIds,
        terms: Sequence[int] | NDArray[np.int64] | None = None,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> NDArray[np.float32]:
        """Passage vectors that are not pruned (EPIC eq. 4): float32 (n, m), m being |V| by default.

        Passages are texts, or their token ids. Given the ids of m `terms`, only their weights are
        computed, which costs less. The other parameters are those of `TextEncoder.embed`.
        """
        dense = np.zeros(
            (len(passages), self.vocabulary if terms is None else len(terms)), dtype=np.float32
        )
        self._encode(passages, dense.__setitem__, terms, token_budget, on_progress)
        return dense

    def encode_pruned(
        self,
        passages: Sequence[str] | TokenIds,
        r: int,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> TermVectors:
        """Passage vectors pruned to the r largest weights (EPIC section 3, 'pruning').

        With r = 0, all that are not zero are kept. The other parameters are those of
        `encode_dense`.
        """
        pruned = [NO_TERMS] * len(passages)

        def keep(positions: list[int], vectors: NDArray[np.float32]) -> None:
            for position, vector in zip(positions, vectors, strict=True):
                pruned[position] = largest(vector, r)

        self._encode(passages, keep, None, token_budget, on_progress)
        return TermVectors.of(pruned)

    def input_tokens(self, length: int) -> int:
        """How many tokens BERT reads for a passage of `length` wordpieces, with [CLS] and [SEP],
        without padding.
        """
        kept = min(length, self.limit)
        return kept + 2 * -(-kept // self.chunk_size)

    def _encode(
        self,
        passages: Sequence[str] | TokenIds,
        keep: Callable[[list[int], NDArray[np.float32]], None],
        terms: Sequence[int] | NDArray[np.int64] | None,
        token_budget: int | None,
        on_progress: Progress,
    ) -> None:
        ids = self.tokenizer.ids(passages, self.limit + 1)
        texts = self._chunks(ids, self.limit, epic.PASSAGE_TYPE)
        wanted = (
            None
            if terms is None
            else torch.as_tensor(np.asarray(terms, dtype=np.int64), device=self.device)
        )

        def work(batch: list[int], tokens: Tensor, lengths: list[int], cls_vectors: Tensor) -> None:
            keep(
                batch,
                self.model.document_vectors(tokens, lengths, cls_vectors, wanted).cpu().numpy(),
            )

        self._in_batches(texts, work, token_budget, on_progress)

    def _chunks(
        self, ids: Sequence[list[int]], limit: int, token_type: int
    ) -> list[list[TokenChunk]]:
        self.tokenizer.n_cut += sum(len(ids_of_text) > limit for ids_of_text in ids)
        return [
            self.tokenizer.chunks(ids_of_text[:limit], self.chunk_size, token_type)
            for ids_of_text in ids
        ]

    def _in_batches(
        self,
        texts: list[list[TokenChunk]],
        work: Callable[[list[int], Tensor, list[int], Tensor], None],
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> None:
        """Call `work` for batches of texts that have wordpieces: with their positions, and what
        `_contextual` gives.
        """
        some = [position for position, chunks in enumerate(texts) if chunks]
        lengths = [
            len(texts[position]) * len(texts[position][0].sequence.input_ids) for position in some
        ]
        batches = length_batches(lengths, usual_budget(token_budget, self.device))

        def work_on(batch: list[int]) -> None:
            positions = [some[i] for i in batch]
            work(positions, *self._contextual([texts[position] for position in positions]))

        in_batches(work_on, batches, on_progress)
        on_progress(len(texts) - len(some))

    def _contextual(self, texts: list[list[TokenChunk]]) -> tuple[Tensor, list[int], Tensor]:
        """Contextual vectors of all tokens, (total, h), how many each text has, and mean [CLS]
        vectors (n, h).
        """
        chunks = [chunk for chunks_of_text in texts for chunk in chunks_of_text]
        ids, types, mask, places = collate_chunks(chunks, self.tokenizer.pad, self.device)
        hidden = self.model(ids, types, mask)
        tokens = hidden.reshape(-1, hidden.shape[-1])[places]
        of_texts = torch.split(hidden[:, 0], [len(chunks_of_text) for chunks_of_text in texts])
        cls_vectors = torch.stack([part.mean(dim=0) for part in of_texts])
        return (
            tokens,
            [sum(chunk.n_pieces for chunk in chunks_of_text) for chunks_of_text in texts],
            cls_vectors,
        )


class EpicImpactQueryEncoder:
    """Encodes queries as {wordpiece: whole weight}, the form that Pyserini's LuceneImpactSearcher
    expects.

    Give that searcher `min_idf=-1`; otherwise it drops tokens that all passages have. `model` is a
    catalog name, a checkpoint folder, or an encoder.
    """

    def __init__(self, model: str | Path | EpicEncoder, device: str = 'cpu') -> None:
        self.encoder = model if isinstance(model, EpicEncoder) else EpicEncoder(model, device)

    def encode(self, query: str, **_: object) -> dict[str, int]:
        """{wordpiece: hundredths of its weight}; a weight that rounds to 0 is left out."""
        vector = self.encoder.encode_query(query)
        names = self.encoder.tokenizer.tokens(vector.terms.tolist())
        levels = {
            name: round(QUERY_UNIT * weight)
            for name, weight in zip(names, vector.weights.tolist(), strict=True)
        }
        return {name: level for name, level in levels.items() if level > 0}


def check_fits(index: EpicBundle, encoder: EpicEncoder) -> None:
    """Raises MismatchError if an index was made with another vocabulary, other weights or
    another variant.
    """
    settings = index.settings
    built = f'index {index.folder} was built with'
    model = f"encoder '{encoder.name}'"
    advice = f"pass the encoder it was built with ('{settings.encoder}')"
    if (settings.vocabulary, settings.vocabulary_sha256) != (
        encoder.vocabulary,
        encoder.vocabulary_sha256,
    ):
        sizes = f'({settings.vocabulary} terms) than {model} ({encoder.vocabulary} terms)'
        raise MismatchError(f'{built} another vocabulary {sizes}: {advice}')
    check_model(index.folder, settings, encoder.checkpoint)
    if settings.variant != encoder.variant:
        raise MismatchError(
            f"{built} variant '{settings.variant}', {model} has '{encoder.variant}': {advice}"
        )
