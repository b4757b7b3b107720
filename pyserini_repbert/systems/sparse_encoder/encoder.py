"""The encoder of a `SparseEncoder` folder, run by sentence-transformers.

Text becomes term weights, as from `encode_query` and `encode_document`. SPLADE: Formal, Piwowarski
and Clinchant, https://arxiv.org/abs/2107.05720. Inference-free models look the weights of a query's
terms up: Geng et al., https://arxiv.org/abs/2411.04403
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.values import has_surrogates, read_object
from pyserini_repbert.encode.term_weights import PassageTokens, QueryTokens, TermWeightsEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.models.term_vectors import NO_TERMS, TermVector, TermVectors, largest
from pyserini_repbert.models.token_ids import Progress
from pyserini_repbert.systems.sentence_transformers.loading import (
    BATCH,
    folder_digest,
    open_model,
)
from pyserini_repbert.systems.sentence_transformers.recognising import SETTINGS
from pyserini_repbert.systems.sparse_encoder.folder import sparse_folder

# Passages sorted by length and encoded together.
_WINDOW = 1024
# The most tokens of a text if the model sets no limit.
NO_LIMIT = 10**6
_SIMILARITIES = (None, 'dot', 'cosine')
# Modules whose dimensions are the tokens of a tokenizer.
_MODULES_OF_TOKENS = ('SpladePooling', 'SparseStaticEmbedding')


class SparseTextEncoder(TermWeightsEncoder):
    """A `SparseEncoder` that encodes queries and passages, with the folder's prompts.

    Where the folder names cosine as its similarity, vectors are scaled to length 1, so that inner
    products are its scores. The folder's own limit of weights (`max_active_dims`) holds.

    Parameters
    ----------
    encoder_dir : a folder of a `SparseEncoder`, or a repository in the hub's cache
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : of the model: vectors are always float32
    max_length : tokens kept of a passage and its prompt, special tokens included; default: as the
        folder says
    query_length : tokens kept of a query, with the same default; a model that only looks up a
        query's weights keeps as many as its folder says

    Attributes
    ----------
    limit : tokens kept of a passage
    vocabulary : the number of terms |V|

    Raises InputError for another folder, a similarity other than dot and cosine, and a length out
    of range.
    """

    variant = 'sparse_encoder'
    expands_queries = True
    stores_all_terms = False
    usual_prune = 0
    storage_types = ('float32', 'float16', 'uint8')

    def __init__(
        self,
        encoder_dir: str | Path,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        query_length: int | None = None,
    ) -> None:
        chosen = Precision(precision)
        self.name = str(encoder_dir)
        self._folder = sparse_folder(encoder_dir)
        self.device = usable_device(device)
        self.precision = chosen.on(self.device)
        self._is_normalised = _has_cosine(self._folder)
        self._model = open_model('SparseEncoder', self._folder, device, self.precision)
        self._longest = int(min(self._model.max_seq_length or math.inf, NO_LIMIT))
        self.limit = self._checked(max_length)
        self.query_limit = self._checked(query_length)
        self.vocabulary = len(self._model.encode_document('', show_progress_bar=False))
        query_width = len(self._model.encode_query('', show_progress_bar=False))
        if query_width != self.vocabulary:
            raise InputError(
                f"'{self.name}' gives queries {query_width} dimensions and passages "
                f'{self.vocabulary}: the same number was expected'
            )

    def _checked(self, length: int | None) -> int:
        if length is None:
            return self._longest
        if not 1 <= length <= self._longest:
            raise InputError(
                f'maximum length {length} was given, expected 1 to {self._longest} tokens'
            )
        return length

    @cached_property
    def weights_sha256(self) -> str:
        """Checksum over the files of the folder."""
        return folder_digest(self._folder)

    @cached_property
    def _names(self) -> list[str]:
        """The name of each term: its token, or '[ID]' for a dimension without one."""
        kinds = {type(module).__name__ for module in self._model.modules()}
        tokens: list[str | None] = [None] * self.vocabulary
        if kinds.intersection(_MODULES_OF_TOKENS):
            ids_by_token = self._model.tokenizer.get_vocab()
            for token, number in ids_by_token.items():
                if number < self.vocabulary:
                    tokens[number] = token
        return [f'[{number}]' if token is None else token for number, token in enumerate(tokens)]

    def term_names(self, terms: Sequence[int]) -> list[str]:
        """The names of terms, by their ids."""
        return [self._names[term] for term in terms]

    def encode_queries(
        self, queries: Sequence[str], token_budget: int | None = None
    ) -> list[TermVector]:
        """The vectors of many queries, in their order; `token_budget` is not used."""
        return self._encode(self._model.encode_query, queries, 0, self.query_limit, int)

    def encode_pruned(
        self,
        passages: Sequence[str],
        r: int = 0,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> TermVectors:
        """Passage vectors with the r largest weights, 0 for all that are not zero.

        `on_progress` is called with the number of passages done since the last call. `token_budget`
        is not used: sentence-transformers makes its own batches.
        """
        encode = self._model.encode_document
        return TermVectors.of(self._encode(encode, passages, r, self.limit, on_progress))

    def query_tokens(self, query: str) -> QueryTokens:
        vector = self.encode_query(query)
        ids = self._own_terms(query)
        return QueryTokens(ids, vector.weights_of(np.array(ids, dtype=np.int64)), vector)

    def passage_tokens(self, passage: str) -> PassageTokens:
        return PassageTokens(self._own_terms(passage))

    def window(self, prune: int) -> int:
        """How many passages are sorted by length and encoded together, for an index."""
        return _WINDOW

    def _own_terms(self, text: str) -> list[int]:
        """The terms of a text's own tokens in order, without special tokens; [] without any.

        At most `limit` tokens are taken, of a query too.
        """
        tokens = self._model.tokenizer(
            text, add_special_tokens=False, truncation=True, max_length=self.limit
        )
        return list(map(int, tokens['input_ids']))

    def _encode(
        self, encode: Any, texts: Sequence[str], r: int, limit: int, on_progress: Progress
    ) -> list[TermVector]:
        """The vectors of texts, pruned to r weights, by a method of the model."""
        for text in texts:
            if not isinstance(text, str) or has_surrogates(text):
                raise InputError(
                    f'{ascii(text)[:60]} is not text that UTF-8 can hold: fix or remove it'
                )
        if self._longest < NO_LIMIT:
            self._model.max_seq_length = limit
        vectors = [NO_TERMS] * len(texts)
        # Texts of similar length are padded least.
        order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            dense = self._dense(encode, [texts[number] for number in batch])
            for number, weights in zip(batch, dense, strict=True):
                vectors[number] = largest(weights, r)
            on_progress(len(batch))
        return vectors

    def _dense(self, encode: Any, texts: list[str]) -> NDArray[np.float32]:
        """The vectors of a batch, float32 (n, |V|)."""
        encoded = encode(
            texts,
            batch_size=BATCH,
            convert_to_sparse_tensor=False,
            save_to_cpu=True,
            show_progress_bar=False,
        )
        vectors: NDArray[np.float32] = encoded.float().numpy()
        if self._is_normalised:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = vectors / np.maximum(lengths, 1e-12)
        return vectors


def _has_cosine(folder: Path) -> bool:
    """Whether a folder's similarity is the cosine.

    Raises InputError for one that is neither the cosine nor the inner product.
    """
    settings = folder / SETTINGS
    similarity = None
    if settings.is_file():
        similarity = read_object(settings).get('similarity_fn_name')
    if similarity not in _SIMILARITIES:
        raise InputError(
            f"{settings}: similarity '{similarity}' was given, cosine or dot was expected"
        )
    return similarity == 'cosine'
