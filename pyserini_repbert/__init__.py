"""Neural ranking for Pyserini: RepBERT, EPIC, monoBERT/duoBERT, CEDR, and interleave fusion with Lucene's rankings."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

__version__ = '0.1.0'

if TYPE_CHECKING:
    from pyserini_repbert.pyserini_bridge.plugin import register as register
    from pyserini_repbert.ranking import Candidate as Candidate
    from pyserini_repbert.ranking import Query as Query
    from pyserini_repbert.ranking import Ranking as Ranking

__getattr__, __dir__, __all__ = exports(
    __name__,
    {'Query': '.ranking', 'Candidate': '.ranking', 'Ranking': '.ranking', 'register': '.pyserini_bridge.plugin'},
)
