"""Which values do EPIC's passage vectors have? The table of `docs/papers/epic.md`.

    python regressions/studies/epic_values.py --model epic-demo --corpus demo

Each passage has a value for each wordpiece of the vocabulary. As in EPIC's Figure 2, values are
rounded up to the next tenth, and counted. Only checkpoints of the paper's equations have values
below 0, which are counted with 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from pyserini_repbert.evaluate.tables import markdown
from pyserini_repbert.names.corpora import open_corpus
from pyserini_repbert.systems.epic.encoder import EpicEncoder

PASSAGES_AT_ONCE = 64
TENTHS_SHOWN = 10


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--model', required=True)
    parser.add_argument('--corpus', required=True)
    options = parser.parse_args()
    encoder = EpicEncoder(options.model)
    counts = count_values(encoder, (passage.text for passage in open_corpus(options.corpus)))
    print(markdown(['values up to', 'values', 'share', 'share of all up to here'], rows(counts)))


def count_values(encoder: EpicEncoder, texts: Iterable[str]) -> NDArray[np.int64]:
    """How many values of all texts are at most 0, above 0 and at most 0.1, at most 0.2, …"""
    counts = np.zeros(1, dtype=np.int64)
    for some in batches(texts):
        vectors = encoder.encode_dense(some)
        tenths = np.ceil(vectors * 10).astype(np.int64).clip(min=0)
        of_batch = np.bincount(tenths.ravel(), minlength=len(counts))
        of_batch[: len(counts)] += counts
        counts = of_batch
    return counts


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts, some at a time."""
    rest = iter(texts)
    while some := list(islice(rest, PASSAGES_AT_ONCE)):
        yield some


def rows(counts: NDArray[np.int64]) -> list[list[str]]:
    """A row for each of the first tenths, and one for all values beyond them."""
    total = int(counts.sum())
    table = []
    so_far = 0
    for tenth, count in enumerate(counts[: TENTHS_SHOWN + 1]):
        so_far += int(count)
        table.append([f'{tenth / 10:.1f}', *shares(int(count), so_far, total)])
    beyond = total - so_far
    table.append([f'{len(counts) / 10 - 0.1:.1f}', *shares(beyond, total, total)])
    return table


def shares(count: int, so_far: int, total: int) -> list[str]:
    """The cells of a count: itself, its share, and the share of all that are not larger."""
    return [f'{count:,}', f'{count / total:.2%}', f'{so_far / total:.2%}']


if __name__ == '__main__':
    main()
