"""Rerankers under one contract: monoBERT, duoBERT with its aggregation, EPIC and CEDR."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.rerank.base import Reranker as Reranker
    from pyserini_repbert.systems.cedr.reranker import CedrReranker as CedrReranker
    from pyserini_repbert.systems.duobert.aggregation import aggregate as aggregate
    from pyserini_repbert.systems.duobert.reranker import DuoBertReranker as DuoBertReranker
    from pyserini_repbert.systems.epic.reranker import EpicReranker as EpicReranker
    from pyserini_repbert.systems.monobert.reranker import MonoBertReranker as MonoBertReranker

_NAMES = {
    'pyserini_repbert.systems.duobert.aggregation': ('aggregate',),
    'pyserini_repbert.rerank.base': ('Reranker',),
    'pyserini_repbert.systems.cedr.reranker': ('CedrReranker',),
    'pyserini_repbert.systems.duobert.reranker': ('DuoBertReranker',),
    'pyserini_repbert.systems.epic.reranker': ('EpicReranker',),
    'pyserini_repbert.systems.monobert.reranker': ('MonoBertReranker',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
