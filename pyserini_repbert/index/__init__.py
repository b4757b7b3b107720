"""Indexes on disk: dense bundles, Pyserini's FAISS layout, Lucene variants."""

from typing import TYPE_CHECKING

from pyserini_repbert import lazily

if TYPE_CHECKING:
    from pyserini_repbert.index.dense import DenseBundle as DenseBundle
    from pyserini_repbert.index.faiss_layout import (
        FaissFolder as FaissFolder,
        export_faiss as export_faiss,
    )

_NAMES = {
    'pyserini_repbert.index.dense': ('DenseBundle',),
    'pyserini_repbert.index.faiss_layout': ('FaissFolder', 'export_faiss'),
}
__getattr__, __dir__, __all__ = lazily(__name__, _NAMES)
