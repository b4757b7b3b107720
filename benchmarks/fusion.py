"""Fusing two runs of MS MARCO's size, in memory against Pyserini's and ranx's RRF, and from file to
file; reading one.

    python benchmarks/fusion.py [--queries 6980] [--hits 1000]

The runs are synthetic: random docids of MS MARCO's range. A share that falls from 0.8 at the top
to 0.15 at the end is common to both, as in BM25 against a dense run. All methods get runs
in their own form, and give a fused run in their own form; each is timed twice, after a small run
that warms up compilers, in seconds of processor time: all are single-threaded, and the wall clock
of a busy machine says little. The faster time counts, as of reading: a machine's memory is slow
where nothing has used it before. File to file runs on one core. Reading a run in TREC's format is
compared with pandas (which neither sorts nor groups it), Pyserini and ranx.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import figures
import numpy as np
from figures import Figure

from pyserini_repbert.data.runs import write_run
from pyserini_repbert.fusion import fuse
from pyserini_repbert.ranking import Ranking, Run

N_PASSAGES = 8_841_823
SEED = 42
_ROUNDS = 2
GOAL_RATIO = 10
GOAL_SECONDS = 6  # for 6,980 queries x 2 runs x 1,000 hits on one core


def synthetic_runs(n_queries: int, n_hits: int) -> tuple[Run, Run]:
    """Two runs over the same queries, whose scores fall as BM25's and inner products do."""
    rng = np.random.default_rng(SEED)
    shared_share = np.linspace(0.8, 0.15, n_hits)
    first: Run = {}
    second: Run = {}
    for i in range(n_queries):
        ids = rng.choice(N_PASSAGES, 2 * n_hits, replace=False)
        own = ids[:n_hits]
        other = ids[n_hits:].copy()
        shared = np.flatnonzero(rng.random(n_hits) < shared_share)
        noisy = np.argsort(shared + rng.normal(0, n_hits / 8, len(shared)))
        other[shared] = own[shared[noisy]]
        for run, docids, top in ((first, own, 30.0), (second, other, 110.0)):
            scores = np.sort(top * rng.beta(2, 5, n_hits))[::-1]
            run[str(1_000_000 + i)] = Ranking(
                [str(docid) for docid in docids.tolist()], scores.tolist()
            )
    return first, second


def seconds(task: Callable[[], object]) -> float:
    """Processor seconds of one call, finished child processes included."""
    before = os.times()
    task()
    return sum(os.times()[:4]) - sum(before[:4])


def pyserini_task(runs: tuple[Run, Run], n_hits: int) -> Callable[[], object]:
    """Pyserini's reciprocal rank fusion of TrecRun frames."""
    import pandas as pd
    from pyserini.fusion import reciprocal_rank_fusion
    from pyserini.trectools import TrecRun

    frames = []
    for run in runs:
        frame = TrecRun()
        lengths = [len(ranking.docids) for ranking in run.values()]
        frame.run_data = pd.DataFrame(
            {
                'topic': np.repeat([int(qid) for qid in run], lengths),
                'q0': 'Q0',
                'docid': [docid for ranking in run.values() for docid in ranking.docids],
                'rank': np.concatenate([np.arange(1, n + 1) for n in lengths]),
                'score': [score for ranking in run.values() for score in ranking.scores],
                'tag': 'tag',
            }
        )
        frames.append(frame)
    return lambda: reciprocal_rank_fusion(frames, rrf_k=60, k=n_hits)


def ranx_task(runs: tuple[Run, Run], n_hits: int) -> Callable[[], object]:
    """ranx's reciprocal rank fusion (it does not truncate)."""
    import ranx

    theirs = [
        ranx.Run(
            {qid: dict(zip(own.docids, own.scores, strict=True)) for qid, own in run.items()},
            name=str(i),
        )
        for i, run in enumerate(runs)
    ]
    return lambda: ranx.fuse(runs=theirs, method='rrf', params={'k': 60})


# Name of a reader -> its import, and its expression for the run in the file `path`.
READERS = {
    'pyserini_repbert': (
        'import pyarrow.compute, pyarrow.csv; from pyserini_repbert.data.runs import read_run',
        'read_run(path)',
    ),
    'pandas': (
        'import pandas',
        "pandas.read_csv(path, sep=' ', header=None, dtype={0: str, 2: str})",
    ),
    'Pyserini': ('from pyserini.trectools import TrecRun', 'TrecRun(path)'),
    'ranx': ('import ranx', "ranx.Run.from_file(path, kind='trec')"),
}
_READ = """
import sys, time
path = sys.argv[1]
{imports}
before = time.process_time()
run = {call}
taken = time.process_time() - before
peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))
print(taken, int(peak) / 1024)
"""


def reading(run: Run) -> dict[str, tuple[float, float]]:
    """Reader -> its processor seconds for a TREC run file, and the peak memory of its process in
    MB (on Linux).
    """
    best: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / 'run.trec')
        write_run(path, run, 'trec')
        print(
            f'reading a TREC run of {sum(map(len, run.values()))} lines, '
            f'{Path(path).stat().st_size / 1e6:.0f} MB:'
        )
        for name, (imports, call) in list(READERS.items()) * _ROUNDS:
            command = [
                sys.executable,
                '-W',
                'ignore',
                '-c',
                _READ.format(imports=imports, call=call),
                path,
            ]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f'{name:<16} not measured: {done.stderr.strip().splitlines()[-1]}')
                continue
            taken, peak = map(float, done.stdout.split()[-2:])
            print(f'{name:<16} {taken:7.2f} s, {peak:6.0f} MB')
            best[name] = min(best.get(name, (taken, peak)), (taken, peak))
    return best


def file_to_file(runs: tuple[Run, Run]) -> tuple[float, float, float]:
    """Processor and wall-clock seconds of the fusion command on one core, and the megabytes that
    it reads.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ('a.tsv', 'b.tsv', 'fused.tsv')]
        for path, run in zip(paths, runs, strict=False):
            write_run(path, run, 'msmarco')
        size = sum(Path(path).stat().st_size for path in paths[:2]) / 1e6
        command = [
            sys.executable,
            '-m',
            'pyserini_repbert.fusion',
            '--runs',
            *paths[:2],
            '--output',
            paths[2],
        ]
        core = min(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else None

        def one_core() -> None:
            if core is not None:
                os.sched_setaffinity(0, {core})

        options = ['--output-format', 'msmarco', '--quiet']
        start = time.perf_counter()
        taken = seconds(
            lambda: subprocess.run([*command, *options], check=True, preexec_fn=one_core)
        )
        return taken, time.perf_counter() - start, size


def main() -> None:
    os.environ.setdefault('NUMBA_NUM_THREADS', '1')
    parser = figures.parser(__doc__)
    parser.add_argument('--queries', type=int, default=6980)
    parser.add_argument('--hits', type=int, default=1000)
    options = parser.parse_args()
    runs = synthetic_runs(options.queries, options.hits)
    shared = np.mean(
        [
            len({*run.docids} & {*runs[1][qid].docids}) / len(run.docids)
            for qid, run in runs[0].items()
        ]
    )
    print(f'{options.queries} queries x 2 runs x {options.hits} hits, {shared:.0%} of them in both')
    ours = {}
    for method in ('interleave', 'rrf', 'interpolation'):
        ours[method] = min(
            seconds(lambda method=method: fuse(runs, method, options.hits)) for _ in range(_ROUNDS)
        )
        print(f'pyserini_repbert {method:<14} {ours[method]:7.2f} s')
    told = []
    for name, make in (('Pyserini', pyserini_task), ('ranx', ranx_task)):
        small = tuple({qid: run[qid] for qid in list(run)[:20]} for run in runs)
        try:
            make(small, options.hits)()
        except ImportError as error:
            print(f'{name:<16} rrf            not measured: {error}')
            continue
        task = make(runs, options.hits)
        theirs = min(seconds(task) for _ in range(_ROUNDS))
        print(f'{name:<16} rrf            {theirs:7.2f} s')
        told += [
            Figure(
                f'fusing by {method}: RRF of {name}',
                theirs / ours[method],
                'x',
                GOAL_RATIO,
            )
            for method in ours
        ]
    read = reading(runs[0])
    taken, peak = read.pop('pyserini_repbert')
    told += [
        Figure('reading one TREC run', taken, 's'),
        Figure('reading one TREC run, peak memory', peak, 'MB'),
    ]
    told += [
        Figure(f'reading one TREC run: {name}', theirs / taken, 'x', 1)
        for name, (theirs, _) in read.items()
    ]
    taken, wall, size = file_to_file(runs)
    print(f'file to file, one core, {size:.0f} MB in: {taken:.1f} s, {wall:.1f} s by the clock')
    full = (options.queries, options.hits) == (6980, 1000)
    name = f'interleaving {options.queries} x 2 x {options.hits}, file to file, one core'
    figures.tell(
        options, [*told, Figure(name, taken, 's', GOAL_SECONDS if full else None, at_most=True)]
    )


if __name__ == '__main__':
    main()
