"""What do smaller vectors lose? The table of `docs/guides/precision.md`.

    python regressions/studies/smaller_vectors.py NAME=DENSE,TOPICS,QRELS …

DENSE is an index of whole vectors in float32. The smaller ones are made of them in memory, as
`encode` makes them of the model's vectors. Each corpus has nDCG@10 of its topics; the last two
columns are means over all corpora of the overlap that `encode` records.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.encode.text_encoder import TextEncoder, truncated_as
from pyserini_repbert.evaluate.measures import Evaluation, by_rank, evaluate, parse_measures
from pyserini_repbert.evaluate.significance import compare
from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.index.overlap import measure_overlap
from pyserini_repbert.index.quantized import StoredVectors, stored_as
from pyserini_repbert.index.records import DenseSettings, Overlap
from pyserini_repbert.names.topics import load_qrels, load_topics
from pyserini_repbert.search.dense import VectorSearcher
from pyserini_repbert.search.exact import ArrayVectors
from pyserini_repbert.systems.encoders import query_encoder

DEPTH = 1000
MEASURE = 'nDCG@10'


@dataclass(frozen=True)
class Storage:
    """How vectors are stored: their type, and how many values are kept; None: all."""

    dtype: str
    dimension: int | None = None

    def __str__(self) -> str:
        flags = f'--store {self.dtype}'
        if self.dimension is not None:
            flags += f' --truncate-dim {self.dimension}'
        return f'`{flags}`'


WHOLE = Storage('float32')
STORAGES = (
    WHOLE,
    Storage('float16'),
    Storage('int8'),
    Storage('float32', 256),
    Storage('float32', 128),
    Storage('float32', 64),
    Storage('int8', 128),
)


class SmallerIndex(ArrayVectors):
    """The passages of a bundle, with other vectors, as of `search.dense.VectorIndex`."""

    def __init__(self, bundle: DenseBundle, vectors: StoredVectors) -> None:
        super().__init__(vectors)
        self._bundle = bundle
        self.folder: Path = bundle.folder
        self.settings: DenseSettings = replace(bundle.settings, dimension=vectors.shape[1])

    def docids(self, rows: NDArray[np.int64]) -> list[str]:
        """The docids of rows."""
        return self._bundle.docids(rows)


@dataclass(frozen=True)
class Loss:
    """What a collection's search is like with smaller vectors."""

    evaluation: Evaluation
    overlap: Overlap


class Collection:
    """A bundle of whole vectors, with judged topics."""

    def __init__(self, dense: str, topics: str, qrels: str) -> None:
        self._bundle = DenseBundle(dense)
        self._vectors = self._bundle.vectors(np.arange(len(self._bundle)))
        self._topics = load_topics(topics)
        self._qrels = load_qrels(qrels)
        self._encoder: TextEncoder = query_encoder(self._bundle.settings.encoder)

    def measure(self, storage: Storage) -> Loss:
        """Search the topics with vectors stored in one way."""
        dimension = storage.dimension or self._bundle.settings.dimension
        shorter = truncated_as(self._encoder, replace(self._bundle.settings, dimension=dimension))
        stored = stored_as(shorter.shorten(self._vectors), storage.dtype)
        searcher = VectorSearcher(SmallerIndex(self._bundle, stored), self._encoder)
        run = searcher.rank(self._topics, None, DEPTH)
        evaluation = evaluate(by_rank(run), self._qrels, parse_measures([MEASURE]))
        overlap = measure_overlap(self._vectors, stored, shorter.shorten)
        return Loss(evaluation, overlap)

    def bytes_of(self, storage: Storage) -> int:
        """Bytes of a stored vector, with its scale."""
        dimension = storage.dimension or self._bundle.settings.dimension
        scale = 4 if storage.dtype == 'int8' else 0
        return dimension * np.dtype(storage.dtype).itemsize + scale


def cell(loss: Loss, whole: Loss) -> str:
    """'.5647 (-.012, p 0.03)': the mean, its difference from float32, and that one's p."""
    mean = f'{loss.evaluation.means[MEASURE]:.4f}'.removeprefix('0')
    if loss is whole:
        return mean
    (comparison,) = compare(whole.evaluation, loss.evaluation)
    return f'{mean} ({comparison.difference:+.4f}, p {comparison.p:.1g})'.replace('0.', '.', 1)


def mean_text(values: list[float]) -> str:
    """The mean of some shares: '.9876'."""
    return f'{np.mean(values):.4f}'.removeprefix('0')


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('collections', nargs='+', metavar='NAME=DENSE,TOPICS,QRELS')
    collections = {}
    for named in parser.parse_args().collections:
        name, _, files = named.partition('=')
        collections[name] = Collection(*files.split(','))
    whole = {name: collection.measure(WHOLE) for name, collection in collections.items()}
    rows = []
    for storage in STORAGES:
        losses = whole
        if storage != WHOLE:
            losses = {name: found.measure(storage) for name, found in collections.items()}
        size = next(iter(collections.values())).bytes_of(storage)
        cells = [cell(losses[name], whole[name]) for name in collections]
        overlaps = [loss.overlap for loss in losses.values()]
        at_10 = mean_text([overlap.at_10 for overlap in overlaps])
        at_100 = mean_text([overlap.at_100 for overlap in overlaps])
        rows.append([str(storage), f'{size:,}', *cells, at_10, at_100])
    header = ['', 'bytes', *collections, 'overlap@10', 'overlap@100']
    print(markdown(header, rows, is_padded=False))


if __name__ == '__main__':
    main()
