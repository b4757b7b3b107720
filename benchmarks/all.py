"""The benchmarks of RESULTS.md in one go, on a quiet machine: medians and spread of several runs.

python benchmarks/all.py [--runs 5] [--only fusion exact_search] [--output benchmarks/RESULTS.md]

Each benchmark runs in a separate process, `--runs` times. One that lacks a package or a GPU is
named before anything starts, and left out; one that fails is named in the results, which are
written again after each benchmark.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import median

import figures
from figures import Figure, number

HERE = Path(__file__).parent
CUDA = 'a CUDA device'
ENVIRONMENT = {
    'GOMP_SPINCOUNT': '10000',
    'ONEDNN_PRIMITIVE_CACHE_CAPACITY': '64',
    **os.environ,
}  # as the package's commands do
BENCHMARKS: dict[str, tuple[str, ...]] = {  # script -> its needs: the packages of its peers, a GPU
    'exact_search': (),
    'ann': (),
    'encoding': ('sentence_transformers',),
    'encoding_memory': (),
    'folders': ('sentence_transformers', 'onnx', 'onnxscript', 'onnxruntime'),
    'late_interaction': ('sentence_transformers',),
    'fusion': ('ranx',),
    'rerank': ('sentence_transformers', 'onnx', 'onnxscript', 'onnxruntime'),
    'cedr': (),
    'training': ('sentence_transformers', 'datasets'),
    'epic': (),
    'sparse': (),
    'collection': ('pyserini',),
    'collection_search': ('pyserini',),
    'starting': ('pyserini',),
    'serve': ('fastapi', 'uvicorn', 'prometheus_client'),
    'gpu': (CUDA, 'sentence_transformers', 'datasets'),
    'gpu_search': (CUDA,),
}
PACKAGES = (
    'torch',
    'numpy',
    'faiss-cpu',
    'pyserini',
    'transformers',
    'sentence-transformers',
    'ranx',
    'onnxruntime',
)


def machine() -> str:
    """The processor, its cores, and its instructions for bfloat16."""
    info = (
        Path('/proc/cpuinfo').read_text(encoding='utf-8') if Path('/proc/cpuinfo').is_file() else ''
    )
    lines = dict(line.split('\t', 1) for line in info.splitlines() if '\t' in line)
    model = lines.get('model name', platform.processor()).strip('\t: ')
    flags = lines.get('flags', '').split()
    native = [
        told
        for flag, told in (('avx512_bf16', 'AVX-512 BF16'), ('amx_tile', 'AMX'))
        if flag in flags
    ]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()
    return f'{model}, {cores} cores, {" and ".join(native) or "no bfloat16"}'


def lacks(need: str) -> bool:
    """Whether a package, or a GPU, is not here."""
    if need != CUDA:
        return importlib.util.find_spec(need) is None
    import torch

    return not torch.cuda.is_available()


def run(name: str, runs: int) -> list[tuple[Figure, float, float]]:
    """The figures of a benchmark, medians of all runs, each with its least and its largest value.

    Raises
    ------
    subprocess.CalledProcessError
        if a run fails
    """
    found: dict[str, list[Figure]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for number_of_run in range(runs):
            print(f'{name}, run {number_of_run + 1} of {runs}', flush=True)
            target = Path(folder) / f'{number_of_run}.json'
            subprocess.run(
                [sys.executable, HERE / f'{name}.py', '--figures', target],
                check=True,
                env=ENVIRONMENT,
            )
            for values in json.loads(target.read_text(encoding='utf-8')):
                found[values['name']].append(Figure(**values))
    told = []
    for own in found.values():
        values = [figure.value for figure in own]
        told.append((replace(own[0], value=median(values)), min(values), max(values)))
    return told


def table(results: dict[str, list[tuple[Figure, float, float]]]) -> list[str]:
    """The lines of a Markdown table with a row for each figure."""
    rows = [
        '| what, and against whom | script | median | from, to | goal | |',
        '|---|---|---:|---|---|---|',
    ]
    for name, told in results.items():
        for figure, least, most in told:
            unit = figure.unit
            spread = f'{number(least, unit)}, {number(most, unit)}'
            cells = [figure.name, f'`benchmarks/{name}.py`', number(figure.value, unit), spread]
            rows.append(f'| {" | ".join([*cells, figure.told_goal, figure.verdict])} |')
    return rows


def main() -> None:
    """Run what can be run, and write the results."""
    parser = figures.parser(__doc__)
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument('--only', nargs='+', choices=tuple(BENCHMARKS), default=tuple(BENCHMARKS))
    parser.add_argument('--output', type=Path, default=HERE / 'RESULTS.md')
    options: argparse.Namespace = parser.parse_args()
    lacking = {
        name: missing
        for name in options.only
        if (missing := [own for own in BENCHMARKS[name] if lacks(own)])
    }
    for name, missing in lacking.items():
        print(f'{name} is left out: it needs {", ".join(missing)}', file=sys.stderr)
    load = os.getloadavg()[0]
    if load > 0.5:
        print(
            f'the machine is busy (load {load:.1f}): figures will be lower than on a quiet one',
            file=sys.stderr,
        )
    where = (
        f'{machine()}; {datetime.date.today()}; medians of {options.runs} runs; load at the '
        f'start {load:.1f}.'
    )
    left_out = {
        name: f'was left out: it needs {", ".join(missing)}' for name, missing in lacking.items()
    }
    results: dict[str, list[tuple[Figure, float, float]]] = {}
    for name in options.only:
        if name in lacking:
            continue
        try:
            results[name] = run(name, options.runs)
        except subprocess.CalledProcessError as error:
            left_out[name] = f'failed with status {error.returncode}'
            print(f'{name} {left_out[name]}', file=sys.stderr)
        rows = table(results)
        remarks = [f'- `{script}.py` {why}' for script, why in left_out.items()]
        options.output.write_text(
            '\n'.join([*about(where), '', *rows, '', *remarks]).rstrip() + '\n', encoding='utf-8'
        )
    figures.tell(options, [figure for told in results.values() for figure, _, _ in told])
    if any(name not in lacking for name in left_out):
        sys.exit(1)


def about(where: str) -> list[str]:
    """The lines above the table."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f'{package} {importlib.metadata.version(package)}')
        except importlib.metadata.PackageNotFoundError:
            continue
    return [
        '# Benchmarks',
        '',
        where,
        '',
        f'Python {platform.python_version()}, {", ".join(versions)}.',
        '',
        '`x` is a ratio: how many times faster than the peer named after the colon.',
        f'Written by `{" ".join(["python", "benchmarks/all.py", *sys.argv[1:]])}`.',
    ]


if __name__ == '__main__':
    main()
