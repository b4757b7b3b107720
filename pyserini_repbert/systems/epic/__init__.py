"""EPIC (MacAvaney et al., 2020): sparse vectors over the vocabulary; a query costs a few sums.

Use it as a second stage whose passage vectors come from an index.
https://arxiv.org/abs/2004.14245
"""

from pyserini_repbert.systems.registry import System
from pyserini_repbert.systems.stage_options import TERM_WEIGHTS_OPTIONS

SYSTEM = System(
    name='epic',
    title='EPIC',
    term_weights_encoder='pyserini_repbert.systems.epic.encoder:EpicEncoder',
    reranker='pyserini_repbert.systems.epic.reranker:EpicReranker',
    task='pyserini_repbert.systems.epic.training:EpicTask',
    training_settings=('loss',),
    stage_options=TERM_WEIGHTS_OPTIONS,
)
