"""Learned sparse models of sentence-transformers (`SparseEncoder`): SPLADE, inference-free ones.

Queries and passages are term weights; inner products are scores.
"""

from pyserini_repbert.systems.registry import System
from pyserini_repbert.systems.stage_options import TERM_WEIGHTS_OPTIONS

SYSTEM = System(
    name='sparse-encoder',
    title='SparseEncoder',
    recognises='pyserini_repbert.systems.sparse_encoder.folder:is_sparse_folder',
    description='a SparseEncoder, whose vectors are term weights',
    advice='make an index with `encode` or `index sparse`, and search that',
    term_weights_encoder='pyserini_repbert.systems.sparse_encoder.encoder:SparseTextEncoder',
    reranker='pyserini_repbert.systems.sparse_encoder.reranker:SparseEncoderReranker',
    stage_options=TERM_WEIGHTS_OPTIONS,
)
