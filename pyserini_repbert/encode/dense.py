"""How a document encoder fills a dense bundle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import BundleEncoding
from pyserini_repbert.encode.text_encoder import TextDocumentEncoder
from pyserini_repbert.index.dense import DenseShardWriter
from pyserini_repbert.index.records import MODEL_DIGESTS, DenseSettings, check_vector_dtype
from pyserini_repbert.index.shard_writer import SHARD_SIZE
from pyserini_repbert.models.token_ids import TokenIds

WINDOW = 4096  # passages tokenised and sorted by length together


def dense_encoding(
    encoder: TextDocumentEncoder,
    *,
    dtype: str = 'float32',
    store_text: bool = False,
    shard_size: int = SHARD_SIZE,
    token_budget: int | None = None,
    on_progress: Callable[[int], object] = int,
) -> BundleEncoding[DenseSettings]:
    """How an encoder fills a dense bundle: with vectors in `dtype`, one of `VECTOR_DTYPES`.

    With `store_text`, the passages are stored, for showing and reranking them. A shard has
    `shard_size` passages, a batch at most `token_budget` padded tokens (default: by device).
    `on_progress` is called with the number of passages done since the last call.
    """
    check_vector_dtype(dtype)
    settings = DenseSettings(
        encoder=encoder.name,
        **{digest: getattr(encoder, digest) for digest in MODEL_DIGESTS},
        pooling=encoder.pooling,
        max_length=encoder.limit,
        dimension=encoder.dimension,
        dtype=dtype,
        precision=str(encoder.precision),
        shard_size=shard_size,
        texts=store_text,
    )

    is_truncated = getattr(encoder, 'is_truncated', False)
    embed = encoder.embed_whole if is_truncated else encoder.embed
    shorten = encoder.shorten if is_truncated else None

    def encode(passages: Sequence[Passage], ids: TokenIds | None = None) -> NDArray[np.float32]:
        texts: Any = ids or [passage.text for passage in passages]
        return embed(texts, token_budget=token_budget, on_progress=on_progress)

    return BundleEncoding(
        settings,
        partial(DenseShardWriter, shorten=shorten),
        encode,
        WINDOW,
        getattr(encoder, 'tokenizer', None),
        on_progress,
    )
