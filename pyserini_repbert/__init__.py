"""Neural ranking for Pyserini: RepBERT, EPIC, monoBERT/duoBERT, CEDR, and interleave fusion with Lucene's rankings."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

__version__ = '0.3.0'

if TYPE_CHECKING:
    from pyserini_repbert.interop.pyserini.registration import register as register
    from pyserini_repbert.ranking import Candidate as Candidate, Query as Query, Ranking as Ranking

__getattr__, __dir__, __all__ = exports(__name__)
