"""Texts encoded on the machines of a cluster, for a collection that one machine writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.encode.text_encoder import TextDocumentEncoder
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.index.records import MODEL_DIGESTS
from pyserini_repbert.worker_pool import Job, WorkerPool

# Texts that a worker encodes together: a collection is written in groups of some 1,000.
_TEXTS = 32


@dataclass(frozen=True)
class EncodeTexts:
    """The task of encoding texts.

    Attributes
    ----------
    encoder : catalog name, or the absolute path of a folder that every machine sees
    dimension : values of a vector that are kept
    precision : that the encoder runs in
    digests : the checksums of `MODEL_DIGESTS` that the encoder has to have
    batch_tokens : padded tokens in a batch; None: by device
    device : where the encoder runs
    offline : whether downloads are forbidden
    """

    encoder: str
    dimension: int
    precision: str
    digests: tuple[str | None, ...]
    batch_tokens: int | None = None
    device: str = 'cpu'
    offline: bool = False

    def open(self, threads: int) -> Callable[[Sequence[str]], NDArray[np.float32]]:
        """Open the encoder; returns a function from texts to their vectors, float32 (n, d).

        Raises MismatchError for a checkpoint that is not the writing machine's.
        """
        import torch

        from pyserini_repbert.offline import forbid_downloads
        from pyserini_repbert.systems.encoders import document_encoder

        torch.set_num_threads(threads)
        forbid_downloads(self.offline)
        encoder = document_encoder(self.encoder, self.device, precision=self.precision)
        if _digests(encoder) != self.digests:
            raise MismatchError(
                f"encoder '{self.encoder}' has weights or settings that differ from those on the "
                'machine that writes the collection: give every machine the same checkpoint'
            )
        return partial(encoder.truncated(self.dimension).embed, token_budget=self.batch_tokens)


def _digests(encoder: TextDocumentEncoder) -> tuple[str | None, ...]:
    return tuple(getattr(encoder, name) for name in MODEL_DIGESTS)


class ClusterEmbedding:
    """Encodes texts on the workers of a cluster, in an encoder's place.

    Vectors equal one machine's to 1e-5: their last bits depend on the batch.

    Parameters
    ----------
    pool : the workers
    settings : `batch_tokens`, `device` and `offline` of `EncodeTexts`
    """

    def __init__(self, pool: WorkerPool, **settings: Any) -> None:
        self._pool = pool
        self._settings = settings

    def __call__(self, encoder: TextDocumentEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, float32 (n, d), in their order.

        Parameters
        ----------
        encoder : which is opened on each worker, by its name
        texts : at least one
        """
        name = encoder.name
        if Path(name).exists():
            name = str(Path(name).absolute())
        task = EncodeTexts(
            encoder=name,
            dimension=encoder.dimension,
            precision=str(encoder.precision),
            digests=_digests(encoder),
            **self._settings,
        )
        jobs = []
        for number, start in enumerate(range(0, len(texts), _TEXTS)):
            group = list(texts[start : start + _TEXTS])
            jobs.append(Job(f'group {number} of passages', task, group))
        return np.concatenate(self._pool.run(jobs))
