"""What an encoder of term weights is, and how it fills an index: EPIC, SPLADE, models like
them.

To add such a model, subclass `TermWeightsEncoder`. Search, reranking and explanations work for all
subclasses.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import BundleEncoding
from pyserini_repbert.encode.text_encoder import check_model
from pyserini_repbert.errors import InputError, MismatchError
from pyserini_repbert.index.records import MODEL_DIGESTS, TermWeightsSettings
from pyserini_repbert.index.shard_writer import SHARD_SIZE
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.index.term_weights_writer import TermWeightsShardWriter
from pyserini_repbert.models.precision import Precision
from pyserini_repbert.models.term_vectors import TermVector, TermVectors
from pyserini_repbert.models.token_ids import Progress

# About as many weights are in memory at a time.
_WINDOW_WEIGHTS = 1 << 22


@dataclass(frozen=True, eq=False, slots=True)
class QueryTokens:
    """What a model says of a query.

    Attributes
    ----------
    ids : the terms of its tokens, in order
    weights : of each of these tokens, float32 (n,)
    vector : its term weights, by which it scores passages
    """

    ids: list[int]
    weights: NDArray[np.float32]
    vector: TermVector


@dataclass(frozen=True, eq=False, slots=True)
class PassageTokens:
    """What a model says of a passage's text.

    Attributes
    ----------
    ids : the terms of its tokens, in order
    quality : 0 to 1 (EPIC eq. 3); None for a model that does not say it
    """

    ids: list[int]
    quality: float | None = None


class TermWeightsEncoder(ABC):
    """Queries and passages to sparse vectors over a vocabulary.

    A subclass owns the model. `TermWeightsReranker` opens it with (name, device, precision,
    max_length).

    Attributes
    ----------
    name : the checkpoint's catalog name or folder
    variant : what an index of its passages has as `TermWeightsSettings.variant`
    vocabulary : the number of terms |V|
    limit : tokens kept of a passage
    precision : that the model runs in: vectors are always float32
    tokenizer : makes the token ids of passages; absent where another package makes them
    expands_queries : whether a query's vector has terms that its text lacks
    stores_all_terms : whether an index that is not pruned has all |V| weights of a passage, zeros
        included
    usual_prune : how many of a passage's largest weights an index keeps by default, 0 for all
    storage_types : the types of stored weights, the default first
    """

    name: str
    variant: str
    vocabulary: int
    limit: int
    precision: Precision
    expands_queries: bool
    stores_all_terms: bool
    usual_prune: int
    storage_types: tuple[str, ...]

    @property
    @abstractmethod
    def weights_sha256(self) -> str:
        """Checksum of the model's weights, or of all its files."""

    @property
    def config_sha256(self) -> str | None:
        """Checksum of the model's configuration; None: not known."""
        return None

    @property
    def tokenizer_sha256(self) -> str | None:
        """Checksum of the tokenizer's files; None: not known."""
        return None

    @cached_property
    def vocabulary_sha256(self) -> str:
        """Checksum of the terms' names, in the order of their ids."""
        names = self.term_names(range(self.vocabulary))
        return hashlib.sha256('\n'.join(names).encode()).hexdigest()

    @abstractmethod
    def term_names(self, terms: Sequence[int]) -> list[str]:
        """The names of terms, by their ids."""

    def encode_query(self, query: str) -> TermVector:
        """One query's vector."""
        return self.encode_queries([query])[0]

    @abstractmethod
    def encode_queries(
        self, queries: Sequence[str], token_budget: int | None = None
    ) -> list[TermVector]:
        """The vectors of many queries, in their order.

        `token_budget` is the number of padded tokens in a batch; default: by device.
        """

    @abstractmethod
    def encode_pruned(
        self,
        passages: Any,
        r: int = 0,
        token_budget: int | None = None,
        on_progress: Progress = int,
    ) -> TermVectors:
        """Passage vectors pruned to the r largest weights (EPIC section 3, 'pruning').

        Parameters
        ----------
        passages : texts; token ids, too, if the encoder has a tokenizer
        r : how many weights are kept of each; 0 for all that are not zero
        token_budget : padded tokens in a batch; default: by device
        on_progress : called with the number of passages done since the last call
        """

    def encode_unpruned(
        self, passages: Any, token_budget: int | None = None, on_progress: Progress = int
    ) -> TermVectors:
        """Passage vectors as an index that is not pruned stores them."""
        return self.encode_pruned(passages, 0, token_budget, on_progress)

    @abstractmethod
    def query_tokens(self, query: str) -> QueryTokens:
        """A query's own tokens and its vector, for explaining a score."""

    @abstractmethod
    def passage_tokens(self, passage: str) -> PassageTokens:
        """A passage's own tokens, for explaining a score."""

    def window(self, prune: int) -> int:
        """How many passages are sorted by length and encoded together, for an index."""
        return window_size(prune or self.vocabulary)

    def encoding(
        self,
        *,
        prune: int | None = None,
        weights: str | None = None,
        store_text: bool = False,
        shard_size: int = SHARD_SIZE,
        token_budget: int | None = None,
        on_progress: Callable[[int], object] = int,
    ) -> BundleEncoding[TermWeightsSettings]:
        """How it fills an index.

        Parameters
        ----------
        prune : how many of a passage's largest weights are stored, 0 for all; None: as usual for
            the model (EPIC section 3)
        weights : the type of stored weights, one of `storage_types`; None: the first
        store_text : store the passages, for showing and reranking them
        shard_size : passages in a shard
        token_budget : padded tokens in a batch; default: by device
        on_progress : called with the number of passages done since the last call

        Raises InputError for a `prune` below 0, or another type.
        """
        r = self.usual_prune if prune is None else prune
        stored_type = self.storage_types[0] if weights is None else weights
        if r < 0 or stored_type not in self.storage_types:
            raise InputError(
                f"prune {r} with weights '{stored_type}': expected 0 or more, and one of "
                f'{", ".join(self.storage_types)}'
            )
        settings = TermWeightsSettings(
            encoder=self.name,
            **{digest: getattr(self, digest) for digest in MODEL_DIGESTS},
            variant=str(self.variant),
            vocabulary=self.vocabulary,
            vocabulary_sha256=self.vocabulary_sha256,
            max_length=self.limit,
            prune=r,
            weights=stored_type,
            precision=str(self.precision),
            shard_size=shard_size,
            texts=store_text,
            layout='all' if self.stores_all_terms and not r else 'blocks',
        )

        def encode(passages: Sequence[Passage], ids: Any = None) -> TermVectors:
            texts = ids or [passage.text for passage in passages]
            if r:
                return self.encode_pruned(texts, r, token_budget, on_progress)
            return self.encode_unpruned(texts, token_budget, on_progress)

        return BundleEncoding(
            settings,
            TermWeightsShardWriter,
            encode,
            self.window(r),
            getattr(self, 'tokenizer', None),
            on_progress,
        )


def window_size(weights_each: int) -> int:
    """How many passages of so many weights each are in memory together."""
    return max(64, min(4096, _WINDOW_WEIGHTS // weights_each))


def check_fits(index: TermWeightsBundle, encoder: TermWeightsEncoder) -> None:
    """Raise MismatchError if an index was built with another encoder.

    Its vocabulary, weights and variant are compared.
    """
    settings = index.settings
    built = f'index {index.folder} was built with'
    model = f"encoder '{encoder.name}'"
    advice = f"pass the encoder it was built with ('{settings.encoder}')"
    vocabulary = (encoder.vocabulary, encoder.vocabulary_sha256)
    if (settings.vocabulary, settings.vocabulary_sha256) != vocabulary:
        sizes = f'({settings.vocabulary} terms) than {model} ({encoder.vocabulary} terms)'
        raise MismatchError(f'{built} another vocabulary {sizes}: {advice}')
    check_model(index.folder, settings, encoder)
    if settings.variant != encoder.variant:
        raise MismatchError(
            f"{built} variant '{settings.variant}', {model} has '{encoder.variant}': {advice}"
        )
