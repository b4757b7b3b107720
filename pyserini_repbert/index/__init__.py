"""Indexes on disk: dense bundles, Pyserini's FAISS layout, Lucene variants."""

from typing import TYPE_CHECKING

from pyserini_repbert.lazy import exports

if TYPE_CHECKING:
    from pyserini_repbert.index.dense import DenseBundle as DenseBundle
    from pyserini_repbert.index.faiss_layout import FaissFolder as FaissFolder, export_faiss as export_faiss

__getattr__, __dir__, __all__ = exports(__name__)
