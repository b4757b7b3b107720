"""Searchers with Pyserini's interface: dense, on EPIC's impacts, and hybrid with Lucene."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.encode.epic import EpicImpactQueryEncoder as EpicImpactQueryEncoder
    from pyserini_repbert.search.dense import RepBertSearcher as RepBertSearcher
    from pyserini_repbert.search.hybrid import HybridSearcher as HybridSearcher
    from pyserini_repbert.search.sparse import EpicImpactSearcher as EpicImpactSearcher

_NAMES = {
    'pyserini_repbert.encode.epic': ('EpicImpactQueryEncoder',),
    'pyserini_repbert.search.dense': ('RepBertSearcher',),
    'pyserini_repbert.search.hybrid': ('HybridSearcher',),
    'pyserini_repbert.search.sparse': ('EpicImpactSearcher',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
