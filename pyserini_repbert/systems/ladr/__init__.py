"""LADR: dense scores of the best hits of another ranking, and of their neighbours.

Use it where exact dense search is slow: BM25 finds the first documents, the graph of the index
leads from there to others, and few vectors are read. Kulkarni, MacAvaney, Goharian, Frieder,
SIGIR 2023, https://arxiv.org/abs/2307.16779
"""

from pyserini_repbert.data.values import one_or_more
from pyserini_repbert.systems.registry import StageOption, System

SYSTEM = System(
    name='ladr',
    title='LADR',
    reads_index=True,
    reranker='pyserini_repbert.systems.ladr.reranker:LadrReranker',
    stage_options=(
        StageOption('METHOD', 'method', str),
        StageOption('depth=N', 'depth', one_or_more),
    ),
    client_options=('method', 'depth'),
)
