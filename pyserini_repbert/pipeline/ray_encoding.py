"""Encoding the parts of an index on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyserini_repbert.encode.output import clear_parts
from pyserini_repbert.encode.parts import EncodingPart, finish_parts, part_folder
from pyserini_repbert.errors import MismatchError
from pyserini_repbert.index.records import BundleSettings, EpicSettings, Manifest, setting_difference
from pyserini_repbert.pipeline.ray_jobs import Crew, Job


@dataclass(frozen=True)
class EncodeParts:
    """The work of encoding parts of an index, each given by its number.

    Attributes
    ----------
    output, corpus, encoder : as every machine sees them: absolute paths, or names
    parts : how many there are
    settings : of the index
    batch_tokens : padded tokens in a batch; None: the device's default
    device : of each worker
    offline : never download
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

    def opened(self, threads: int) -> Callable[[int], int]:
        """Open model and corpus; returns a function that encodes a part by number and returns its passage count."""
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
        from dataclasses import replace

        from pyserini_repbert.encode.corpus import dense_encoding
        from pyserini_repbert.encode.encoders import document_encoder
        from pyserini_repbert.encode.epic import EpicEncoder
        from pyserini_repbert.encode.epic_corpus import epic_encoding

        asked = self.settings
        model: dict[str, Any] = {'precision': asked.precision, 'max_length': asked.max_length}
        stored: dict[str, Any] = {
            'store_text': asked.texts,
            'shard_size': asked.shard_size,
            'token_budget': self.batch_tokens,
        }
        encoding: Any
        if isinstance(asked, EpicSettings):
            epic = EpicEncoder(self.encoder, self.device, **model)
            encoding = epic_encoding(epic, prune=asked.prune, weights=asked.weights, **stored)
        else:
            dense = document_encoder(self.encoder, self.device, **model)
            encoding = dense_encoding(dense, dtype=asked.dtype, **stored)
        if difference := setting_difference(asked, replace(encoding.settings, encoder=asked.encoder)):
            raise MismatchError(f"encoder '{self.encoder}' has {difference}: give every machine the same checkpoint")
        return replace(encoding, settings=asked)


def encode_parts(
    crew: Crew, work: EncodeParts, overwrite: bool = False, on_progress: Callable[[int], object] | None = None
) -> Manifest[Any]:
    """Encode all parts of an index and put them together; a part that is whole is verified and left as it is.

    Parameters
    ----------
    overwrite : replace the index that is there, once the new one is whole
    on_progress : called with the number of passages of each finished part

    Raises
    ------
    ClusterError
        where a part fails repeatedly with its machine, or no machine has room for a worker
    PyseriniRepbertError
        that a worker raised, with its machine named
    """
    part_folder(work.output, EncodingPart(0, work.parts), overwrite)
    if overwrite:
        clear_parts(Path(work.output))
    jobs = [Job(f'part {number}/{work.parts}', work, number) for number in range(work.parts)]

    def report(_: int, count: int) -> None:
        if on_progress is not None:
            on_progress(count)

    crew.run(jobs, report)
    return finish_parts(work.output, type(work.settings), overwrite)
