"""Searchers with Pyserini's interface: dense, on EPIC's impacts, and hybrid with Lucene."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.indexes.dense.searcher import (
        DenseSearcher as DenseSearcher,
        RepBertSearcher as RepBertSearcher,
    )
    from pyserini_repbert.search.hybrid import HybridSearcher as HybridSearcher
    from pyserini_repbert.systems.impact_searcher import (
        EpicImpactQueryEncoder as EpicImpactQueryEncoder,
        EpicImpactSearcher as EpicImpactSearcher,
    )

_NAMES = {
    'pyserini_repbert.indexes.dense.searcher': ('DenseSearcher', 'RepBertSearcher'),
    'pyserini_repbert.search.hybrid': ('HybridSearcher',),
    'pyserini_repbert.systems.impact_searcher': ('EpicImpactQueryEncoder', 'EpicImpactSearcher'),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
