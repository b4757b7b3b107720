"""Searchers under Pyserini's contract: dense, and (with Lucene) hybrid."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.search.dense import RepBertSearcher as RepBertSearcher
    from pyserini_repbert.search.hybrid import HybridSearcher as HybridSearcher
    from pyserini_repbert.search.impact import (
        EpicImpactQueryEncoder as EpicImpactQueryEncoder,
        EpicImpactSearcher as EpicImpactSearcher,
    )

__getattr__, __dir__, __all__ = exports(__name__)
