"""Dense indexes on the machines of a cluster: their shards searched, their parts encoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.encode.output import clear_parts
from pyserini_repbert.encode.parts import EncodingPart, finish_parts, part_folder
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.index.dense import DenseBundle
from pyserini_repbert.index.records import (
    BundleSettings,
    DenseSettings,
    Manifest,
    TermWeightsSettings,
    setting_difference,
)
from pyserini_repbert.pipeline.worker_pool import Job, WorkerPool
from pyserini_repbert.search.exact import ExactIndex, TopRows, merged

_Question = tuple[NDArray[np.float32], int]


class ShardSearch:
    """Searches a bundle in groups of shards, one group for each worker that there is room for.

    Scores equal those of one machine bit by bit, where processors are of the same kind. Every
    machine has to see the bundle's folder under the same name; the workers verify its files.
    """

    def __init__(self, pool: WorkerPool, bundle: DenseBundle, device: str = 'cpu') -> None:
        self._pool = pool
        manifest = bundle.manifest
        folder = str(bundle.folder.absolute())
        # The first row of each group of shards, and the task of searching the group.
        self._first_rows: list[int] = []
        self._tasks: list[SearchShards] = []
        n_shards = len(manifest.shards)
        n_groups = max(1, min(pool.capacity(), n_shards))
        first_row = 0
        for numbers in np.array_split(range(n_shards), n_groups):
            shards = manifest.shards[numbers[0] : numbers[-1] + 1]
            part = replace(manifest, shards=shards, count=sum(shard.count for shard in shards))
            self._tasks.append(SearchShards(folder, part, device))
            self._first_rows.append(first_row)
            first_row += part.count

    def __call__(self, queries: NDArray[np.float32], k: int) -> list[TopRows]:
        """The k best rows of each query, float32 (n, d), and all that tie with the last of them."""
        jobs = [Job(task.name, task, (queries, k)) for task in self._tasks]
        parts: list[list[TopRows]] = self._pool.run(jobs)
        return [merged(tops, self._first_rows, k) for tops in zip(*parts, strict=True)]


@dataclass(frozen=True)
class SearchShards:
    """The task of searching the shards of a bundle that `part` has; `index` is its folder, an
    absolute path.
    """

    index: str
    part: Manifest[DenseSettings]
    device: str = 'cpu'

    @property
    def name(self) -> str:
        """'shard-00000 to shard-00003 of /data/index'"""
        first = self.part.shards[0].folder
        last = self.part.shards[-1].folder
        if first == last:
            return f'{first} of {self.index}'
        return f'{first} to {last} of {self.index}'

    def open(self, threads: int) -> Callable[[_Question], list[TopRows]]:
        """Open the shards; returns a function from (queries, k) to best rows, numbered from the
        first shard's first.
        """
        import torch

        from pyserini_repbert.models.precision import usable_device

        torch.set_num_threads(threads)
        index = ExactIndex(DenseBundle(self.index, part=self.part), usable_device(self.device))
        return lambda question: index.search(*question)


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

        from pyserini_repbert.download import forbid_downloads
        from pyserini_repbert.encode.sharding import build_bundle
        from pyserini_repbert.names.corpora import open_corpus

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
    """Encode all parts of an index and put them together; a part that is whole is verified and left
    as it is.

    `overwrite` replaces an index once the new one is whole; `on_progress` gets the passages of each
    finished part.
    """
    part_folder(task.output, EncodingPart(0, task.parts), overwrite)
    if overwrite:
        clear_parts(Path(task.output))
    jobs = (Job(f'part {number}/{task.parts}', task, number) for number in range(task.parts))
    for _, count in pool.stream(jobs):
        on_progress(count)
    return finish_parts(task.output, type(task.settings), overwrite)
