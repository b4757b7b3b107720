"""What an encoder of weights of terms is: EPIC, SPLADE, and models like them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyserini_repbert.encode.sharding import Encoding
from pyserini_repbert.encode.text_encoder import check_model
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.index.records import EpicSettings
from pyserini_repbert.models.term_vectors import TermVector


class ImpactEncoder(Protocol):
    """Queries to sparse vectors over a vocabulary.

    Its attributes `weights_sha256`, `config_sha256` and `tokenizer_sha256` are the checksums of its
    model. One that is None is not known.
    """

    @property
    def name(self) -> str:
        """The checkpoint's catalog name or folder."""

    @property
    def variant(self) -> str:
        """What an index of its passages has as `EpicSettings.variant`."""

    @property
    def vocabulary(self) -> int:
        """The number of terms |V|."""

    @property
    def vocabulary_sha256(self) -> str:
        """Checksum of the terms' names, in the order of their ids."""

    def encode_query(self, query: str) -> TermVector:
        """One query's vector."""

    def encode_queries(self, queries: Sequence[str]) -> list[TermVector]:
        """The vectors of many queries, in their order."""

    def term_names(self, terms: Sequence[int]) -> list[str]:
        """The names of terms, by their ids."""


class ImpactPassageEncoder(ImpactEncoder, Protocol):
    """An `ImpactEncoder` that weighs the terms of passages, too."""

    def encoding(self, **storage: Any) -> Encoding[EpicSettings]:
        """How it fills a bundle; `storage` says how weights are pruned and stored."""


def check_fits(index: EpicBundle, encoder: ImpactEncoder) -> None:
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
