"""Small indexes of every kind, made without a model, in milliseconds."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode.sharding import BundleEncoding, build_bundle
from pyserini_repbert.index.dense import DenseBundle, DenseShardWriter
from pyserini_repbert.index.faiss_layout import export_faiss
from pyserini_repbert.index.records import DenseSettings, TermWeightsSettings
from pyserini_repbert.index.term_weights_writer import TermWeightsShardWriter
from pyserini_repbert.models.term_vectors import TermVector, TermVectors

PASSAGES = [Passage(f'd{number}', f'passage {number}: {"cät" * number}') for number in range(5)]
MODEL = {'config_sha256': '2' * 64, 'tokenizer_sha256': '3' * 64}
DENSE = DenseSettings('tiny', '0' * 64, 'mean', 20, 3, 'float32', 'float32', 2, True, **MODEL)
EPIC = TermWeightsSettings(
    'tiny',
    '0' * 64,
    'official',
    300,
    '1' * 64,
    20,
    4,
    'uint8',
    'float32',
    2,
    True,
    'blocks',
    **MODEL,
)


def vectors(passages: Sequence[Passage]) -> NDArray[np.float32]:
    """float32 (n, 3), which depend on the docid alone."""
    return np.array(
        [[len(passage.text), int(passage.docid[1:]), 0.5] for passage in passages], dtype=np.float32
    )


def term_vectors(passages: Sequence[Passage]) -> TermVectors:
    """Four terms each, which depend on the docid alone."""
    rows = [int(passage.docid[1:]) for passage in passages]
    return TermVectors.of(
        TermVector.summed([row, row + 9, 255, 256 + row], [1.5, 0.25, 2.0, 0.75]) for row in rows
    )


ENCODING = BundleEncoding(DENSE, DenseShardWriter, vectors, 2)


def dense(folder: Path, settings: DenseSettings = DENSE, **options: object) -> Path:
    """A dense bundle in three shards."""
    build_bundle(
        PASSAGES, folder, BundleEncoding(settings, DenseShardWriter, vectors, 2), **options
    )
    return folder


def epic(folder: Path, settings: TermWeightsSettings = EPIC, **options: object) -> Path:
    """An EPIC bundle in three shards."""
    build_bundle(
        PASSAGES,
        folder,
        BundleEncoding(settings, TermWeightsShardWriter, term_vectors, 2),
        **options,
    )
    return folder


def faiss(folder: Path) -> Path:
    """A dense bundle in Pyserini's FAISS layout."""
    export_faiss(DenseBundle(dense(folder.with_name(f'{folder.name}.dense'))), folder)
    return folder
