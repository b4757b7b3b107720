"""How the encoder of a `SparseEncoder` folder fills a bundle of term weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import Encoding
from pyserini_repbert.errors import InputError
from pyserini_repbert.index.epic_writer import EpicShardWriter
from pyserini_repbert.index.records import MODEL_DIGESTS, EpicSettings
from pyserini_repbert.index.shard_writer import SHARD_SIZE
from pyserini_repbert.models.term_vectors import TermVectors

if TYPE_CHECKING:
    from pyserini_repbert.systems.sparse_encoder.encoder import SparseTextEncoder

WEIGHTS = ('float32', 'float16', 'uint8')
# Passages sorted by length and encoded together.
_WINDOW = 1024


def sparse_encoding(
    encoder: SparseTextEncoder,
    *,
    prune: int = 0,
    weights: str = 'float32',
    store_text: bool = False,
    shard_size: int = SHARD_SIZE,
    token_budget: int | None = None,
    on_progress: Callable[[int], object] = int,
) -> Encoding[EpicSettings]:
    """How an encoder fills a bundle.

    Parameters
    ----------
    encoder : of passages
    prune : how many of a passage's largest weights are stored, 0 for all that are not zero
    weights : the type of stored weights, 'float32', 'float16' or 'uint8'
    store_text : store the passages, for showing and reranking them
    shard_size : passages in a shard
    token_budget : not used: sentence-transformers makes batches of its own
    on_progress : called with the number of passages done since the last call

    Raises InputError for a `prune` below 0, or another type.
    """
    if prune < 0 or weights not in WEIGHTS:
        raise InputError(
            f"prune {prune} with weights '{weights}': expected 0 or more, and one of "
            f'{", ".join(WEIGHTS)}'
        )
    settings = EpicSettings(
        encoder=encoder.name,
        **{digest: getattr(encoder, digest) for digest in MODEL_DIGESTS},
        variant=encoder.variant,
        vocabulary=encoder.vocabulary,
        vocabulary_sha256=encoder.vocabulary_sha256,
        max_length=encoder.limit,
        prune=prune,
        weights=weights,
        precision=str(encoder.precision),
        shard_size=shard_size,
        texts=store_text,
        layout='blocks',
    )

    def encode(passages: Sequence[Passage]) -> TermVectors:
        return encoder.encode_pruned([passage.text for passage in passages], prune, on_progress)

    return Encoding(settings, EpicShardWriter, encode, _WINDOW, on_progress=on_progress)
