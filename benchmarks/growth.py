"""Growth with the number of passages: a process a size makes a bundle, opens it, searches it, builds an ANN index.

python benchmarks/growth.py [--sizes 10000 100000 1000000] [--dimension 384] [--queries 200] [--no-ann]

Vectors are standard normal times 1/sqrt(rank) along the dimension of that rank, made of the row's number as they are
asked for, so that the peak memory is that of the writing. A table, and how much each figure grows over a line through
the origin from the smallest size (1.00 is linear; opening should stay constant). Encoding's model is not part of it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rounds import best_times

from pyserini_repbert.encode import encode_corpus
from pyserini_repbert.formats.passages import Passage
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.search import exact


class Synthetic:
    """An encoder of row numbers."""

    name, weights_sha256, limit, precision = 'synthetic', '0' * 64, 1, 'float32'

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._scale = (np.arange(1, dimension + 1) ** -0.5).astype(np.float32)

    def embed(self, texts: list[str], **_: object) -> NDArray[np.float32]:
        """float32 (n, d), seeded by the first of the rows."""
        random = np.random.default_rng(int(texts[0]))
        found: NDArray[np.float32] = (
            random.standard_normal((len(texts), self.dimension), dtype=np.float32) * self._scale
        )
        return found


def peak() -> int:
    """MB of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def measured(count: int, options: argparse.Namespace) -> dict[str, float]:
    """The figures of one size, in this process."""
    found: dict[str, float] = {'passages': count}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / 'bundle'
        start = time.perf_counter()
        encoder = Synthetic(options.dimension)
        encode_corpus((Passage(f'd{row}', str(row)) for row in range(count)), encoder, folder)  # type: ignore[arg-type]
        found['write s'] = time.perf_counter() - start
        found['write peak MB'] = peak()
        found['MB'] = sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) / 1e6
        DenseBundle(folder)  # checksums are computed once, and remembered
        found['open ms'] = 1000 * best_times({'open': lambda: DenseBundle(folder)}, 5)['open']
        bundle = DenseBundle(folder)
        queries = encoder.embed([str(count)] * options.queries)
        ways = {
            'one ms': lambda: exact.search(bundle, queries[:1], 1000),
            f'{options.queries} ms': lambda: exact.search(bundle, queries, 1000),
        }
        found |= {name: 1000 * seconds for name, seconds in best_times(ways, 3).items()}
        found['search peak MB'] = peak()
        if options.ann:
            from pyserini_repbert.index.ann import AnnIndex
            from pyserini_repbert.search import ann
            from pyserini_repbert.search.ann_building import build_ann

            start = time.perf_counter()
            record = build_ann(bundle, recall=0.9)
            found['ann build s'] = time.perf_counter() - start
            index = AnnIndex(bundle)
            found['ann one ms'] = 1000 * best_times({'': lambda: ann.search(bundle, index, queries[:1], 1000)}, 5)['']
            found['ann recall'] = record.recall
            found['ann peak MB'] = peak()
    return found


def main() -> None:
    """A process a size, a table, and the growth of each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--sizes', type=int, nargs='+', default=[10_000, 100_000, 1_000_000])
    parser.add_argument('--dimension', type=int, default=384)
    parser.add_argument('--queries', type=int, default=200)
    parser.add_argument('--no-ann', dest='ann', action='store_false')
    parser.add_argument('--here', action='store_true', help='measure the one size in this process, as JSON')
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measured(options.sizes[0], options)))
        return
    rows = []
    for size in options.sizes:
        command = [sys.executable, __file__, '--here', '--sizes', str(size), '--dimension', str(options.dimension)]
        command += ['--queries', str(options.queries), *([] if options.ann else ['--no-ann'])]
        rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
    names = [name for name in rows[0] if name != 'passages']
    print('| figure | ' + ' | '.join(f'{row["passages"]:,}' for row in rows) + ' | growth / linear |')
    print('|---|' + '---:|' * (len(rows) + 1))
    for name in names:
        times = rows[-1]['passages'] / rows[0]['passages']
        growth = rows[-1][name] / rows[0][name] / times
        print(f'| {name} | ' + ' | '.join(f'{row[name]:.4g}' for row in rows) + f' | {growth:.3g} |')


if __name__ == '__main__':
    main()
