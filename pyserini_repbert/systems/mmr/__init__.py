"""Maximal marginal relevance: hits that are relevant, and unlike the hits above them.

Use it as the last stage, where the first hits say the same. It reads the vectors of the index, and
no text. Carbonell and Goldstein, SIGIR 1998, https://doi.org/10.1145/290941.291025
"""

from pyserini_repbert.data.values import share
from pyserini_repbert.systems.registry import StageOption, System

SYSTEM = System(
    name='mmr',
    title='MMR',
    reads_index=True,
    reranker='pyserini_repbert.systems.mmr.reranker:MmrReranker',
    stage_options=(StageOption('diversify=D', 'diversify', share),),
    client_options=('diversify',),
)
