"""PyTerrier transformers for retrieval, fusion and reranking, and indexers.

Tested with python-terrier 1.0 (pyterrier 1.1.2) and pandas 3.1.1 on Python 3.11. Scores are those of the searchers and
rerankers that these classes wrap.
"""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.interop.pyterrier.artifacts import (
        DenseArtifact as DenseArtifact,
        EpicArtifact as EpicArtifact,
    )
    from pyserini_repbert.interop.pyterrier.flex import export_flex as export_flex, import_flex as import_flex
    from pyserini_repbert.interop.pyterrier.indexers import EpicIndexer as EpicIndexer, RepBertIndexer as RepBertIndexer
    from pyserini_repbert.interop.pyterrier.interleaving import Interleave as Interleave
    from pyserini_repbert.interop.pyterrier.rerankers import (
        Cedr as Cedr,
        DuoBert as DuoBert,
        Epic as Epic,
        MonoBert as MonoBert,
        Rerank as Rerank,
    )
    from pyserini_repbert.interop.pyterrier.retrievers import (
        HybridRetriever as HybridRetriever,
        LuceneRetriever as LuceneRetriever,
        RepBertRetriever as RepBertRetriever,
        Retriever as Retriever,
    )
    from pyserini_repbert.interop.pyterrier.texts import PassageText as PassageText

_MODULES = {
    'DenseArtifact': 'pyserini_repbert.interop.pyterrier.artifacts',
    'EpicArtifact': 'pyserini_repbert.interop.pyterrier.artifacts',
    'export_flex': 'pyserini_repbert.interop.pyterrier.flex',
    'import_flex': 'pyserini_repbert.interop.pyterrier.flex',
    'EpicIndexer': 'pyserini_repbert.interop.pyterrier.indexers',
    'RepBertIndexer': 'pyserini_repbert.interop.pyterrier.indexers',
    'Interleave': 'pyserini_repbert.interop.pyterrier.interleaving',
    'Cedr': 'pyserini_repbert.interop.pyterrier.rerankers',
    'DuoBert': 'pyserini_repbert.interop.pyterrier.rerankers',
    'Epic': 'pyserini_repbert.interop.pyterrier.rerankers',
    'MonoBert': 'pyserini_repbert.interop.pyterrier.rerankers',
    'Rerank': 'pyserini_repbert.interop.pyterrier.rerankers',
    'HybridRetriever': 'pyserini_repbert.interop.pyterrier.retrievers',
    'LuceneRetriever': 'pyserini_repbert.interop.pyterrier.retrievers',
    'RepBertRetriever': 'pyserini_repbert.interop.pyterrier.retrievers',
    'Retriever': 'pyserini_repbert.interop.pyterrier.retrievers',
    'PassageText': 'pyserini_repbert.interop.pyterrier.texts',
}
__getattr__, __dir__, __all__ = lazily(__name__, _MODULES)
