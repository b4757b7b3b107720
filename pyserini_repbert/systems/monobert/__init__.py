"""monoBERT (Nogueira et al., 2019, section 3.2): reads each candidate beside the query.

Use it as a second stage, on hundreds of candidates of a first stage.
https://arxiv.org/abs/1910.14424
"""

from pyserini_repbert.data.values import integer
from pyserini_repbert.systems.registry import StageOption, System

SYSTEM = System(
    name='monobert',
    title='monoBERT',
    reranker='pyserini_repbert.systems.monobert.reranker:MonoBertReranker',
    task='pyserini_repbert.systems.monobert.training:MonoBertTask',
    stage_options=(
        StageOption('layout=NAME', 'layout', str),
        StageOption('max-length=N', 'max_length', integer),
    ),
)
