"""EPIC (MacAvaney et al., 2020): sparse vectors over the vocabulary; a query costs a few sums.

Use it as a second stage whose passage vectors come from an index.
https://arxiv.org/abs/2004.14245
"""

from pyserini_repbert.data.values import integer
from pyserini_repbert.systems.registry import StageOption, System

SYSTEM = System(
    name='epic',
    title='EPIC',
    impact_encoder='pyserini_repbert.systems.epic.encoder:EpicEncoder',
    reranker='pyserini_repbert.systems.epic.reranker:EpicReranker',
    task='pyserini_repbert.systems.epic.training:EpicTask',
    stage_options=(
        StageOption('index=FOLDER', 'index', str),
        StageOption('missing=encode|refuse', 'missing', str),
        StageOption('prune=N', 'prune', integer),
        StageOption('max-length=N', 'max_length', integer),
    ),
)
