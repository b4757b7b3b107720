"""The pipeline H0 … HN: a first stage, and rerankers that each take the best candidates of the one before."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.names.texts import open_texts as open_texts
    from pyserini_repbert.pipeline.costs import StageCost as StageCost
    from pyserini_repbert.pipeline.pipeline import Pipeline as Pipeline
    from pyserini_repbert.pipeline.reranking import Reranked as Reranked, run_stages as run_stages
    from pyserini_repbert.pipeline.specs import (
        StageSpec as StageSpec,
        open_reranker as open_reranker,
        parse_stage as parse_stage,
    )
    from pyserini_repbert.pipeline.stages import Stage as Stage

__getattr__, __dir__, __all__ = exports(__name__)
