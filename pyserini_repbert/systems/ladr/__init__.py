"""LADR: dense scores of the best hits of another ranking, and of their neighbours.

Use it where exact dense search is slow: BM25 finds the first documents, the graph of the index
leads from there to others, and few vectors are read. Kulkarni, MacAvaney, Goharian, Frieder,
SIGIR 2023, https://arxiv.org/abs/2307.16779
"""

from pyserini_repbert.data.values import integer
from pyserini_repbert.systems.registry import StageOption, System


def _one_or_more(text: str) -> int:
    """A whole number from 1 on. Raises ValueError for anything else."""
    return integer(text, 1)


SYSTEM = System(
    name='ladr',
    title='LADR',
    reads_index=True,
    reranker='pyserini_repbert.systems.ladr.reranker:LadrReranker',
    stage_options=(
        StageOption('METHOD', 'method', str),
        StageOption('depth=N', 'depth', _one_or_more),
    ),
    client_options=('method', 'depth'),
)
