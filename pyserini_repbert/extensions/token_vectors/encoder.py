"""The encoder of a `MultiVectorEncoder` folder: a vector for each token of a text.

This package's engine runs BERT, RoBERTa and XLM-R; sentence-transformers runs all other models.
"""

from __future__ import annotations

import hashlib
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyserini_repbert.data.values import has_surrogates
from pyserini_repbert.errors import InputError
from pyserini_repbert.extensions.token_vectors.folder import (
    NAME,
    has_mean_similarity,
    is_multi_vector_folder,
    is_trained,
    read_multi_vector,
)
from pyserini_repbert.extensions.token_vectors.inputs import OpenedModel, open_readers
from pyserini_repbert.extensions.token_vectors.network import TokenBert
from pyserini_repbert.extensions.token_vectors.trained import open_trained
from pyserini_repbert.models.batching import in_batches, length_batches, usual_budget
from pyserini_repbert.models.checkpoints.checkpoint import (
    AnyCheckpoint,
    Checkpoint,
    checkpoint_name,
    folder_of,
    open_checkpoint,
    verify,
)
from pyserini_repbert.models.checkpoints.loading import load_model
from pyserini_repbert.models.precision import Precision, usable_device
from pyserini_repbert.record import OWN_ENGINE
from pyserini_repbert.rerank.cross_encoder import checked_length
from pyserini_repbert.systems.sentence_transformers.engine import bi_encoder_tensors
from pyserini_repbert.systems.sentence_transformers.folder import Unsupported
from pyserini_repbert.systems.sentence_transformers.loading import (
    BATCH,
    ENGINE,
    folder_digest,
    open_model,
)
from pyserini_repbert.systems.sentence_transformers.tokenizing import open_tokenizer

# The most tokens of a text if the model sets no limit.
NO_LIMIT = 10**6
Side = Literal['query', 'document']

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TokenVectors:
    """The vectors of the scored tokens of n texts, text after text.

    Attributes
    ----------
    vectors : float32 (tokens, d), on the device that computes
    lengths : how many each text has, int64 (n,)
    positions : the place of each token in its model input, from 0, int64 (tokens,)
    ids : of the tokens, int64 (tokens,); None: vectors of several tokens were joined
    """

    vectors: Tensor
    lengths: NDArray[np.int64]
    positions: NDArray[np.int64]
    ids: NDArray[np.int64] | None

    def select(self, rows: Sequence[int]) -> TokenVectors:
        """The vectors of some texts, in the order of `rows`."""
        if list(rows) == list(range(len(self.lengths))):
            return self
        ends = np.cumsum(self.lengths)
        spans = [np.arange(ends[row] - self.lengths[row], ends[row]) for row in rows]
        chosen = np.concatenate(spans)
        return TokenVectors(
            self.vectors[torch.from_numpy(chosen).to(self.vectors.device)],
            self.lengths[list(rows)],
            self.positions[chosen],
            None if self.ids is None else self.ids[chosen],
        )


# Called with the positions of texts among those given, and their vectors.
Use = Callable[[Sequence[int], TokenVectors], object]


@dataclass(frozen=True)
class EncodingWork:
    """What encoding took: tokens without padding, and how many texts were cut; None: unknown."""

    tokens: int | None
    truncated: int | None


class _Engine(ABC):
    """What runs a model.

    Attributes
    ----------
    name : as records have it
    max_length : the most tokens of an input, special tokens and prompt included
    passage_length : tokens kept of a passage by default
    """

    name: str
    max_length: int
    passage_length: int

    @abstractmethod
    def encode(self, texts: Sequence[str], side: Side, limit: int | None, use: Use) -> EncodingWork:
        """Hand the vectors of texts over, batch by batch.

        Parameters
        ----------
        texts : queries or passages
        side : which of these
        limit : tokens kept of each, special tokens and prompt included; None: as the folder says
        use : gets each batch, in any order; each text is in one
        """

    @abstractmethod
    def token_names(self, ids: Sequence[int]) -> list[str]:
        """The names of tokens."""


class _OwnEngine(_Engine):
    """This package's network.

    Parameters
    ----------
    model : with its weights
    device, precision : where the network runs, and in which precision
    token_budget : padded tokens in a batch; default: by device
    """

    name = OWN_ENGINE

    def __init__(
        self,
        model: OpenedModel,
        *,
        device: torch.device,
        precision: Precision,
        token_budget: int | None,
    ) -> None:
        self._readers = {'query': model.queries, 'document': model.passages}
        self.max_length = model.max_length
        self.passage_length = model.passages.limit
        self._network = model.network.to_device(device, precision.dtype(device))
        self._device = device
        self._token_budget = usual_budget(token_budget, device)

    def encode(self, texts: Sequence[str], side: Side, limit: int | None, use: Use) -> EncodingWork:
        reader = self._readers[side]
        read = reader.read(texts, limit or reader.limit)

        def encode_batch(positions: list[int]) -> None:
            batch = reader.batch(read, positions, self._device)
            vectors = self._network(
                batch.input_ids,
                batch.token_type_ids,
                batch.attended,
                batch.scored,
                batch.computes_masked,
            )
            scored = batch.scored.cpu()
            columns = scored.nonzero()[:, 1].numpy()
            ids = batch.input_ids.cpu()[scored].numpy()
            lengths = scored.sum(dim=1).numpy()
            use(positions, TokenVectors(vectors, lengths, columns, ids))

        lengths = read.inputs.lengths.tolist()
        in_batches(encode_batch, length_batches(lengths, self._token_budget, self._device))
        return EncodingWork(sum(lengths), read.n_cut)

    def token_names(self, ids: Sequence[int]) -> list[str]:
        return self._readers['query'].tokenizer.tokens(ids)


def _open_folder(folder: Path, name: str) -> OpenedModel:
    """The model in a folder of sentence-transformers.

    Raises Unsupported for a model that this package's engine does not know.
    """
    model = read_multi_vector(folder, name)
    body = model.network.body
    queries, passages = open_readers(model, open_tokenizer(body))
    layers = [None if layer is None else layer.sizes for layer in model.network.layers]
    network = load_model(
        partial(TokenBert, body.config, layers),
        body.checkpoint,
        tensors=bi_encoder_tensors(model.network),
    )
    return OpenedModel(network, queries, passages, body.config.longest_input)


class _TheirEngine(_Engine):
    """sentence-transformers.

    Parameters
    ----------
    folder : of the model
    device, precision : where it runs, and in which precision
    """

    name = ENGINE

    def __init__(self, folder: Path, device: str, precision: Precision) -> None:
        self._model = open_model('MultiVectorEncoder', folder, device, precision)
        self.max_length = int(min(self._model.max_seq_length or math.inf, NO_LIMIT))
        # The modules that cut texts.
        self._cutting = [own for own in self._model.modules() if hasattr(own, 'document_length')]
        self._lengths = [own.document_length for own in self._cutting]
        self.passage_length = min([self.max_length, *filter(None, self._lengths)])

    def encode(self, texts: Sequence[str], side: Side, limit: int | None, use: Use) -> EncodingWork:
        for text in texts:
            if not isinstance(text, str) or has_surrogates(text):
                raise InputError(
                    f'{ascii(text)[:60]} is not text that UTF-8 can hold: fix or remove it'
                )
        if limit is not None:
            for module in self._cutting:
                module.document_length = limit
        encode = self._model.encode_query if side == 'query' else self._model.encode_document
        # Texts of similar length are padded least.
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        for start in range(0, len(order), BATCH):
            positions = order[start : start + BATCH]
            encoded = encode(
                [texts[position] for position in positions],
                batch_size=BATCH,
                output_value=None,
                show_progress_bar=False,
            )
            use(positions, _token_vectors(encoded))
        return EncodingWork(None, None)

    def token_names(self, ids: Sequence[int]) -> list[str]:
        names = self._model.tokenizer.convert_ids_to_tokens(list(ids))
        return list(map(str, names))


def _token_vectors(encoded: Sequence[dict[str, Any]]) -> TokenVectors:
    """The vectors in the outputs of sentence-transformers for a batch of texts."""
    vectors = []
    positions = []
    ids: list[NDArray[np.int64]] = []
    for features in encoded:
        scored = features['attention_mask'].bool()
        vectors.append(features['token_embeddings'][scored].float())
        scored = scored.cpu()
        positions.append(scored.nonzero()[:, 0].numpy())
        read = features.get('input_ids')
        # Where vectors of several tokens are joined, there are fewer than tokens.
        if read is not None and read.shape == scored.shape:
            ids.append(read.cpu()[scored].numpy())
    return TokenVectors(
        torch.cat(vectors),
        np.array(list(map(len, vectors)), np.int64),
        np.concatenate(positions),
        np.concatenate(ids) if len(ids) == len(encoded) else None,
    )


class MultiVectorTextEncoder:
    """A `MultiVectorEncoder` that encodes queries and passages, with the folder's prompts.

    Parameters
    ----------
    encoder_dir : a folder of a `MultiVectorEncoder`, a repository in the hub's cache, or a
        checkpoint that `train` made: a catalog name, a folder, or opened
    device : 'cpu', 'cuda', 'cuda:N', 'mps'
    precision : of the model: vectors are always float32
    max_length : tokens kept of a passage and its prompt, special tokens included; default: as the
        folder says
    token_budget : padded tokens in a batch of this package's engine; default: by device

    Attributes
    ----------
    checkpoint : that `train` made; None for a folder of others
    engine : what runs the model, as records have it
    limit : tokens kept of a passage
    is_mean : whether a score is the mean over the query's tokens, rather than the sum

    Raises InputError for another folder, and a length out of range.
    """

    def __init__(
        self,
        encoder_dir: AnyCheckpoint,
        device: str = 'cpu',
        precision: Precision | str = Precision.FLOAT32,
        max_length: int | None = None,
        token_budget: int | None = None,
    ) -> None:
        chosen = Precision(precision)
        self.name = checkpoint_name(encoder_dir)
        self.device = usable_device(device)
        self.precision = chosen.on(self.device)
        self.checkpoint: Checkpoint | None = None
        self.is_mean = False
        if is_multi_vector_folder(encoder_dir):
            self._folder = folder_of(str(encoder_dir))
            verify(self._folder)
            self.is_mean = has_mean_similarity(self._folder)
            self._engine = self._open_engine(device, token_budget)
        elif is_trained(encoder_dir):
            self.checkpoint = open_checkpoint(encoder_dir, 'rerankers')
            self._engine = self._own_engine(open_trained(self.checkpoint), token_budget)
        else:
            raise InputError(
                f"'{self.name}' is not a MultiVectorEncoder of sentence-transformers: give a "
                'folder of ColBERT or of a model like it, or a checkpoint that `train` made for '
                f'{NAME}'
            )
        self.engine = self._engine.name
        self._given_limit = max_length
        self.limit = self._engine.passage_length
        if max_length is not None:
            self.limit = checked_length(self.name, max_length, self._engine.max_length)

    def _open_engine(self, device: str, token_budget: int | None) -> _Engine:
        """This package's engine if it supports the model, otherwise sentence-transformers."""
        try:
            model = _open_folder(self._folder, self.name)
        except Unsupported as reason:
            _logger.info("'%s' is run by %s: %s", self.name, ENGINE, reason)
            return _TheirEngine(self._folder, device, self.precision)
        return self._own_engine(model, token_budget)

    def _own_engine(self, model: OpenedModel, token_budget: int | None) -> _Engine:
        return _OwnEngine(
            model, device=self.device, precision=self.precision, token_budget=token_budget
        )

    @cached_property
    def weights_sha256(self) -> str:
        """Checksum over the files of the folder; of a trained checkpoint, over what decides."""
        if self.checkpoint is None:
            return folder_digest(self._folder)
        parts = [
            self.checkpoint.weights_sha256,
            self.checkpoint.tokenizer_sha256,
            self.checkpoint.config_sha256,
        ]
        return hashlib.sha256('\n'.join(parts).encode()).hexdigest()

    @cached_property
    def dimension(self) -> int:
        """The length of a token's vector."""
        (query,) = self.encode_queries(['?'])
        return int(query.vectors.shape[1])

    def encode_queries(self, queries: Sequence[str]) -> list[TokenVectors]:
        """The vectors of each query, in their order."""
        encoded: dict[int, TokenVectors] = {}

        def keep(positions: Sequence[int], vectors: TokenVectors) -> None:
            for row, position in enumerate(positions):
                encoded[position] = vectors.select([row])

        self._engine.encode(queries, 'query', None, keep)
        return [encoded[position] for position in range(len(queries))]

    def encode_passages(self, passages: Sequence[str], use: Use) -> EncodingWork:
        """Hand the vectors of passages over, batch by batch: no more than a batch is in memory.

        `use` gets the positions of the passages in a batch, and their vectors.
        """
        return self._engine.encode(passages, 'document', self._given_limit, use)

    def token_names(self, ids: Sequence[int]) -> list[str]:
        """The names of tokens."""
        return self._engine.token_names(ids)
