"""The pipeline H0 … HN: a first stage, and rerankers that each take the best candidates of the
one before.
"""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.indexes.machine import Machine as Machine
    from pyserini_repbert.indexes.texts import open_texts as open_texts
    from pyserini_repbert.names.rerankers import open_reranker as open_reranker
    from pyserini_repbert.pipeline.opening import open_pipeline as open_pipeline
    from pyserini_repbert.pipeline.pipeline import (
        Pipeline as Pipeline,
        run_pipeline as run_pipeline,
    )
    from pyserini_repbert.pipeline.spec import (
        PipelineSpec as PipelineSpec,
        StageSpec as StageSpec,
        parse_stage as parse_stage,
    )
    from pyserini_repbert.trace import StageCost as StageCost

_NAMES = {
    'pyserini_repbert.names.rerankers': ('open_reranker',),
    'pyserini_repbert.indexes.texts': ('open_texts',),
    'pyserini_repbert.pipeline.opening': ('open_pipeline',),
    'pyserini_repbert.pipeline.pipeline': ('Pipeline', 'run_pipeline'),
    'pyserini_repbert.indexes.machine': ('Machine',),
    'pyserini_repbert.pipeline.spec': ('PipelineSpec', 'StageSpec', 'parse_stage'),
    'pyserini_repbert.trace': ('StageCost',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
