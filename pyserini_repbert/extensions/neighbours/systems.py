"""The systems that follow the graph of an index: LADR, and GAR, which any reranker may be part of.

LADR has dense scores of the best hits of another ranking, and of their neighbours. Use it where
exact dense search is slow: BM25 finds the first documents, the graph of the index leads from there
to others, and few vectors are read. Kulkarni, MacAvaney, Goharian, Frieder, SIGIR 2023,
https://arxiv.org/abs/2307.16779
"""

from pyserini_repbert.data.values import one_or_more
from pyserini_repbert.systems.registry import StageOption, System, WrappingOption

_PACKAGE = __name__.rpartition('.')[0]

LADR = System(
    name='ladr',
    title='LADR',
    reads_index=True,
    reranker=f'{_PACKAGE}.ladr:LadrReranker',
    stage_options=(
        StageOption('METHOD', 'method', str),
        StageOption('depth=N', 'depth', one_or_more),
    ),
    client_options=('method', 'depth'),
)
GAR = System(
    name='gar',
    title='GAR',
    wrapping_option=WrappingOption(
        'neighbours=N', 'n_neighbours', one_or_more, wrap=f'{_PACKAGE}.reranking:follow_neighbours'
    ),
)
