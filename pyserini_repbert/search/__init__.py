"""Searchers with Pyserini's interface: dense, on EPIC's impacts, and hybrid with Lucene."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.search.dense import RepBertSearcher as RepBertSearcher
    from pyserini_repbert.search.hybrid import HybridSearcher as HybridSearcher
    from pyserini_repbert.search.impact import (
        EpicImpactQueryEncoder as EpicImpactQueryEncoder,
        EpicImpactSearcher as EpicImpactSearcher,
    )

_MODULES = {
    'RepBertSearcher': 'pyserini_repbert.search.dense',
    'HybridSearcher': 'pyserini_repbert.search.hybrid',
    'EpicImpactQueryEncoder': 'pyserini_repbert.search.impact',
    'EpicImpactSearcher': 'pyserini_repbert.search.impact',
}
__getattr__, __dir__, __all__ = lazily(__name__, _MODULES)
