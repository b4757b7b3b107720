"""Copies of an index of term weights: with fewer weights a passage, or of another type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import BundleEncoding, build_bundle
from pyserini_repbert.encode.term_weights import window_size
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.term_weights import TermWeightsBundle
from pyserini_repbert.index.term_weights_writer import TermWeightsShardWriter
from pyserini_repbert.models.term_vectors import TermVectors, largest


def prune_bundle(
    bundle: TermWeightsBundle,
    output: StrPath,
    prune: int,
    weights: str,
    on_progress: Callable[[int], object] = int,
    *,
    shard_size: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> TermWeightsBundle:
    """A copy of a bundle with fewer weights a passage, or with weights of another type.

    Parameters
    ----------
    bundle : the bundle to copy
    output : the folder of the copy
    prune : how many of a passage's largest stored weights are kept, 0 for all that are stored
    weights : the type of stored weights, 'float32', 'float16' or 'uint8'
    on_progress : called with the number of passages done since the last call
    shard_size : passages in a shard; default: the bundle's
    resume : continue an unfinished copy in `output`
    overwrite : replace the index that is in `output`, once the copy is complete

    Raises InputError for more weights than the bundle has, and for its own folder as `output`.
    """
    if Path(output).resolve() == bundle.folder.resolve():
        raise InputError(f'index {bundle.folder} cannot be copied onto itself: give another output')
    before = bundle.settings
    if before.prune and not 0 < prune <= before.prune:
        raise InputError(
            f'index {bundle.folder} keeps {before.prune} weights a passage, {prune or "all"} were '
            'asked for: build it again with more'
        )
    layout = 'blocks' if prune else before.layout
    size = shard_size or before.shard_size
    settings = replace(before, prune=prune, weights=weights, layout=layout, shard_size=size)

    def encode(passages: Sequence[Passage]) -> TermVectors:
        # The passages of a call follow one another in the bundle.
        first_row = int(bundle.rows([passages[0].docid])[0])
        vectors = list(bundle.rows_from(first_row, len(passages)))
        on_progress(len(vectors))
        if prune:
            vectors = [largest(vector.weights, prune, vector.terms) for vector in vectors]
        return TermVectors.of(vectors)

    window = window_size(before.prune or before.vocabulary)
    encoding = BundleEncoding(
        settings, TermWeightsShardWriter, encode, window, on_progress=on_progress
    )
    passages = bundle.passages() if before.texts else _without_text(bundle)
    build_bundle(passages, output, encoding, resume, overwrite)
    return TermWeightsBundle(output)


def _without_text(bundle: TermWeightsBundle) -> Iterator[Passage]:
    """The docids of a bundle that stores no texts, as passages."""
    for shard in bundle.shards:
        for docid in shard.docids:
            yield Passage(docid, '')
