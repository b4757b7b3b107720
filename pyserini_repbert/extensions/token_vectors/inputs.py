"""The model inputs of queries and passages, and which of their tokens are scored.

ColBERT section 3.2: `[CLS] prompt text [SEP]`, where queries are filled up with [MASK] and the
vectors of punctuation in passages are left out. https://arxiv.org/abs/2004.12832
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.token_vectors.folder import MultiVectorModel
from pyserini_repbert.extensions.token_vectors.network import TokenBert
from pyserini_repbert.models.batching import collate
from pyserini_repbert.models.precision import on_device
from pyserini_repbert.models.tokenizer import ModelInputs, TokenSequence, WordPieceTokenizer
from pyserini_repbert.systems.sentence_transformers.folder import (
    Body,
    Unsupported,
    read_values_if_there,
)
from pyserini_repbert.systems.sentence_transformers.tokenizing import FolderTokenizer

# [CLS] and [SEP]
_SPECIALS = 2
# The masks of BERT, and of RoBERTa and XLM-R, where the folder names none.
_USUAL_MASKS = ('[MASK]', '<mask>')


@dataclass(frozen=True)
class Filling:
    """How short queries are filled up.

    Attributes
    ----------
    token : the id that they are filled up with
    length : of the shortest input, special tokens included
    is_attended : whether other tokens attend to those that were filled in
    """

    token: int
    length: int
    is_attended: bool


@dataclass(frozen=True)
class TokenBatch:
    """The arguments of `TokenBert.forward`."""

    input_ids: Tensor
    token_type_ids: Tensor
    attended: Tensor | None
    scored: Tensor
    computes_masked: bool


@dataclass(frozen=True)
class TextInputs:
    """The model inputs of texts.

    Attributes
    ----------
    inputs : with the tokens that were filled in
    n_attended : how many tokens of each others attend to, from its first on, int64 (n,); None: all
    n_cut : how many texts were longer than their limit
    """

    inputs: ModelInputs
    n_attended: NDArray[np.int64] | None
    n_cut: int


@dataclass(frozen=True)
class TextReader:
    """Makes the model inputs of queries, or of passages.

    Attributes
    ----------
    tokenizer : with their prompt
    limit : tokens kept of a text by default, special tokens and prompt included
    skipped : the ids of tokens that are not scored
    filling : of queries; None: they are not filled up
    """

    tokenizer: WordPieceTokenizer
    limit: int
    skipped: tuple[int, ...] = ()
    filling: Filling | None = None

    def read(self, texts: Sequence[str], limit: int) -> TextInputs:
        """The model inputs of texts, cut to `limit` tokens, special tokens included."""
        wordpieces = max(0, limit - _SPECIALS)
        ids = self.tokenizer.flat_ids(texts, wordpieces + 1)
        n_cut = int((ids.lengths > wordpieces).sum())
        inputs = self.tokenizer.single(ids, wordpieces, token_type=0)
        if self.filling is None:
            return TextInputs(inputs, None, n_cut)
        filled = _filled(inputs, self.filling)
        n_attended = None if self.filling.is_attended else inputs.lengths
        return TextInputs(filled, n_attended, n_cut)

    def batch(
        self, texts: TextInputs, positions: Sequence[int], device: torch.device
    ) -> TokenBatch:
        """Some of the inputs, padded to the longest.

        The attention masks are in the host's memory.
        """
        ids, types, mask = collate(texts.inputs, self.tokenizer.pad, device, positions)
        scored = torch.ones(ids.shape, dtype=torch.bool, device=device)
        if mask is not None:
            scored = on_device(mask, device)
        if self.skipped:
            scored = scored & ~torch.isin(ids, torch.tensor(self.skipped, device=device))
        if texts.n_attended is None:
            return TokenBatch(ids, types, mask, scored, computes_masked=False)
        n_attended = torch.from_numpy(texts.n_attended[positions])
        attended = torch.arange(ids.shape[1]) < n_attended[:, None]
        return TokenBatch(ids, types, attended, scored, computes_masked=True)


@dataclass(frozen=True)
class OpenedModel:
    """A model that this package's engine runs.

    Attributes
    ----------
    network : with its weights
    queries, passages : make its inputs
    max_length : the most tokens of an input
    """

    network: TokenBert
    queries: TextReader
    passages: TextReader
    max_length: int


def open_readers(model: MultiVectorModel, opened: FolderTokenizer) -> tuple[TextReader, TextReader]:
    """The readers of queries and of passages.

    Parameters
    ----------
    model : what its folder says
    opened : the tokenizer of its body

    Raises Unsupported for a token that the tokenizer lacks, InputError for queries that are filled
    up to more tokens than the model reads.
    """
    body = model.network.body
    tokenizer = opened.tokenizer
    skipped = []
    for word in model.skipped:
        number = tokenizer.backend.token_to_id(word)
        if number is not None:
            skipped.append(number)
    query_limit = model.query_length or opened.max_length
    filling = None
    if model.expansion is not None:
        length = model.expansion.length
        if length > body.config.longest_input:
            raise InputError(
                f"'{body.checkpoint.name}' fills queries up to {length} tokens, its model reads "
                f'{body.config.longest_input}: correct the length of its query_expansion'
            )
        if model.expansion.is_longest:
            query_limit = length
        query_limit = max(query_limit, length)
        token = _expansion_token(tokenizer, body, model.expansion.token)
        filling = Filling(token, length, model.expansion.is_attended)
    queries = TextReader(
        _with_prompt(tokenizer, model.query_prompt),
        min(query_limit, body.config.longest_input),
        tuple(skipped) if model.skips_in_queries else (),
        filling,
    )
    passages = TextReader(
        _with_prompt(tokenizer, model.passage_prompt),
        min(model.passage_length or opened.max_length, body.config.longest_input),
        tuple(skipped) if model.skips_in_passages else (),
    )
    return queries, passages


def _filled(inputs: ModelInputs, filling: Filling) -> ModelInputs:
    """Inputs, the short ones padded."""
    sequences = []
    for start, length in zip(inputs.starts.tolist(), inputs.lengths.tolist(), strict=True):
        ids = inputs.input_ids[start : start + length].tolist()
        ids += [filling.token] * (filling.length - length)
        sequences.append(TokenSequence(ids, [0] * len(ids)))
    return ModelInputs.of(sequences)


def _with_prompt(tokenizer: WordPieceTokenizer, prompt: str) -> WordPieceTokenizer:
    """The tokenizer, with a prompt before each text."""
    prompted = copy(tokenizer)
    prompted.prompt = prompt
    return prompted


def _expansion_token(tokenizer: WordPieceTokenizer, body: Body, name: str | None) -> int:
    """The id of the token that fills queries up; None: the tokenizer's mask."""
    names = [name]
    if name is None:
        settings = read_values_if_there(body.checkpoint.folder / 'tokenizer_config.json')
        named = settings.get('mask_token')
        if isinstance(named, dict):
            named = named.get('content')
        names = [named, *_USUAL_MASKS]
    for token in names:
        number = None if token is None else tokenizer.backend.token_to_id(token)
        if number is not None:
            return int(number)
    raise Unsupported(f'its tokenizer has no token {name or "that is a mask"}')
