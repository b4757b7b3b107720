"""How EPIC's encoder fills an EPIC bundle, and copies of a bundle with fewer weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import Encoding, build_bundle
from pyserini_repbert.errors import InputError
from pyserini_repbert.files import StrPath
from pyserini_repbert.index.epic import EpicBundle
from pyserini_repbert.index.epic_writer import EpicShardWriter
from pyserini_repbert.index.records import MODEL_DIGESTS, EpicSettings
from pyserini_repbert.index.shard_writer import SHARD_SIZE
from pyserini_repbert.models.term_vectors import TermVectors, complete, largest
from pyserini_repbert.models.token_ids import TokenIds

if TYPE_CHECKING:
    from pyserini_repbert.systems.epic.encoder import EpicEncoder

# EPIC section 3: "virtually no difference" in effectiveness.
PRUNE = 1000
# About as many weights are in memory at a time.
_WINDOW_WEIGHTS = 1 << 22


def epic_encoding(
    encoder: EpicEncoder,
    *,
    prune: int = PRUNE,
    weights: str = 'float16',
    store_text: bool = False,
    shard_size: int = SHARD_SIZE,
    token_budget: int | None = None,
    on_progress: Callable[[int], object] = int,
) -> Encoding[EpicSettings]:
    """How an encoder fills an EPIC bundle.

    Parameters
    ----------
    encoder : of passages
    prune : how many of a passage's largest weights are stored, 0 for all (EPIC section 3)
    weights : the type of stored weights, 'float16' or 'uint8'
    store_text : store the passages, for showing and reranking them
    shard_size : passages in a shard
    token_budget : padded tokens in a batch; default: by device
    on_progress : called with the number of passages done since the last call

    Raises InputError for a `prune` below 0, or another type.
    """
    if prune < 0 or weights not in ('float16', 'uint8'):
        raise InputError(
            f"prune {prune} with weights '{weights}': expected 0 or more, and float16 or uint8"
        )
    settings = EpicSettings(
        encoder=encoder.name,
        **{digest: getattr(encoder.checkpoint, digest) for digest in MODEL_DIGESTS},
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

    def encode(passages: Sequence[Passage], ids: TokenIds | None = None) -> TermVectors:
        texts = ids or [passage.text for passage in passages]
        if prune:
            return encoder.encode_pruned(texts, prune, token_budget, on_progress)
        return complete(encoder.encode_dense(texts, None, token_budget, on_progress))

    window = _window_size(settings)
    return Encoding(settings, EpicShardWriter, encode, window, encoder.tokenizer, on_progress)


def _window_size(settings: EpicSettings) -> int:
    """How many passages are tokenised, sorted by length and encoded together."""
    weights_each = settings.prune or settings.vocabulary
    return max(64, min(4096, _WINDOW_WEIGHTS // weights_each))


def prune_epic_bundle(
    bundle: EpicBundle,
    output: StrPath,
    prune: int,
    weights: str,
    on_progress: Callable[[int], object] = int,
    *,
    shard_size: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> EpicBundle:
    """A copy of a bundle with fewer weights a passage, or with weights of another type.

    Parameters
    ----------
    bundle : what is copied
    output : the folder of the copy
    prune : how many of a passage's largest stored weights are kept, 0 for all that are stored
    weights : the type of stored weights, 'float32', 'float16' or 'uint8'
    on_progress : called with the number of passages done since the last call
    shard_size : passages in a shard; default: the bundle's
    resume, overwrite : as of `encode_corpus`
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

    window = _window_size(before)
    encoding = Encoding(settings, EpicShardWriter, encode, window, on_progress=on_progress)
    passages = bundle.passages() if before.texts else _without_text(bundle)
    build_bundle(passages, output, encoding, resume, overwrite)
    return EpicBundle(output)


def _without_text(bundle: EpicBundle) -> Iterator[Passage]:
    """The docids of a bundle that stores no texts, as passages."""
    for shard in bundle.shards:
        for docid in shard.docids:
            yield Passage(docid, '')
