"""PyTerrier transformers for retrieval, fusion and reranking, and indexers.

Tested with python-terrier 1.0 (pyterrier 1.1.2) and pandas 3.1.1 on Python 3.11.
"""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.interop.pyterrier.artifacts import (
        DenseArtifact as DenseArtifact,
        EpicArtifact as EpicArtifact,
        EpicIndexer as EpicIndexer,
        RepBertIndexer as RepBertIndexer,
    )
    from pyserini_repbert.interop.pyterrier.rerankers import (
        Interleave as Interleave,
        Rerank as Rerank,
    )
    from pyserini_repbert.interop.pyterrier.retrievers import (
        HybridRetriever as HybridRetriever,
        LuceneRetriever as LuceneRetriever,
        PassageText as PassageText,
        RepBertRetriever as RepBertRetriever,
        Retriever as Retriever,
    )

_NAMES = {
    f'{__name__}.artifacts': ('DenseArtifact', 'EpicArtifact', 'EpicIndexer', 'RepBertIndexer'),
    f'{__name__}.rerankers': ('Interleave', 'Rerank'),
    f'{__name__}.retrievers': (
        'HybridRetriever',
        'LuceneRetriever',
        'PassageText',
        'RepBertRetriever',
        'Retriever',
    ),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
