"""Rerankers under one contract: monoBERT, duoBERT with its aggregation, EPIC and CEDR."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.rerank.aggregation import aggregate as aggregate
    from pyserini_repbert.rerank.base import Reranker as Reranker
    from pyserini_repbert.rerank.cedr import CedrReranker as CedrReranker
    from pyserini_repbert.rerank.cross_encoder import MonoBertReranker as MonoBertReranker
    from pyserini_repbert.rerank.duobert import DuoBertReranker as DuoBertReranker
    from pyserini_repbert.rerank.epic import EpicReranker as EpicReranker

_NAMES = {
    'pyserini_repbert.rerank.aggregation': ('aggregate',),
    'pyserini_repbert.rerank.base': ('Reranker',),
    'pyserini_repbert.rerank.cedr': ('CedrReranker',),
    'pyserini_repbert.rerank.duobert': ('DuoBertReranker',),
    'pyserini_repbert.rerank.epic': ('EpicReranker',),
    'pyserini_repbert.rerank.cross_encoder': ('MonoBertReranker',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
