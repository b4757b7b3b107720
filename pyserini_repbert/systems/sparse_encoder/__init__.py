"""Learned sparse models of sentence-transformers (`SparseEncoder`): SPLADE, inference-free ones.

Queries and passages are weights of terms; inner products are scores.
"""

from pyserini_repbert.data.values import integer
from pyserini_repbert.systems.registry import StageOption, System

SYSTEM = System(
    name='sparse-encoder',
    title='SparseEncoder',
    recognises='pyserini_repbert.systems.sparse_encoder.folder:is_sparse_folder',
    description='a SparseEncoder, whose vectors are weights of terms',
    advice='make an index with `encode` or `index sparse`, and search that',
    impact_encoder='pyserini_repbert.systems.sparse_encoder.encoder:SparseTextEncoder',
    reranker='pyserini_repbert.systems.sparse_encoder.reranker:SparseEncoderReranker',
    stage_options=(
        StageOption('index=FOLDER', 'index', str),
        StageOption('missing=encode|refuse', 'missing', str),
        StageOption('prune=N', 'prune', integer),
        StageOption('max-length=N', 'max_length', integer),
    ),
)
