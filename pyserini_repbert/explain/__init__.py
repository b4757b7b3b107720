"""Why passages get their scores: EPIC's weights, CEDR's similarity matrices, duoBERT's pairs,
monoBERT's scores.
"""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.explain.explaining import explanation as explanation
    from pyserini_repbert.rerank.term_explanations import (
        explain_indexed as explain_indexed,
        explain_text as explain_text,
    )
    from pyserini_repbert.systems.cedr.reranker import similarity_maps as similarity_maps

_NAMES = {
    'pyserini_repbert.systems.cedr.reranker': ('similarity_maps',),
    'pyserini_repbert.rerank.term_explanations': ('explain_indexed', 'explain_text'),
    'pyserini_repbert.explain.explaining': ('explanation',),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
