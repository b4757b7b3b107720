"""Growth with the number of passages: for each size, a process makes a bundle, opens it, searches
it, builds --ann.

python benchmarks/bundle_growth.py [--sizes 10000 100000 1000000] [--dimension 384] [--queries 200]
[--no-ann]

Vectors are standard normal times 1/sqrt(rank) along the dimension of that rank, each made from its
row's number when it is asked for, so that the peak memory is writing's. The table has each figure
and its growth from the smallest to the largest size, divided by the growth of the number of
passages (1.00 is linear; opening should stay constant). An index is opened once its checksums can
be remembered, two seconds after it was written. No model is run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import figures
import numpy as np
from figures import Figure
from numpy.typing import NDArray
from rounds import best_times

from pyserini_repbert.data.passages import Passage
from pyserini_repbert.encode import encode_corpus
from pyserini_repbert.index import DenseBundle
from pyserini_repbert.search.exact import ExactIndex

_REMEMBERED = (
    2.5  # seconds after which a file's checksum is remembered, since it can no longer change unseen
)


class Synthetic:
    """An encoder of row numbers."""

    name = 'synthetic'
    weights_sha256 = '0' * 64
    limit = 1
    precision = 'float32'
    pooling = 'mean'
    config_sha256 = tokenizer_sha256 = None

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._scale = (np.arange(1, dimension + 1) ** -0.5).astype(np.float32)

    def embed(self, texts: list[str], **_: object) -> NDArray[np.float32]:
        """float32 (n, d), each row seeded by its own number, so that batches do not matter."""
        rows = [np.random.Generator(np.random.SFC64(int(text))) for text in texts]
        drawn = [random.standard_normal(self.dimension, dtype=np.float32) for random in rows]
        found: NDArray[np.float32] = np.stack(drawn) * self._scale
        return found


def peak() -> int:
    """Peak memory of this process, in MiB (on Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def once(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measured(count: int, options: argparse.Namespace) -> dict[str, float]:
    """The figures of one size, in this process."""
    found: dict[str, float] = {'passages': count}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / 'bundle'
        encoder = Synthetic(options.dimension)
        passages = (Passage(f'd{row}', str(row)) for row in range(count))
        found['write s'] = once(lambda: encode_corpus(passages, encoder, folder))  # type: ignore[arg-type]
        found['write peak MB'] = peak()
        found['MB'] = sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) / 1e6
        time.sleep(_REMEMBERED)
        found['first opening ms'] = 1000 * once(lambda: DenseBundle(folder))
        found['open ms'] = 1000 * best_times({'open': lambda: DenseBundle(folder)}, 20)['open']
        bundle = DenseBundle(folder)
        found['first docid ms'] = 1000 * once(lambda: bundle.docids(np.arange(1)))
        queries = encoder.embed([str(count + number) for number in range(options.queries)])
        exact = ExactIndex(bundle)
        ways = {
            'one ms': lambda: exact.search(queries[:1], 1000),
            f'{options.queries} ms': lambda: exact.search(queries, 1000),
        }
        found |= {name: 1000 * seconds for name, seconds in best_times(ways, 3).items()}
        found['search peak MB'] = peak()
        if options.ann:
            from pyserini_repbert.extensions.approximate import AnnSettings, build_ann
            from pyserini_repbert.extensions.approximate.bundles import BundleAnn

            found['ann build s'] = once(lambda: build_ann(bundle.folder, AnnSettings(recall=0.9)))
            index = BundleAnn(bundle)
            found['ann one ms'] = (
                1000 * best_times({'': lambda: index.search(queries[:1], 1000)}, 5)['']
            )
            found['ann recall'] = index.record.recall
            found['ann peak MB'] = peak()
    return found


def main() -> None:
    """A process a size, a table, and the growth of each figure."""
    parser = figures.parser(__doc__)
    parser.add_argument('--sizes', type=int, nargs='+', default=[10_000, 100_000, 1_000_000])
    parser.add_argument('--dimension', type=int, default=384)
    parser.add_argument('--queries', type=int, default=200)
    parser.add_argument('--no-ann', dest='ann', action='store_false')
    parser.add_argument(
        '--here', action='store_true', help='measure the one size in this process, as JSON'
    )
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measured(options.sizes[0], options)))
        return
    rows = []
    for size in options.sizes:
        command = [
            sys.executable,
            __file__,
            '--here',
            '--sizes',
            str(size),
            '--dimension',
            str(options.dimension),
        ]
        command += ['--queries', str(options.queries), *([] if options.ann else ['--no-ann'])]
        rows.append(
            json.loads(
                subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            )
        )
    first = rows[0]
    last = rows[-1]
    times = last['passages'] / first['passages']
    print(
        '| figure | ' + ' | '.join(f'{row["passages"]:,}' for row in rows) + ' | growth / linear |'
    )
    print('|---|' + '---:|' * (len(rows) + 1))
    for name in (name for name in first if name != 'passages'):
        growth = last[name] / first[name] / times
        print(
            f'| {name} | ' + ' | '.join(f'{row[name]:.4g}' for row in rows) + f' | {growth:.3g} |'
        )
    spread = f'{last["passages"]:,} passages against {first["passages"]:,}'
    queries = f'{options.queries} ms'
    figures.tell(
        options,
        [
            Figure(
                f'opening an index: {spread}',
                last['open ms'] / first['open ms'],
                'x',
                1.1,
                at_most=True,
            ),
            *(
                Figure(
                    f'{told}, growth over linear: {spread}',
                    last[name] / first[name] / times,
                    'x',
                    1.1,
                    at_most=True,
                )
                for told, name in (('writing', 'write s'), ('exact search, many queries', queries))
            ),
            Figure(
                f'memory of search, growth: {spread}',
                last['search peak MB'] / first['search peak MB'],
                'x',
            ),
        ],
    )


if __name__ == '__main__':
    main()
