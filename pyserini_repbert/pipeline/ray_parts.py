"""The parts of an index, encoded on the machines of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyserini_repbert.encode.output import clear_parts
from pyserini_repbert.encode.parts import EncodingPart, finish_parts, part_folder
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.index.records import (
    BundleSettings,
    Manifest,
    TermWeightsSettings,
    setting_difference,
)
from pyserini_repbert.worker_pool import Job, WorkerPool


@dataclass(frozen=True)
class EncodeParts:
    """The task of encoding parts of an index, each given by its number.

    Output, corpus and encoder are as every machine sees them: absolute paths, or names.
    """

    output: str
    parts: int
    corpus: str
    corpus_format: str
    fields: tuple[str, ...]
    on_error: str
    encoder: str
    settings: BundleSettings
    batch_tokens: int | None = None
    device: str = 'cpu'
    offline: bool = False

    def open(self, threads: int) -> Callable[[int], int]:
        """Open model and corpus; returns a function that encodes a part by number and returns
        its passage count.
        """
        import torch

        from pyserini_repbert.encode.sharding import build_bundle
        from pyserini_repbert.names.corpora import open_corpus
        from pyserini_repbert.offline import forbid_downloads

        torch.set_num_threads(threads)
        forbid_downloads(self.offline)
        corpus = open_corpus(self.corpus, self.corpus_format, self.fields, self.on_error)
        encoding = self._encoding()

        def encode(number: int) -> int:
            folder = EncodingPart(number, self.parts).folder(self.output)
            part = corpus.part(number, self.parts, encoding.settings.shard_size)
            return build_bundle(part, folder, encoding, resume=True).count

        return encode

    def _encoding(self) -> Any:
        from pyserini_repbert.encode.dense import dense_encoding
        from pyserini_repbert.systems.encoders import document_encoder, term_weights_encoder

        asked = self.settings
        model: dict[str, Any] = {'precision': asked.precision, 'max_length': asked.max_length}
        stored: dict[str, Any] = {'store_text': asked.texts, 'shard_size': asked.shard_size}
        stored['token_budget'] = self.batch_tokens
        encoding: Any
        if isinstance(asked, TermWeightsSettings):
            weighing: Any = term_weights_encoder(self.encoder, self.device, **model)
            encoding = weighing.encoding(prune=asked.prune, weights=asked.weights, **stored)
        else:
            dense = document_encoder(self.encoder, self.device, **model)
            if dense.dimension > asked.dimension:
                dense = dense.truncated(asked.dimension)
            encoding = dense_encoding(dense, dtype=asked.dtype, **stored)
        opened = replace(encoding.settings, encoder=asked.encoder)
        difference = setting_difference(asked, opened)
        if difference:
            raise MismatchError(
                f"encoder '{self.encoder}' has {difference}: give every machine the same checkpoint"
            )
        return replace(encoding, settings=asked)


def encode_parts(
    pool: WorkerPool,
    task: EncodeParts,
    overwrite: bool = False,
    on_progress: Callable[[int], object] = int,
) -> Manifest[Any]:
    """Encode all parts of an index and put them together.

    A complete part is verified and not encoded again.

    `overwrite` replaces an index once the new one is complete; `on_progress` gets the passages of
    each finished part.
    """
    part_folder(task.output, EncodingPart(0, task.parts), overwrite)
    if overwrite:
        clear_parts(Path(task.output))
    jobs = (Job(f'part {number}/{task.parts}', task, number) for number in range(task.parts))
    for _, count in pool.stream(jobs):
        on_progress(count)
    return finish_parts(task.output, type(task.settings), overwrite)
