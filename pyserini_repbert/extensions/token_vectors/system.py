"""Late interaction (ColBERT: Khattab and Zaharia, 2020): compares each token of query and passage.

Use it as a second stage, on hundreds of candidates, or in a collection, which stores the vectors of
tokens: it is a bi-encoder, whose score says which token of the passage each token of the query
found. Folders have the form of `MultiVectorEncoder` of
sentence-transformers. https://arxiv.org/abs/2004.12832
"""

from pyserini_repbert.data.values import integer
from pyserini_repbert.systems.registry import StageOption, System

SYSTEM = System(
    name='multi-vector',
    title='late interaction',
    recognises='pyserini_repbert.extensions.token_vectors.folder:is_multi_vector_folder',
    description='a MultiVectorEncoder, which gives a vector for each token',
    advice='rerank with it, as a stage NAME@100, or give a collection its token vectors',
    task='pyserini_repbert.extensions.token_vectors.training:MultiVectorTask',
    reranker='pyserini_repbert.extensions.token_vectors.reranker:MultiVectorReranker',
    stage_options=(StageOption('max-length=N', 'max_length', integer),),
)
