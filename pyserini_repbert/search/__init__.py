"""Searchers with Pyserini's interface: dense, on EPIC's impacts, and hybrid with Lucene."""

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
