"""CEDR (MacAvaney et al., 2019): contextual term matching for long documents, on a BERT that reads
query and document.

Use it behind a sparse first stage, on documents of up to a few pages.
https://arxiv.org/abs/1904.07094
"""

from pyserini_repbert.data.values import integer
from pyserini_repbert.systems.cedr.settings import FIRST_STAGE_DEPTHS
from pyserini_repbert.systems.registry import StageOption, System

SYSTEM = System(
    name='cedr',
    title='CEDR',
    reranker='pyserini_repbert.systems.cedr.reranker:CedrReranker',
    task='pyserini_repbert.systems.cedr.training:CedrTask',
    training_settings=('loss', 'vanilla_head'),
    stage_options=(
        StageOption('layers=N', 'n_layers', integer),
        StageOption('max-length=N', 'max_length', integer),
    ),
    stage_depths=FIRST_STAGE_DEPTHS,
)
