"""A collection: syncs beside the first build, opening, bytes on the disk, memory, and what cutting
texts into passages costs beside encoding them.

    python benchmarks/collection.py [--passages 100000] [--sample 1000]

Documents are short: each is one passage, with MS MARCO's lengths. Vectors come from a table, so
that what is measured is the work of the collection. MiniLM encodes a
sample here, and syncs and builds are compared with its time for a passage added. Peak memory is
measured in a process without Lucene. It grows up to 65,536 documents, whose vectors are put
together into one shard.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import figures
import numpy as np
from encoding import texts_of_msmarco_lengths
from figures import Figure

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.passages import PassageCutter
from pyserini_repbert.encode import encode_corpus
from pyserini_repbert.files import human_size
from pyserini_repbert.index.lucene import build_lucene_index
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.search.dense import open_dense_index
from pyserini_repbert.systems.encoders import document_encoder

_WORDS = 1100  # of a long document, about ten passages


class StandIn:
    """An encoder with MiniLM's tokenizer and sizes, whose vectors cost nothing."""

    name = 'stand-in'
    weights_sha256 = '0' * 64
    config_sha256 = tokenizer_sha256 = None
    pooling = 'mean'
    precision = 'float32'

    def __init__(self, model: Any) -> None:
        self.limit = model.limit
        self.dimension = model.dimension
        self.tokenizer = model.tokenizer
        self._table = np.random.default_rng(0).standard_normal((1009, model.dimension), np.float32)

    def embed(self, texts: Any, **_: Any) -> Any:
        """A row of a table for each text."""
        rows = [int.from_bytes(hashlib.sha256(str(text).encode()).digest()[:4]) for text in texts]
        return self._table[np.array(rows) % len(self._table)]


def write_corpus(path: Path, texts: list[str], changed: int = 0) -> float:
    """Write documents with these texts, the first `changed` with another word; returns MB."""
    with open(path, 'w', encoding='utf-8') as stream:
        for number, text in enumerate(texts):
            more = ' changed' if number < changed else ''
            stream.write(json.dumps({'id': f'd{number}', 'text': f'{text}{more}'}) + '\n')
    return path.stat().st_size / 1e6


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def size(folder: Path) -> int:
    """The bytes of a folder that may be written meanwhile; hard links count once."""
    sizes = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(os.path.join(parent, name))
                sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


class SizeWatch:
    """A context that looks at the size of a folder five times a second; `peak` is the largest."""

    def __init__(self, folder: Path) -> None:
        self.peak = 0
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> SizeWatch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            self.peak = max(self.peak, size(self._folder))


@dataclass(frozen=True)
class EncodingCost:
    """Seconds that MiniLM takes for a passage, and seconds that cutting it from its text takes."""

    encode: float
    cut: float


def measure_encoding(model: Any, count: int) -> EncodingCost:
    """Encode about `count` passages that are cut from long texts."""
    words = ' '.join(texts_of_msmarco_lengths(count * 3)).split()
    texts = [' '.join(words[first : first + _WORDS]) for first in range(0, len(words), _WORDS)]
    random.Random(0).shuffle(texts)
    texts = texts[: max(1, count // 10)]
    titles = [''] * len(texts)
    cutter = PassageCutter(model.tokenizer.backend, model.limit)
    passages = [passage.input for part in cutter.cut(titles, texts) for passage in part]
    cutting = min(seconds(lambda: cutter.cut(titles, texts)) for _ in range(3))
    encoding = seconds(lambda: model.embed(passages))
    return EncodingCost(encoding / len(passages), cutting / len(passages))


def peak_megabytes(passages: int) -> float:
    """The peak memory of a process that builds a collection and syncs it again."""
    words = [sys.executable, __file__, '--peak-of', str(passages)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def build_alone(passages: int) -> None:
    """Build a collection without Lucene, sync it, and print the peak memory in MB (Linux)."""
    texts = texts_of_msmarco_lengths(2000)
    with tempfile.TemporaryDirectory() as work:
        corpus = Path(work) / 'corpus.jsonl'
        with open(corpus, 'w', encoding='utf-8') as stream:
            for number in range(passages):
                text = f'{texts[number % len(texts)]} {number}'
                stream.write(json.dumps({'id': f'd{number}', 'text': text}) + '\n')
        encoder = StandIn(document_encoder('minilm'))
        with Collection.open(f'{work}/mine', encoder, sparse='none') as collection:
            collection.sync(corpus)
            collection.sync(corpus)
    status = Path('/proc/self/status').read_text(encoding='utf-8')
    peak = next(line for line in status.splitlines() if line.startswith('VmHWM'))
    print(int(peak.split()[1]) / 1e3)


def measure_frozen(corpus: Path, encoder: StandIn, folder: Path) -> Figure:
    """Build a dense bundle and a Lucene index; the bytes of both."""
    encode_corpus(open_corpus(corpus), encoder, folder / 'dense')
    build_lucene_index(open_corpus(corpus), folder / 'lucene')
    total = size(folder / 'dense') + size(folder / 'lucene')
    return Figure('dense bundle and Lucene index', total / 1e6, 'MB')


def open_collection(collection: Collection) -> None:
    """Open the newest generation and all of its shards, and read a docid."""
    for live in collection.generation.shards:
        live.shard.map_all()
    collection.generation.docids([0])


def measure(options: argparse.Namespace, work: Path) -> list[Figure]:
    """Time each step; returns its figures."""
    model = document_encoder('minilm')
    encoder = StandIn(model)
    sample = measure_encoding(model, options.sample)
    # The passages of long texts are longer than documents of one passage.
    texts = texts_of_msmarco_lengths(options.passages)
    of_sample = random.Random(1).sample(texts, min(options.sample, len(texts)))
    encode = seconds(lambda: model.embed(of_sample)) / len(of_sample)
    print(f'MiniLM: {1 / encode:.0f} short and {1 / sample.encode:.0f} long passages a second')
    changed = options.passages // 100
    corpus = work / 'corpus.jsonl'
    megabytes = write_corpus(corpus, texts)
    frozen = measure_frozen(corpus, encoder, work)
    folder = work / 'mine'
    with Collection.open(folder, encoder) as collection:
        with SizeWatch(folder) as watch_build:
            build = seconds(lambda: collection.sync(corpus))
        unchanged = min(seconds(lambda: collection.sync(corpus)) for _ in range(5))
        at_rest = size(folder)
        write_corpus(corpus, texts, changed)
        with SizeWatch(folder) as watch_sync:
            sync = seconds(lambda: collection.sync(corpus))
        after_sync = size(folder)
        collection.close()
        opening = seconds(lambda: open_collection(collection))
    opening_frozen = seconds(lambda: open_dense_index(work / 'dense').docids(np.array([0])))
    print(f'build without encoding {build:.1f} s, sync of 1% without encoding {sync:.2f} s')
    print(f'after the sync of 1%: {human_size(after_sync)}')
    share = (sync + changed * encode) / (build + options.passages * encode)
    own = build / (build + options.passages * encode)
    small = peak_megabytes(options.passages)
    large = peak_megabytes(2 * options.passages)
    print(f'peak memory: {small:.0f} MB, and {large:.0f} MB for twice as many documents')
    return [
        Figure('sync that changes 1%, of the first build', 100 * share, '%', 3, at_most=True),
        Figure('the same without encoding', 100 * sync / build, '%'),
        Figure("the collection's own work, of the first build", 100 * own, '%'),
        Figure('sync that changes nothing', megabytes / unchanged, 'MB/s', 20),
        Figure('opening, beyond a dense bundle', opening - opening_frozen, 's', 0.5, at_most=True),
        Figure(
            'bytes at rest, of a dense bundle and a Lucene index',
            at_rest / 1e6 / frozen.value,
            'times',
            1.3,
            at_most=True,
        ),
        Figure('the most during the first build', watch_build.peak / 1e6 / frozen.value, 'times'),
        Figure('the most during a sync of 1%', watch_sync.peak / 1e6 / frozen.value, 'times'),
        Figure('peak memory: growth by as many documents', 100 * (large / small - 1), '%', 5, True),
        Figure(
            'cutting texts, of encoding', 100 * sample.cut / sample.encode, '%', 15, at_most=True
        ),
    ]


def main() -> None:
    """Measure and print."""
    parser = figures.parser(__doc__, passages=100_000, sample=1000)
    parser.add_argument('--peak-of', type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_of:
        build_alone(options.peak_of)
        return
    with tempfile.TemporaryDirectory() as work:
        figures.tell(options, measure(options, Path(work)))


if __name__ == '__main__':
    main()
