"""Encoding a corpus into a dense bundle: streamed, sharded, resumable to the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import Encoding, build_bundle
from pyserini_repbert.encode.text_encoder import TextDocumentEncoder
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.dense import DenseShardWriter
from pyserini_repbert.index.records import Manifest, Settings
from pyserini_repbert.index.shard_writer import SHARD_SIZE
from pyserini_repbert.models.token_ids import TokenIds

WINDOW = 4096  # passages tokenised and sorted by length together


def encode_corpus(
    corpus: Iterable[Passage],
    encoder: TextDocumentEncoder,
    output: StrPath,
    *,
    resume: bool = False,
    overwrite: bool = False,
    on_progress: Callable[[int], object] | None = None,
    **storage: Any,
) -> Manifest[Settings]:
    """Encode a corpus into the index folder `output`.

    A shard appears only when whole; a killed run, called again with `resume`, goes on after the last whole shard and
    ends with the bytes of a run that was not killed. To share the work, encode each part of the corpus (`Corpus.part`)
    into its `part_folder` of `output`, and put them together with `finish_parts`.

    Parameters
    ----------
    resume : go on with an encoding that was begun in `output`
    overwrite : replace the index that is in `output`, once the new one is whole
    on_progress : called with the number of passages done since the last call
    storage : keyword arguments of `dense_encoding`: dtype, store_text, shard_size, token_budget

    Raises
    ------
    InputError
        where `output` holds an index and neither `resume` nor `overwrite` is given, or something else, or the corpus is
        empty
    BusyError
        where another process writes into `output`
    MismatchError, DamagedFileError
        where `resume` meets another model, other settings, another corpus, or a shard that is not as it was written
    """
    encoding = dense_encoding(encoder, on_progress=on_progress, **storage)
    return build_bundle(corpus, output, encoding, resume=resume, overwrite=overwrite, on_progress=on_progress)


def dense_encoding(
    encoder: TextDocumentEncoder,
    *,
    dtype: str = 'float32',
    store_text: bool = False,
    shard_size: int = SHARD_SIZE,
    token_budget: int | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> Encoding[Settings]:
    """How an encoder fills a dense bundle.

    Parameters
    ----------
    dtype : 'float32' or 'float16', of the stored vectors
    store_text : store the passages' texts, for showing and reranking them
    shard_size : passages in a shard
    token_budget : padded tokens in a batch; default: by device
    on_progress : called with the number of passages done since the last call
    """
    if dtype not in ('float32', 'float16'):
        raise InputError(f"vector dtype '{dtype}' was given, expected float32 or float16")
    settings = Settings(
        encoder=encoder.name,
        weights_sha256=encoder.weights_sha256,
        config_sha256=encoder.config_sha256,
        tokenizer_sha256=encoder.tokenizer_sha256,
        pooling=encoder.pooling,
        max_length=encoder.limit,
        dimension=encoder.dimension,
        dtype=dtype,
        precision=str(encoder.precision),
        shard_size=shard_size,
        texts=store_text,
    )

    def encode(passages: Sequence[Passage], ids: TokenIds | None = None) -> NDArray[np.float32]:
        texts: Any = [passage.text for passage in passages] if ids is None else ids
        return encoder.embed(texts, token_budget=token_budget, on_progress=on_progress)

    return Encoding(settings, DenseShardWriter, encode, WINDOW, getattr(encoder, 'tokenizer', None))
