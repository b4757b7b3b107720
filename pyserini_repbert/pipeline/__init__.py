"""The pipeline H0 … HN: a first stage, and rerankers that each take the best candidates of the one before."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.pipeline.costs import StageCost as StageCost
    from pyserini_repbert.pipeline.reranking import Reranked as Reranked
    from pyserini_repbert.pipeline.reranking import run_stages as run_stages
    from pyserini_repbert.pipeline.specs import StageSpec as StageSpec
    from pyserini_repbert.pipeline.specs import open_reranker as open_reranker
    from pyserini_repbert.pipeline.specs import parse_stage as parse_stage
    from pyserini_repbert.pipeline.stages import Pipeline as Pipeline
    from pyserini_repbert.pipeline.stages import Stage as Stage
    from pyserini_repbert.pipeline.texts import open_texts as open_texts

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        'Pipeline': '.stages',
        'Stage': '.stages',
        'StageCost': '.costs',
        'StageSpec': '.specs',
        'parse_stage': '.specs',
        'open_reranker': '.specs',
        'open_texts': '.texts',
        'run_stages': '.reranking',
        'Reranked': '.reranking',
    },
)
