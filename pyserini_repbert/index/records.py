"""The records of an index folder: its settings and its shards.

Values that no bundle can have are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Annotated, ClassVar, Generic, TypeVar

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.dataclasses import dataclass

from pyserini_repbert.errors import InputError
from pyserini_repbert.record import Sha256

# Of version 1, manifests have no checksum of themselves; of version 2, only the weights' checksum
# of a model's.
FORMAT_VERSION = 3

DOCIDS = 'docids.txt'
TEXTS = 'texts.jsonl'
TEXT_OFFSETS = 'texts.offsets.npy'
_TEXT_FILES = (TEXTS, TEXT_OFFSETS)
VECTORS = 'vectors.npy'
TERMS = 'terms.npy'
BLOCKS = 'blocks.npy'
WEIGHTS = 'weights.npy'
OFFSETS = 'offsets.npy'
SCALES = 'scales.npy'
# What the model gave, until a shard with shorter vectors is finished.
WHOLE = 'whole.npy'

# The checksums of a model, and what differs if they do. All but the first may be None: not known.
MODEL_DIGESTS = {
    'weights_sha256': 'weights or settings',
    'config_sha256': 'configuration',
    'tokenizer_sha256': 'tokenizer',
}

# The types that an index stores vectors in.
VECTOR_DTYPES = ('float32', 'float16', 'int8')

_STRICT = ConfigDict(strict=True, extra='forbid', defer_build=True)
_MOST = 2**48  # an upper bound of every count here

FloatType = Annotated[str, StringConstraints(pattern=r'^(float32|bfloat16|float16)\z')]
VectorDtype = Annotated[str, StringConstraints(pattern=r'^(float32|float16|int8)\z')]
Name = Annotated[str, StringConstraints(min_length=1)]
Count = Annotated[int, Field(ge=1, le=_MOST)]
Length = Annotated[int, Field(ge=1, le=2**20)]  # of a passage in wordpieces, of a vector
Share = Annotated[float, Field(ge=0, le=1)]


def shard_name(number: int) -> str:
    """'shard-00007'"""
    return f'shard-{number:05d}'


@dataclass(frozen=True, config=_STRICT)
class Overlap:
    """How many of exact search's hits stay where vectors are stored smaller than the model's.

    `index/overlap.py` says how it is measured.
    """

    queries: Count  # passages that were searched for
    at_10: Share  # mean share of the best 10 in float32 that are among the best 10 now
    at_100: Share


@dataclass(frozen=True, config=_STRICT)
class ShardRecord:
    """A shard of a bundle."""

    folder: Annotated[str, StringConstraints(pattern=r'^shard-[0-9]{5,}\z')]  # its name
    count: Count  # of passages
    corpus_sha256: Sha256  # of these passages
    files: Mapping[str, Sha256]
    # None if vectors are not shortened and in float32, or an earlier release wrote them.
    overlap: Overlap | None = None


@dataclass(frozen=True, config=_STRICT)
class DenseSettings:
    """How the vectors of a dense bundle were made.

    The checksums of configuration and tokenizer are None if an earlier release or an encoder of
    another kind made the vectors. `pooling` is 'mean' (RepBERT eq. 2), or 'sentence-transformers':
    as the model's folder says.
    """

    kind: ClassVar[str] = 'dense'

    encoder: Name  # the checkpoint's
    weights_sha256: Sha256
    config_sha256: Sha256 | None = field(default=None, kw_only=True)
    tokenizer_sha256: Sha256 | None = field(default=None, kw_only=True)
    pooling: Annotated[str, StringConstraints(pattern=r'^[a-z][a-z_+-]*\z')]
    max_length: Length  # wordpieces kept of a passage
    dimension: Length
    # Of the stored vectors.
    dtype: VectorDtype
    precision: FloatType  # that the model ran in
    shard_size: Count  # passages in a shard
    texts: bool  # whether the passages' texts are stored

    def files(self) -> tuple[str, ...]:
        """The names of the files that a shard has."""
        files = [DOCIDS, VECTORS]
        if self.dtype == 'int8':
            files.append(SCALES)
        if self.texts:
            files += _TEXT_FILES
        return tuple(files)


@dataclass(frozen=True, config=_STRICT)
class TermWeightsSettings:
    """How the vectors of a bundle of term weights, EPIC's or others, were made and are stored.

    Attributes that `DenseSettings` also has mean the same.
    """

    kind: ClassVar[str] = 'epic'

    encoder: Name
    weights_sha256: Sha256
    config_sha256: Sha256 | None = field(default=None, kw_only=True)
    tokenizer_sha256: Sha256 | None = field(default=None, kw_only=True)
    # Which form of EPIC the encoder has, or another learned sparse encoder.
    variant: Annotated[
        str, StringConstraints(pattern=r'^(official|paper_strict|paper_mlm_head|sparse_encoder)\z')
    ]
    vocabulary: Annotated[int, Field(ge=1, le=2**31)]  # the number of terms
    vocabulary_sha256: Sha256  # of their names
    max_length: Length
    # How many of a passage's largest weights are kept; 0 for all.
    prune: Annotated[int, Field(ge=0, le=2**31)]
    weights: Annotated[str, StringConstraints(pattern=r'^(float32|float16|uint8)\z')]
    precision: FloatType
    shard_size: Count
    texts: bool
    # `index/term_weights.py` describes both.
    layout: Annotated[str, StringConstraints(pattern=r'^(all|blocks)\z')]

    def files(self) -> tuple[str, ...]:
        """The names of the files that a shard has."""
        files = [DOCIDS, WEIGHTS]
        if self.layout == 'blocks':
            files += [TERMS, BLOCKS, OFFSETS]
        if self.weights == 'uint8':
            files.append(SCALES)
        if self.texts:
            files += _TEXT_FILES
        return tuple(files)


BundleSettings = DenseSettings | TermWeightsSettings  # of every kind of bundle
SettingsT = TypeVar('SettingsT', bound=BundleSettings)


@dataclass(frozen=True, config=_STRICT)
class Manifest(Generic[SettingsT]):
    """A whole bundle: its settings and its shards, in order."""

    settings: SettingsT
    count: Count
    shards: tuple[ShardRecord, ...]
    kind: str = DenseSettings.kind
    format_version: Annotated[int, Field(ge=1, le=FORMAT_VERSION)] = FORMAT_VERSION

    @property
    def overlap(self) -> Overlap | None:
        """The mean of the shards' overlaps, each by its passages; None if a shard has none."""
        queries = 0
        at_10 = 0.0
        at_100 = 0.0
        for shard in self.shards:
            if shard.overlap is None:
                return None
            share = shard.count / self.count
            queries += shard.overlap.queries
            at_10 += share * shard.overlap.at_10
            at_100 += share * shard.overlap.at_100
        # Rounding may exceed 1.
        return Overlap(queries, min(at_10, 1.0), min(at_100, 1.0))

    def contradiction(self) -> str | None:
        """The first inconsistency, in words; None if it is consistent."""
        for number, shard in enumerate(self.shards):
            wrong = file_difference(shard, self.settings)
            if wrong:
                return f'shard {number} {wrong}'
        if self.count != sum(shard.count for shard in self.shards):
            return f'its shards do not add up to its count, {self.count}'
        return None


def setting_difference(before: BundleSettings, settings: BundleSettings) -> str | None:
    """The first known setting that differs, in words: "max_length '256', now it is '128'".

    None if all are the same.
    """
    for known in fields(settings):
        name = known.name
        old = getattr(before, name)
        value = getattr(settings, name)
        if old == value or old is None or value is None:
            continue
        part = f'another {MODEL_DIGESTS[name]}: ' if name in MODEL_DIGESTS else ''
        return f"{part}{name} '{old}', now it is '{value}'"
    return None


def file_difference(shard: ShardRecord, settings: BundleSettings) -> str | None:
    """How a shard's files differ from the format's, in words; None if they do not."""
    expected = settings.files()
    for name in expected:
        if name not in shard.files:
            return f"does not name '{name}', which the format requires"
    for name in sorted(shard.files):
        if name not in expected:
            return f"names '{name}', which the format does not have"
    if list(shard.files) != sorted(shard.files):
        return 'names its files in another order'
    return None


def check_vector_dtype(dtype: str) -> None:
    """Raises InputError for a type in which vectors are not stored."""
    if dtype not in VECTOR_DTYPES:
        raise InputError(
            f"vector dtype '{dtype}' was given, expected {', '.join(VECTOR_DTYPES[:-1])} or "
            f'{VECTOR_DTYPES[-1]}'
        )
