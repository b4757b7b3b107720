"""What it takes to say why a hit is there: processor seconds of one thread, a hit at a time.

python benchmarks/reasons.py [--encoder minilm] [--runs 20]

A short passage has three sentences. The longest has no end of a sentence, so that 16 words of 30
are left out in turn: nothing takes more. User and system time are added: with other work beside it,
they vary less than the time on a clock. The least of the runs counts.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from pathlib import Path

import torch

from pyserini_repbert.collection import Collection
from pyserini_repbert.ranking import Ranker

SHORT = (
    'Slugs hide under boards by day. Ring lettuce with copper tape, which they do not cross. '
    'Hedgehogs and toads eat slugs.'
)
_WORDS = 'snail salad tomato water garden lettuce soil plant seed grow frost light bed beer'.split()
LONGEST = ' '.join(f'{_WORDS[number % len(_WORDS)]}{number % 40}' for number in range(100))
QUERY = 'keep slugs off lettuce'


def seconds(ranker: Ranker, docid: str, runs: int) -> float:
    """The least processor seconds in which a ranking explains a hit."""
    ranker.reasons(QUERY, [docid])
    taken = []
    for _ in range(runs):
        start = time.process_time()
        ranker.reasons(QUERY, [docid])
        taken.append(time.process_time() - start)
    return min(taken)


def main() -> None:
    """Print what each ranking takes for each passage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--encoder', default='minilm')
    parser.add_argument('--runs', type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection.open(Path(folder) / 'mine', encoder=options.encoder)
        with collection:
            collection.sync([('short', SHORT), ('longest', LONGEST)])
            with contextlib.closing(collection.searcher()) as searcher:
                for part in searcher.parts:
                    for docid in ('short', 'longest'):
                        taken = seconds(part, docid, options.runs)
                        print(f'{part.name:>8} {docid:>8} {1000 * taken:7.1f} ms')


if __name__ == '__main__':
    main()
