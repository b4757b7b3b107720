"""Encoding a corpus into an EPIC bundle: streamed, sharded, resumable to the same bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.epic import EpicEncoder
from pyserini_repbert.encode.sharding import Encoding, Storage, build_bundle
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.index.epic_writer import EpicShardWriter, check_storage
from pyserini_repbert.index.records import EpicSettings, Manifest
from pyserini_repbert.index.shard_writer import SHARD_SIZE
from pyserini_repbert.models.term_vectors import TermVectors, complete, largest

PRUNE = 1000  # EPIC section 3: "virtually no difference" in effectiveness
_WINDOW_WEIGHTS = 1 << 22  # about as many weights are in memory at a time
_WINDOW = (64, 4096)  # least and most passages tokenised and sorted by length together


class EpicStorage(Storage, total=False):
    """The keyword arguments of `epic_encoding` that tell what an EPIC bundle keeps."""

    prune: int
    weights: str


def encode_epic_corpus(
    corpus: Iterable[Passage],
    encoder: EpicEncoder,
    output: StrPath,
    *,
    resume: bool = False,
    overwrite: bool = False,
    on_progress: Callable[[int], object] | None = None,
    **storage: Unpack[EpicStorage],
) -> Manifest[EpicSettings]:
    """Encode a corpus into the EPIC bundle `output`, as `encode_corpus` does into a dense one.

    Parameters
    ----------
    storage : keyword arguments of `epic_encoding`: prune, weights, store_text, shard_size, token_budget

    The other parameters, the value returned and errors are those of `encode_corpus`.
    """
    encoding = epic_encoding(encoder, on_progress=on_progress, **storage)
    return build_bundle(corpus, output, encoding, resume=resume, overwrite=overwrite, on_progress=on_progress)


def epic_encoding(
    encoder: EpicEncoder,
    *,
    prune: int = PRUNE,
    weights: str = 'float16',
    store_text: bool = False,
    shard_size: int = SHARD_SIZE,
    token_budget: int | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> Encoding[EpicSettings]:
    """How an encoder fills an EPIC bundle; the other parameters are those of `dense_encoding`.

    Parameters
    ----------
    prune : how many of a passage's largest weights are kept, 0 for all (EPIC section 3)
    weights : the type of stored weights, 'float16' or 'uint8'

    Raises
    ------
    InputError
        for another type of weights, or a negative `prune`
    """
    check_storage(prune, weights)
    settings = EpicSettings(
        encoder=encoder.name,
        weights_sha256=encoder.weights_sha256,
        config_sha256=encoder.checkpoint.config_sha256,
        tokenizer_sha256=encoder.checkpoint.tokenizer_sha256,
        variant=str(encoder.variant),
        vocabulary=encoder.vocabulary,
        vocabulary_sha256=encoder.vocabulary_sha256,
        max_length=encoder.limit,
        prune=prune,
        weights=weights,
        precision=str(encoder.precision),
        shard_size=shard_size,
        texts=store_text,
        layout='blocks' if prune else 'all',
    )

    def encode(passages: Sequence[Passage]) -> TermVectors:
        texts = [passage.text for passage in passages]
        if prune:
            return encoder.encode_pruned(texts, prune, token_budget, on_progress)
        return complete(encoder.encode_dense(texts, None, token_budget, on_progress))

    return Encoding(settings, EpicShardWriter, encode, _window(settings))


def _window(settings: EpicSettings) -> int:
    """How many passages are tokenised, sorted by length and encoded together."""
    least, most = _WINDOW
    return max(least, min(most, _WINDOW_WEIGHTS // (settings.prune or settings.vocabulary)))


def prune_epic_bundle(
    bundle: EpicBundle,
    output: StrPath,
    prune: int,
    weights: str,
    shard_size: int | None = None,
    on_progress: Callable[[int], object] | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
) -> EpicBundle:
    """A copy of a bundle with fewer weights a passage, weights of another type, or shards of another size.

    With small shards, little is lost when a run is killed; searching is faster with fewer, by about 0.1 ms a shard and
    query.

    Parameters
    ----------
    prune : how many of a passage's largest stored weights are kept, 0 for all that are stored
    weights : the type of stored weights, 'float16' or 'uint8'
    shard_size : passages in a shard; default: as in `bundle`
    on_progress : called with the number of passages done since the last call

    Raises
    ------
    InputError
        where `output` is not empty and neither `resume` nor `overwrite` is given, or `output` is `bundle` itself; for
        another type of weights, or more weights than `bundle` keeps
    BusyError
        where another process writes the same shards
    MismatchError
        where `resume` meets the copy of another bundle, or other settings
    DamagedFileError
        where `resume` meets a shard whose files are not those that were written
    """
    check_storage(prune, weights)
    if Path(output).resolve() == bundle.folder.resolve():
        raise InputError(f'index {bundle.folder} cannot be copied onto itself: give another output')
    before = bundle.settings
    if before.prune and not 0 < prune <= before.prune:
        raise InputError(
            f'index {bundle.folder} keeps {before.prune} weights a passage, {prune or "all"} were asked for: '
            'build it again with more'
        )
    size = shard_size or before.shard_size
    settings = replace(before, prune=prune, weights=weights, layout='blocks' if prune else 'all', shard_size=size)
    places = itertools.count()

    def encode(passages: Sequence[Passage]) -> TermVectors:
        row = next(place for place in places if bundle.docid(place) == passages[0].docid)
        own = list(bundle.rows_from(row, len(passages)))
        if on_progress is not None:
            on_progress(len(own))
        if not prune:
            return TermVectors.of(own)
        return TermVectors.of(largest(vector.weights, prune, vector.terms) for vector in own)

    without_text = (Passage(bundle.docid(row), '') for row in range(len(bundle)))
    build_bundle(
        bundle.passages() if before.texts else without_text,
        output,
        Encoding(settings, EpicShardWriter, encode, _window(before)),
        resume=resume,
        overwrite=overwrite,
        on_progress=on_progress,
    )
    return EpicBundle(output)
