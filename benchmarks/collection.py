"""A collection: building it, bringing it up to date, opening it, its size, and what cutting texts
costs beside encoding them.

python benchmarks/collection.py [--passages 100000] [--sample 300]
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import figures
import numpy as np
from encoding import texts_of_msmarco_lengths

from pyserini_repbert.collection import Collection
from pyserini_repbert.collection.passages import PassageCutter
from pyserini_repbert.files import human_size
from pyserini_repbert.systems.encoders import document_encoder


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

    def embed(self, texts: list[str], **_: Any) -> Any:
        """A row of a table for each text."""
        rows = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) for text in texts]
        return self._table[np.array(rows) % len(self._table)]


def documents(texts: list[str], changed: int = 0) -> Iterator[dict[str, str]]:
    """Documents with these texts, the first `changed` of them with another word."""
    for number, text in enumerate(texts):
        more = ' changed' if number < changed else ''
        yield {'id': f'd{number}', 'text': f'{text}{more}'}


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def size(folder: Path) -> int:
    """The bytes of a folder, those of hard links once."""
    files = {
        path.stat().st_ino: path.stat().st_size for path in folder.rglob('*') if path.is_file()
    }
    return sum(files.values())


def main() -> None:
    """Time each step and print it."""
    parser = figures.parser(__doc__)
    parser.add_argument('--passages', type=int, default=100_000)
    parser.add_argument('--sample', type=int, default=300)
    parser.add_argument('--sparse', choices=('bm25', 'none'), default='none')
    options = parser.parse_args()
    model = document_encoder('minilm')
    texts = texts_of_msmarco_lengths(options.passages)
    folder = Path(tempfile.mkdtemp())
    corpus = folder / 'corpus.jsonl'

    def write(changed: int) -> float:
        lines = [json.dumps(document) for document in documents(texts, changed)]
        corpus.write_text('\n'.join(lines) + '\n', encoding='utf-8')
        return corpus.stat().st_size / 1e6

    megabytes = write(0)
    with Collection.open(folder / 'mine', StandIn(model), sparse=options.sparse) as collection:

        def sync() -> None:
            collection.sync(corpus)

        print(f'{options.passages} documents, {megabytes:.0f} MB of JSON lines')
        built = seconds(sync)
        print(f'build without the model: {built:.1f} s')
        unchanged = seconds(sync)
        print(f'sync of nothing: {unchanged:.2f} s, {megabytes / unchanged:.1f} MB/s')
        write(options.passages // 100)
        print(f'sync of 1%: {seconds(sync):.2f} s')
        print(f'at rest: {human_size(size(folder / "mine"))}')
        collection.close()
        print(f'opening: {seconds(lambda: collection.generation):.3f} s')
    shutil.rmtree(folder)
    measure_cutting(model, options.sample)


def measure_cutting(model: Any, count: int) -> None:
    """What cutting long texts costs beside encoding their passages."""
    words = texts_of_msmarco_lengths(count)
    random.Random(0).shuffle(words)
    texts = [' '.join(words[first : first + 20]) for first in range(0, count, 20)]
    cutter = PassageCutter(model.tokenizer.backend, model.limit)
    passages = cutter.cut([''] * len(texts), texts)
    inputs = [passage.input for part in passages for passage in part]
    cutting = seconds(lambda: cutter.cut([''] * len(texts), texts))
    encoding = seconds(lambda: model.embed(inputs))
    print(
        f'{len(inputs)} passages: cut in {cutting:.3f} s, encoded in {encoding:.2f} s: '
        f'{cutting / encoding:.1%}'
    )


if __name__ == '__main__':
    main()
