"""Peak memory of the regressions' large steps at 1% and 10% of their real size, extrapolated to all
of it.

python benchmarks/real_size_memory.py
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

# MS MARCO passages, dev.small
PASSAGES = 8_841_823
TOPICS = 6_980
DEPTH = 1000
CHARACTERS = 328  # of a passage on average: 2.9 GB
SHARES = (0.01, 0.1)


def collection(folder: Path, share: float) -> Path:
    """Write `docid<TAB>text` lines for a share of the passages."""
    chance = random.Random(0)
    path = folder / 'collection.tsv'
    words = [f'{chance.getrandbits(24):x}' for _ in range(50_000)]
    with open(path, 'w', encoding='utf-8') as stream:
        for docid in range(round(PASSAGES * share)):
            stream.write(f'{docid}\t{" ".join(chance.choices(words, k=CHARACTERS // 7))}\n')
    return path


def run(folder: Path, name: str, share: float, seed: int) -> Path:
    """Write `qid<TAB>docid<TAB>rank` lines for a share of the topics."""
    chance = random.Random(seed)
    path = folder / name
    with open(path, 'w', encoding='utf-8') as stream:
        for qid in range(round(TOPICS * share)):
            for rank, docid in enumerate(chance.sample(range(PASSAGES), DEPTH), 1):
                stream.write(f'{qid}\t{docid}\t{rank}\n')
    return path


def step(name: str, folder: Path) -> None:
    """Run one step, alone in its process."""
    if name == 'texts':
        from pyserini_repbert.data.passages import CorpusTexts
        from pyserini_repbert.names.corpora import open_corpus

        with open(folder / 'collection.tsv', encoding='utf-8') as stream:
            wanted = [line.partition('\t')[0] for line in stream]
        CorpusTexts(open_corpus(folder / 'collection.tsv'), wanted)
    elif name == 'run':
        from pyserini_repbert.data.runs import read_run

        read_run(folder / 'a.tsv')
    else:
        from pyserini_repbert.commands.fusion import main

        main(
            [
                '--runs',
                str(folder / 'a.tsv'),
                str(folder / 'b.tsv'),
                '--output',
                str(folder / 'c.txt'),
                '--quiet',
            ]
        )


def peak(name: str, folder: Path) -> float:
    """The peak memory of a step's process, in GB."""
    command = [sys.executable, __file__, name, str(folder)]
    return float(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]
    )


def main() -> None:
    """Print a row for each step."""
    print('| step | 1% | 10% | 100%, extrapolated |\n| --- | --: | --: | --: |')
    rows: dict[str, list[float]] = {'texts': [], 'run': [], 'fusion': []}
    for share in SHARES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            collection(folder, share)
            for number, name in enumerate(('a.tsv', 'b.tsv')):
                run(folder, name, share, number)
            for name, found in rows.items():
                found.append(peak(name, folder))
    what = {
        'texts': f'texts of all {PASSAGES:,} passages for `rerank`',
        'run': f'reading a run of {TOPICS:,} x {DEPTH:,}',
        'fusion': 'fusing two of them',
    }
    for name, (small, large) in rows.items():
        whole = large + (large - small) / (SHARES[1] - SHARES[0]) * (1 - SHARES[1])
        print(f'| {what[name]} | {small:.2f} GB | {large:.2f} GB | {whole:.1f} GB |')


if __name__ == '__main__':
    if len(sys.argv) > 1:
        step(sys.argv[1], Path(sys.argv[2]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9)
    else:
        main()
